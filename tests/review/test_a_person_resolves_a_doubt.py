import pytest
from django.contrib.auth.models import User

from agentruns.errors import BadInput, NotFound, WrongState
from agentruns.models import Run
from agentruns.protocol.execute import look_up_call
from agentruns.protocol.ledger import person
from agentruns.protocol.stop import request_stop
from review.services import answer_doubt, decide, look_up_again
from tests.acting import act, acted, call, events, fresh, mail, message
from tests.tools.conftest import RunningWorld

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def in_doubt(owner: User, world: RunningWorld) -> Run:
    """A stopped run whose chat message arrived, though nobody was told."""
    world.fault("chat", "drop_after")
    run = acted(owner, message())
    request_stop(run.pk, by=owner)
    assert call(run).state == "in_doubt"
    assert fresh(run).status == "stopped_dirty"
    return fresh(run)


@pytest.mark.parametrize(
    ("answer", "state", "status"),
    [
        ("happened", "landed", "stopped_clean"),
        # The person is wrong: the message is there, and the ledger does not know until a receipt.
        pytest.param("did_not_happen", "failed", "stopped_clean", marks=pytest.mark.breaks_ledger),
        ("cannot_tell", "in_doubt", "stopped_dirty"),
    ],
)
def test_the_answer_is_kept_with_name_and_evidence_and_settles_the_run(
    in_doubt: Run, reviewer: User, answer: str, state: str, status: str
) -> None:
    answer_doubt(call(in_doubt).pk, by=reviewer, answer=answer, evidence=" I asked Bo. ")
    assert (call(in_doubt).state, fresh(in_doubt).status) == (state, status)
    assert events(in_doubt, "call.answered") == [{"answer": answer, "evidence": "I asked Bo."}]
    assert in_doubt.events.get(kind="call.answered").actor == person(reviewer)


def test_a_second_answer_is_refused_once_nothing_is_in_doubt(in_doubt: Run, owner: User) -> None:
    answer_doubt(call(in_doubt).pk, by=owner, answer="happened")
    with pytest.raises(WrongState, match="not in doubt any more"):
        answer_doubt(call(in_doubt).pk, by=owner, answer="did_not_happen")
    assert call(in_doubt).state == "landed"


@pytest.mark.parametrize(
    "bad", [{"answer": "perhaps"}, {"evidence": "x" * 2001}, {"evidence": "nul \x00"}]
)
def test_bad_input_answers_nothing(in_doubt: Run, owner: User, bad: dict[str, str]) -> None:
    with pytest.raises(BadInput):
        answer_doubt(call(in_doubt).pk, by=owner, **({"answer": "happened"} | bad))
    assert call(in_doubt).state == "in_doubt"


def test_an_unknown_call_is_not_found(owner: User) -> None:
    with pytest.raises(NotFound):
        answer_doubt("call_nowhere", by=owner, answer="happened")
    with pytest.raises(NotFound):
        look_up_again("call_nowhere", by=owner)


def test_another_look_finds_the_receipt(in_doubt: Run, owner: User) -> None:
    look_up_again(call(in_doubt).pk, by=owner)
    look_up_call(call(in_doubt).pk)
    assert call(in_doubt).state == "landed"
    with pytest.raises(WrongState):
        look_up_again(call(in_doubt).pk, by=owner)


def test_what_cannot_be_looked_up_says_so(owner: User, reviewer: User, world: RunningWorld) -> None:
    run = acted(owner, mail())
    decide(call(run).pk, by=reviewer, verdict="approved", digest=call(run).args_digest)
    world.fault("smtp", "drop_after")
    act(fresh(run))
    assert call(run).state == "in_doubt"
    with pytest.raises(WrongState, match="Only a person can say"):
        look_up_again(call(run).pk, by=owner)
