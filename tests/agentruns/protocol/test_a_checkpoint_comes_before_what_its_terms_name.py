"""R13: checkpoints before each model call, each tool call, and always each irreversible call."""

import pytest

from agentruns.models import Agent, Checkpoint, Run
from agentruns.queries import snapshot
from tests.agentruns.steps import Steps, kinds, now


def kept(run: Run) -> list[tuple[str, int, int | None]]:
    found = Checkpoint.objects.filter(run=run).select_related("call").order_by("pk")
    return [(c.before, c.turn, c.call.number if c.call else None) for c in found]


def played(steps: Steps, before: list[str]) -> Run:
    Agent.objects.filter(pk=steps.agent.pk).update(checkpoint_before=before)
    steps.agent = Agent.objects.get(pk=steps.agent.pk)
    run, (book, send) = steps.running("test.book", "test.send")
    steps.act(book)
    steps.approve(send)
    steps.act(send)
    steps.turn(run)
    return now(run)


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ([], [("irreversible_call", 1, 2)]),
        (
            ["model_call"],
            [("model_call", 1, None), ("irreversible_call", 1, 2), ("model_call", 2, None)],
        ),
        (["tool_call"], [("tool_call", 1, 1), ("irreversible_call", 1, 2)]),
    ],
)
def test_checkpoints_are_where_the_terms_want_them(
    steps: Steps, before: list[str], expected: list[tuple[str, int, int | None]]
) -> None:
    assert kept(played(steps, before)) == expected


def test_a_checkpoint_names_the_ledger_up_to_it(steps: Steps) -> None:
    run = played(steps, [])
    point = Checkpoint.objects.get(run=run)
    assert kinds(run)[point.seq] == "call.commit_allowed", "the next event"
    assert snapshot(run)["resume_from"] == {
        "turn": 1,
        "seq": point.seq,
        "before": "irreversible_call",
    }
