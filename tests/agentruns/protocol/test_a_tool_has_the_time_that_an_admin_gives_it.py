"""The time limit of a tool's row is what the tool is told, and when its call is in doubt."""

from datetime import timedelta
from typing import Any

import pytest

from agentruns.protocol.gate import pass_gate
from agentruns.protocol.items import CallItems
from agentruns.protocol.ledger import REPORT_GRACE
from tests.agentruns.outside import Args, Batch, Book, Outside
from tests.agentruns.steps import Steps, anew
from tools.contract import Context, Draft, Receipt
from tools.models import Tool


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time limits that commits were given."""
    given: list[float] = []

    def listening(tool: type[Any]) -> None:
        commit = tool.commit

        def heard(self: Any, ctx: Context, args: Args, draft: Draft | None) -> Receipt:
            given.append(ctx.timeout)
            return commit(self, ctx, args, draft)

        monkeypatch.setattr(tool, "commit", heard)

    listening(Book)
    return given


def test_a_tool_is_told_the_codes_limit_or_the_admins(
    steps: Steps, outside: Outside, told: list[float]
) -> None:
    _run, calls = steps.running("test.book", "test.book")
    steps.act(calls[0])
    Tool.objects.filter(name="test.book").update(time_limit=3)
    steps.act(calls[1])

    assert told == [10.0, 3.0]


def test_the_gate_gives_it_that_long_to_report(steps: Steps, outside: Outside) -> None:
    Tool.objects.filter(name="test.book").update(time_limit=3)
    _run, (call,) = steps.running("test.book")
    claim = steps.claim(call)
    pass_gate(claim)

    flying = anew(call)
    assert flying.deadline_at - flying.gate_passed_at == timedelta(seconds=3) + REPORT_GRACE
    steps.land(claim)


@pytest.mark.usefixtures("outside")
def test_each_item_has_it_anew(steps: Steps) -> None:
    assert Batch.most > 1
    Tool.objects.filter(name="test.batch").update(time_limit=200)
    run = steps.start()
    lease = steps.think(run)
    call = steps.propose(lease, "test.batch", count=2)
    steps.finish(lease)
    claim = steps.claim(call)
    pass_gate(claim)
    before = anew(call).deadline_at

    CallItems(call.pk, claim.token, claim.timeout).land("it 1", {})

    assert timedelta() < anew(call).deadline_at - before < timedelta(seconds=60)
    CallItems(call.pk, claim.token, claim.timeout).land("it 2", {})
    steps.land(claim)
