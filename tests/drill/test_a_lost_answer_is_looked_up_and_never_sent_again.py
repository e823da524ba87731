"""C7: the server acts, then its answer is lost."""

import pytest

from agentruns.models import LedgerEvent, ToolCall
from tests.drill.over_http import Program

pytestmark = pytest.mark.stack


@pytest.mark.parametrize("mode", ["drop_after", "error_after"])
def test_the_message_is_in_doubt_then_found_and_is_there_once(program: Program, mode: str) -> None:
    program.fault("chat", mode)
    run_id = program.start("ticket")
    run = program.wait(run_id, "completed")
    call = ToolCall.objects.get(run=run_id, tool="chat.post_message")
    facts = LedgerEvent.objects.filter(call=call).order_by("seq").values_list("kind", flat=True)
    assert list(facts)[-3:] == ["call.in_doubt", "call.looked_up", "call.landed"]
    assert len(program.effects({call.request_id})) == 1
    assert [each["state"] for each in run["groups"]["done"]] == ["landed"] * 4
