"""The machinery of `make bench`, at a tiny size. What the figures are is not for a test to say."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from agentruns.models import LedgerEvent, Run, ToolCall
from agentruns.services.programs import BASE_DIR
from agentruns.services.stack import Stack
from tests.bench import seed, table
from tests.bench.__main__ import job
from tests.bench.play import EFFECT, READ
from tools import registry

# It starts a dozen processes, on a machine that has the other tests to do.
pytestmark = pytest.mark.timeout(400)

TINY = "--passes 1 --rounds 1 --steps 3 --active 2 --stops 2 --http 1 --closings 0 --events 100"


@pytest.fixture(scope="module")
def report() -> dict[str, Any]:
    """What a bench of half a minute says."""
    argv = [sys.executable, "-m", "tests.bench", "--json", *TINY.split()]
    done = subprocess.run(
        argv, cwd=BASE_DIR, env=os.environ, check=True, text=True, stdout=subprocess.PIPE
    )
    return json.loads(done.stdout)


@pytest.mark.evidence
@pytest.mark.stack
def test_every_part_is_measured(report: dict[str, Any]) -> None:
    for ledger in ("empty", "full"):
        assert report["calls"][ledger]["call"]["n"] == 3
        assert report["calls"][ledger]["intent"]["n"] == 3
        stops = report["stops"][ledger]["2"]["figures"]
        assert stops["answer"]["n"] == stops["no_new_effect"]["n"] == 2
    assert report["stops"]["empty"]["2"]["figures"]["http"]["n"] == 1
    assert report["long_ledger"]["events"] > 50


@pytest.mark.evidence
@pytest.mark.stack
def test_each_goal_has_its_ratio(report: dict[str, Any]) -> None:
    parts = [goal["part"] for goal in report["goals"]]
    assert parts[-4:] == ["b", "b", "d", "d"]  # (a) needs DBOS
    assert all(goal["ratio"] > 0 for goal in report["goals"])


@pytest.mark.evidence
@pytest.mark.stack
def test_the_report_reads_as_a_table(report: dict[str, Any]) -> None:
    text = "\n".join(table.lines_of(report))
    assert "| a | one durable call of ours: claim, gate, outcome | empty ledger | 3 |" in text


@pytest.mark.evidence
@pytest.mark.stack
def test_the_end_of_a_models_stream_is_measured(stack: Stack) -> None:
    found = job("closing", stack.env, stops=1)
    assert len(found["times"]) + found["too_late"] == 1


@pytest.mark.django_db(transaction=True)
def test_a_seeded_ledger_keeps_every_invariant() -> None:
    """`verify_ledger` runs over it when the test has ended, as after every test."""
    try:
        template = seed.template()
        seed.fill(template, copies=12)
    finally:
        registry.unregister(READ)
        registry.unregister(EFFECT)
    events = LedgerEvent.objects.filter(run=template).count()
    assert Run.objects.count() == 13
    assert ToolCall.objects.filter(state="landed").count() == 13 * seed.CALLS
    assert LedgerEvent.objects.count() == 13 * events
