"""What those are called who acted, by their names in the ledger."""

from collections.abc import Iterable

from django.contrib.auth.models import User

from agentruns.page.words import name_of

PERSON = "user:"


def names_of(actors: Iterable[str]) -> dict[str, str]:
    """The name of each actor, for pages; “the system” for what is no person."""
    actors = set(actors)
    usernames = [actor.removeprefix(PERSON) for actor in actors if actor.startswith(PERSON)]
    people = User.objects.in_bulk(usernames, field_name="username") if usernames else {}
    return {actor: _name(actor, people) for actor in actors}


def _name(actor: str, people: dict[str, User]) -> str:
    if not actor.startswith(PERSON):
        return name_of(None)
    username = actor.removeprefix(PERSON)
    return name_of(people[username]) if username in people else username
