"""C3, B3: Stops that are sent while nobody works are kept, and the comers-back obey them."""

import pytest

from agentruns.models import LedgerEvent, ToolCall
from agentruns.services.stack import Stack
from tests.drill.over_http import Program

WORKERS = ("think", "act", "control")

pytestmark = pytest.mark.stack


def test_a_run_is_not_called_stopped_until_its_dead_driver_has_lost_the_lease(
    stack: Stack, program: Program
) -> None:
    streaming = program.start("inbox")
    program.generating(streaming, turn=1, tokens=5)
    for name in WORKERS:
        stack.kill(name)
    waiting = program.start("report")
    answer = program.stop(streaming)
    assert answer["phase"] == "cancel_requested"
    assert answer["waits_for"]["model"]
    assert program.stop(waiting)["phase"] == "stopped_clean"
    assert program.stop(streaming) == answer

    for name in WORKERS:
        stack.wait_for(name)
    program.wait(streaming, "stopped_clean")
    stopped = LedgerEvent.objects.get(run=streaming, kind="stop.requested")
    later = LedgerEvent.objects.filter(run=streaming, seq__gt=stopped.seq)
    kinds = set(later.values_list("kind", flat=True))
    assert {"lease.taken_away", "run.stopped"} <= kinds
    assert not kinds & {"turn.started", "call.proposed", "call.commit_allowed"}
    assert program.generated(waiting) == []
    assert not ToolCall.objects.filter(run=waiting).exists()


def test_a_run_whose_workers_died_goes_on_by_itself(stack: Stack, program: Program) -> None:
    """C6, H5: neither lost, nor done twice."""
    run_id = program.start("ticket")
    program.generating(run_id, turn=1, tokens=5)
    for name in WORKERS:
        stack.kill(name)
    program.wait(run_id, "completed")
    calls = list(ToolCall.objects.filter(run=run_id, state="landed").exclude(tier="read_only"))
    assert sorted(call.tool for call in calls) == ["chat.post_message", "tickets.create"]
    assert len(program.effects({call.request_id for call in calls})) == 2
