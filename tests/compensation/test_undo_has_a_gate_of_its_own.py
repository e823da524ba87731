import pytest
from django.contrib.auth.models import User

from agentruns.errors import BadInput, NotAllowed, NotFound, WrongState
from agentruns.models import Run, ToolCall
from agentruns.protocol import doubt
from agentruns.protocol.execute import look_up_call
from agentruns.protocol.heads import chain_heads
from agentruns.protocol.lease import Fragment, take_lease
from agentruns.protocol.resume import resume_run
from agentruns.protocol.start import start_run
from agentruns.protocol.stop import request_stop
from agentruns.protocol.turn import finish_turn
from compensation import saga
from compensation.models import Compensation, UndoRequest
from review.services import decide
from tests.acting import act, acted, call, fresh, mail, message, search, stopped, ticket
from tests.agentruns.verify.breaking import sql
from tests.compensation.conftest import in_world, step, undo_all
from tests.tools.conftest import RunningWorld

pytestmark = pytest.mark.django_db(transaction=True)


def test_nothing_is_undone_while_the_run_acts(owner: User, world: RunningWorld) -> None:
    run = acted(owner, message())
    assert run.status == "running"
    with pytest.raises(WrongState, match="still at work"):
        saga.request_undo(run.pk, by=owner, call_ids=[call(run).pk])
    queued = start_run(owner=owner, agent=run.agent, goal="Later.", ring=False)
    with pytest.raises(WrongState, match="still at work"):
        saga.request_undo(queued.pk, by=owner, call_ids=[])


def test_a_run_that_waits_can_be_undone_and_a_run_that_goes_on_cannot(
    owner: User, reviewer: User, world: RunningWorld
) -> None:
    """The run is woken between the request and the attempt."""
    run = acted(owner, message(), mail())
    assert run.status == "suspended"
    saga.request_undo(run.pk, by=owner, call_ids=[call(run, 1).pk])
    decide(call(run, 2).pk, by=reviewer, verdict="approved", digest=call(run, 2).args_digest)
    assert fresh(run).status == "running"
    undo_all(run)
    assert (step(run).state, step(run).reason) == ("failed", "run_acts")
    assert in_world(world, run)[0].undone_at is None


def test_a_run_does_not_go_on_while_what_it_did_is_being_undone(
    owner: User, world: RunningWorld
) -> None:
    run = stopped(owner, message())
    saga.request_undo(run.pk, by=owner, call_ids=[call(run).pk])
    with pytest.raises(WrongState, match="is being undone"):
        resume_run(run.pk, by=owner)
    undo_all(run)
    assert step(run).state == "undone"
    assert resume_run(run.pk, by=owner).is_active


def test_only_what_landed_and_can_be_undone_is_planned(
    owner: User, reviewer: User, world: RunningWorld
) -> None:
    run = acted(owner, search(), mail(), message())
    decide(call(run, 2).pk, by=reviewer, verdict="approved", digest=call(run, 2).args_digest)
    world.fault("chat", "drop_after")
    act(run)
    act(fresh(run))
    request_stop(run.pk, by=owner)
    for number, code in ((1, "not_needed"), (2, "impossible"), (3, "in_doubt")):
        with pytest.raises(WrongState) as refused:
            saga.request_undo(run.pk, by=owner, call_ids=[call(run, number).pk])
        assert refused.value.data["reason"] == code
    assert not UndoRequest.objects.exists()


@pytest.mark.breaks_ledger
def test_a_call_in_doubt_is_never_undone_even_if_a_step_says_so(
    owner: User, world: RunningWorld
) -> None:
    """A row that no service would write; the gate looks again before it acts."""
    world.fault("chat", "drop_after")
    run = stopped(owner, message())
    assert call(run).state == "in_doubt"
    request = UndoRequest.objects.create(run=run, requested_by=owner, created_at=run.created_at)
    Compensation.objects.create(
        request=request, call=call(run), position=1, created_at=run.created_at
    )
    undo_all(run)
    assert (step(run).state, step(run).reason) == ("failed", "nothing_to_undo")
    assert in_world(world, run)[0].undone_at is None


def test_one_refused_call_keeps_the_whole_request_from_being_planned(
    owner: User, world: RunningWorld
) -> None:
    run = stopped(owner, search(), ticket())
    with pytest.raises(WrongState, match="nothing to undo"):
        saga.request_undo(run.pk, by=owner, call_ids=[c.pk for c in run.calls.all()])
    assert not Compensation.objects.exists()


def test_nothing_picked_or_something_foreign_picked_is_bad_input(
    owner: User, world: RunningWorld
) -> None:
    run, other = stopped(owner, ticket()), stopped(owner, message())
    for picked in ([], ["call_nowhere"], [call(other).pk], ["\x00"]):
        with pytest.raises(BadInput):
            saga.request_undo(run.pk, by=owner, call_ids=picked)


def test_only_the_owner_and_admins_may_undo(
    owner: User, outsider: User, reviewer: User, admin: User, world: RunningWorld
) -> None:
    run = stopped(owner, ticket())
    picked = [call(run).pk]
    with pytest.raises(NotFound):
        saga.request_undo(run.pk, by=outsider, call_ids=picked)
    with pytest.raises(NotAllowed):
        saga.request_undo(run.pk, by=reviewer, call_ids=picked)
    with pytest.raises(NotFound):
        saga.request_undo("run_nowhere", by=admin, call_ids=picked)
    assert not UndoRequest.objects.exists()
    assert saga.request_undo(run.pk, by=admin, call_ids=picked).requested_by == admin


def test_a_right_taken_away_after_the_request_stops_the_undo(
    owner: User, world: RunningWorld
) -> None:
    """Case D19, for undo: authority is read at every attempt."""
    run = stopped(owner, ticket(), message())
    saga.request_undo(run.pk, by=owner, call_ids=[c.pk for c in run.calls.all()])
    saga.run_next(run.pk)
    User.objects.filter(pk=owner.pk).update(is_active=False)
    undo_all(run)
    assert (step(run, 2).state, step(run, 1).state) == ("undone", "failed")
    assert step(run, 1).why == "Whoever asked for this may no longer undo it."


@pytest.mark.usefixtures("world")
def test_the_tool_is_told_who_asked(
    owner: User, admin: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = stopped(owner, message())
    told = _listen(monkeypatch)
    saga.request_undo(run.pk, by=admin, call_ids=[call(run).pk])
    undo_all(run)
    assert told == [("Ada", call(run).request_id)]


def _listen(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Have the chat tool tell whom it acts for, and under which key, before it acts."""
    impl = type(saga.registry.get("chat.post_message").impl)
    told: list[tuple[str, str]] = []
    compensate = impl.compensate

    def listening(self: object, ctx: object, receipt: object) -> object:
        told.append((ctx.actor, ctx.request_id))
        return compensate(self, ctx, receipt)

    monkeypatch.setattr(impl, "compensate", listening)
    return told


def test_a_finished_run_can_be_undone_too(owner: User, world: RunningWorld) -> None:
    run = acted(owner, ticket())
    _finish(run)
    saga.request_undo(run.pk, by=owner, call_ids=[call(run).pk])
    undo_all(run)
    assert ToolCall.objects.get(run=run).undo_state == "undone"


def _finish(run: Run) -> None:
    """A last turn that asks for nothing."""
    lease = take_lease(run.pk, epoch=run.epoch)
    assert lease is not None
    assert finish_turn(lease, Fragment("Done."), "stop")
    assert fresh(run).status == "completed"


def test_what_was_said_not_to_have_happened_can_be_undone_once_it_is_found(
    owner: User, world: RunningWorld
) -> None:
    world.fault("chat", "drop_after")
    run = acted(owner, message())
    request_stop(run.pk, by=owner)
    doubt.answer(call(run).pk, by=owner, answer="did_not_happen", evidence="")
    with pytest.raises(WrongState) as refused:
        saga.request_undo(run.pk, by=owner, call_ids=[call(run).pk])
    assert refused.value.data["reason"] == "not_landed"

    ToolCall.objects.filter(run=run).update(next_lookup_at=run.created_at)
    look_up_call(call(run).pk)
    assert call(run).contradicted_at is not None
    saga.request_undo(run.pk, by=owner, call_ids=[call(run).pk])
    undo_all(run)

    assert step(run).state == "undone"
    assert in_world(world, run)[0].undone_at is not None


@pytest.mark.breaks_ledger
def test_a_run_that_was_cut_back_is_not_undone(owner: User, world: RunningWorld) -> None:
    """What was cut off may have been an undo of the same."""
    run = stopped(owner, ticket())
    saga.request_undo(run.pk, by=owner, call_ids=[call(run).pk])
    chain_heads()
    sql(
        "DELETE FROM agentruns_ledgerevent WHERE run_id = %s AND seq = %s",
        run.pk,
        fresh(run).ledger_seq,
    )
    sql(
        "UPDATE agentruns_run r SET ledger_seq = e.seq, ledger_head = e.hash "
        "FROM agentruns_ledgerevent e WHERE r.id = %s AND e.run_id = r.id "
        "AND e.seq = r.ledger_seq - 1",
        run.pk,
    )

    undo_all(run)

    assert (step(run).state, step(run).reason) == ("failed", "ledger_cut_back")
    assert in_world(world, run)[0].undone_at is None
