"""Resume: a stopped run goes on, because a person says so (protocol §3, §11).

Guarantees that it goes on in a new epoch, so that nothing of before the stop can write, and
under a new grant, issued by the person; that it does not as long as anything is in doubt; and
that what was held back by the stop is let go or dropped by the same decision.
"""

from collections.abc import Callable
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from agentruns import doorbell, pausepoints
from agentruns.errors import BadInput, WrongState
from agentruns.models import Output, Run, ToolCall
from agentruns.protocol.advance import advance, is_duplicate
from agentruns.protocol.budget import exceeded
from agentruns.protocol.consent import rules_of
from agentruns.protocol.grants import issue
from agentruns.protocol.ledger import clock, lock_run, move_call, move_run, person
from agentruns.protocol.room import must_have_room

RELEASE, VOID = "release", "void"
# What else may stand in the way, under the run's lock: raises WrongState. Other apps add theirs.
GUARDS: list[Callable[[Run], None]] = []


def resume_run(run_id: str, *, by: Any, frozen: str = RELEASE, epoch: int | None = None) -> Run:
    """Queue a run that was stopped clean, in a new epoch. `frozen` says what becomes of the calls
    that the stop kept: release or void; one that needs consent is dropped in either case, and
    the model may ask for it again. `epoch` names the stop that is meant: a request that is sent
    again, or from a page that fell behind, does not undo a later stop.

    Raises NotFound, BadInput, or WrongState: not stopped, stopped since, in doubt, or out of its
    budget; and TooManyRuns where the owner has no room for one more.
    """
    if frozen not in (RELEASE, VOID):
        raise BadInput(_("“frozen” is either release or void."), field="frozen")
    pausepoints.reach(run_id, "resume:begin")
    with transaction.atomic(durable=True):
        run = lock_run(run_id)
        if epoch is not None and epoch != run.epoch:
            raise WrongState(
                _("Things have moved on since. Look at the run again."), epoch=run.epoch
            )
        _must_be_resumable(run)
        must_have_room(run.owner, starts=False)
        actor = person(by)
        move_run(
            run,
            "requeue",
            actor=actor,
            data={"epoch": run.epoch + 1, "turn": run.turn, "frozen": frozen},
            epoch=run.epoch + 1,
            suspended_reason="",
            ended_at=None,
        )
        issue(run, by=by)
        released = [each for each in _frozen(run) if _settle_frozen(run, each, frozen, actor)]
        if released:
            move_run(run, "begin", actor=actor, started_at=run.started_at or clock().now)
            advance(run)
        else:
            doorbell.ring_task("agentruns.tasks.think", run.pk, run.epoch)
    pausepoints.reach(run_id, "resume:committed")
    return run


def _must_be_resumable(run: Run) -> None:
    for guard in GUARDS:
        guard(run)
    if run.status == "stopped_dirty":
        raise WrongState(
            _("Not everything is known yet. Find out what became of what is in doubt first."),
            status=run.status,
        )
    if run.status != "stopped_clean":
        raise WrongState(_("Only a run that was stopped can be taken up again."), status=run.status)
    if run.parent is not None and not run.parent.is_active:
        raise WrongState(
            _("The run that started this one has ended or was stopped."), parent=run.parent.pk
        )
    if limit := exceeded(run):
        raise WrongState(
            _("Its budget is used up. Raise the limit first."), limit=limit, status=run.status
        )


def _frozen(run: Run) -> list[ToolCall]:
    return list(ToolCall.objects.filter(run=run, state="frozen").order_by("number"))


def _settle_frozen(run: Run, call: ToolCall, frozen: str, actor: str) -> bool:
    """Let a frozen call go in the new epoch, or drop it; whether it goes."""
    # An answer that was cut off asks for nothing, and the model does not know that it did.
    was_whole = Output.complete.filter(run=run, turn=call.turn).exists()
    is_let_go = frozen == RELEASE and was_whole
    if is_let_go and not (rules_of(call).needs_approval or is_duplicate(call)):
        # The stop was the end of its first life, and the old epoch its authority.
        fields = {"epoch": run.epoch, "reason": "", "detail": "", "ended_at": None}
        afresh = {"attempts": 0, "next_attempt_at": None, "draft": None}
        data = {"by": "resume"}
        move_call(run, call, "approve", actor=actor, data=data, **fields, **afresh)
        return True
    reason = "dropped" if frozen == VOID else "needs_consent" if was_whole else "answer_cut"
    move_call(run, call, "void", actor=actor, reason=reason, ended_at=clock().now)
    return False
