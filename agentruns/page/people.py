"""What those are called who acted, by their names in the ledger."""

from collections.abc import Iterable

from django.contrib.auth.models import User

from agentruns.page.words import name_of
from agentruns.protocol.ledger import person, person_id


def names_of(actors: Iterable[str]) -> dict[str, str]:
    """The name of each actor, for pages; “the system” for what is no person."""
    actors = set(actors)
    ids = [pk for pk in map(person_id, actors) if pk is not None]
    people = {person(each): each for each in User.objects.filter(pk__in=ids)} if ids else {}
    return {actor: name_of(people.get(actor)) for actor in actors}
