import pytest
from django.contrib.auth.models import User

from agentruns.errors import BadInput
from agentruns.models import Run
from agentruns.protocol.stop import request_stop
from compensation import saga
from compensation.queries import PreviewItem
from review.services import decide
from tests.acting import act, acted, call, fresh, mail, message, search, stopped, ticket
from tests.compensation.conftest import undo_all
from tests.tools.conftest import RunningWorld

pytestmark = pytest.mark.django_db(transaction=True)


def seen(run: Run) -> dict[int, PreviewItem]:
    return {item.call.number: item for item in saga.preview(run)}


def test_each_call_says_in_plain_words_what_undo_means_for_it(
    owner: User, reviewer: User, world: RunningWorld
) -> None:
    run = acted(owner, search(), ticket(), mail())
    decide(call(run, 3).pk, by=reviewer, verdict="approved", digest=call(run, 3).args_digest)
    act(run)
    request_stop(run.pk, by=owner)
    items = seen(fresh(run))
    assert {number: item.code for number, item in items.items()} == {
        1: "not_needed",
        2: "possible",
        3: "impossible",
    }
    assert items[2].text == "Closes the ticket with a note. It stays in the list of tickets."
    assert "correction" in items[3].text
    assert [number for number, item in items.items() if item.can_undo] == [2]


def test_what_never_happened_and_what_is_in_doubt_cannot_be_undone(
    owner: User, world: RunningWorld
) -> None:
    world.fault("chat", "drop_after")
    items = seen(stopped(owner, message(), ticket()))
    assert {number: item.code for number, item in items.items()} == {
        1: "in_doubt",
        2: "not_landed",
    }
    assert items[2].text == "This did not happen: dropped."


def test_what_is_being_undone_or_is_undone_says_so(owner: User, world: RunningWorld) -> None:
    run = stopped(owner, ticket())
    saga.request_undo(run.pk, by=owner, call_ids=[call(run).pk])
    assert seen(run)[1].code == "under_way"
    undo_all(run)
    assert seen(run)[1].code == "undone"


def test_it_is_in_the_order_in_which_undo_would_go(owner: User, world: RunningWorld) -> None:
    run = stopped(owner, message(), ticket())
    assert list(seen(run)) == [2, 1]
    assert [item.call.number for item in saga.preview(run, [call(run, 1).pk])] == [1]


def test_a_call_of_another_run_is_refused(owner: User, world: RunningWorld) -> None:
    run, other = stopped(owner, message()), stopped(owner, ticket())
    with pytest.raises(BadInput, match="not of this run"):
        saga.preview(run, [call(other).pk])
