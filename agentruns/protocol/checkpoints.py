"""Checkpoints: the moments that a run can be taken up from again (protocol §9, R13).

Guarantees one before each irreversible call, always, and before what the run's terms name; in
the transaction of the step that it comes before, so a step without its checkpoint does not exist.
"""

from datetime import datetime

from agentruns.models import Checkpoint, Run, ToolCall
from tools.contract import Tier

Before = Checkpoint.Before


def before_turn(run: Run, now: datetime) -> None:
    """Under the run's lock, before its model is asked."""
    if Before.MODEL_CALL in run.checkpoint_before:
        _keep(run, Before.MODEL_CALL, None, now)


def before_call(run: Run, call: ToolCall, tier: Tier, now: datetime) -> None:
    """Under the run's lock, before `call` passes the gate at `tier`."""
    if tier is Tier.IRREVERSIBLE:
        _keep(run, Before.IRREVERSIBLE_CALL, call, now)
    elif Before.TOOL_CALL in run.checkpoint_before:
        _keep(run, Before.TOOL_CALL, call, now)


def _keep(run: Run, before: Checkpoint.Before, call: ToolCall | None, now: datetime) -> None:
    # The row in memory does not know what the database has counted since it was read.
    seq = Run.objects.values_list("ledger_seq", flat=True).get(pk=run.pk)
    Checkpoint.objects.create(
        run=run, epoch=run.epoch, turn=run.turn, seq=seq, before=before, call=call, at=now
    )
