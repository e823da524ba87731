"""A drill that finds nothing proves something only if it finds what is there to be found."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from pytest_django.fixtures import Settings

from agentruns.drill.play import Plan, Played
from agentruns.drill.points import point
from agentruns.drill.report import has_passed, report_of
from agentruns.drill.table import lines_of
from agentruns.models import Run
from agentruns.protocol.gate import claim_call, pass_gate
from agentruns.protocol.ledger import lock_run, record
from agentruns.protocol.outcome import record_landed
from agentruns.protocol.start import start_run
from agentruns.protocol.stop import request_stop
from agentruns.states import RUN
from tests.acting import call, proposed, ticket
from tools.contract import Receipt
from tools.journal import Journal
from tools.world import journal
from tools.world.provider_record import TOKENS, RequestLog

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def world_dir(settings: Settings, tmp_path: Path) -> Path:
    settings.WORLD_DIR = tmp_path
    return tmp_path


def drilled(run: Run, owner: User, *, is_settled: bool = True) -> dict[str, Any]:
    """The report on a run that is stopped now, or was."""
    request_stop(run.pk, by=owner)
    plan = Plan("inbox", stop_at=(point("call:1:gate"),))
    return report_of(plan, Played(run.pk, 1.0, is_settled))


def has_effect(world_dir: Path, request_id: str) -> None:
    tickets = Journal(world_dir / journal.TICKETS)
    tickets.append("opened", id="T-1", title="Printer", body="", key=request_id)


def landed(run: Run) -> None:
    """Its call passes the gate, and lands by its receipt."""
    claim = claim_call(call(run).pk, epoch=run.epoch)
    assert claim is not None
    assert pass_gate(claim)
    record_landed(claim, Receipt({"id": "T-1"}, "Opened."))


def test_nothing_is_found_where_ledger_and_world_agree(owner: User, world_dir: Path) -> None:
    run = proposed(owner, ticket())
    landed(run)
    has_effect(world_dir, call(run).request_id)
    report = drilled(run, owner)
    assert (report["leaked"], report["breaches"], report["agreement"]) == ([], [], True)
    assert has_passed(report)
    assert "Ledger and world agree. Nothing leaked." in list(lines_of(report))


def test_an_effect_of_a_dropped_call_has_leaked(owner: User, world_dir: Path) -> None:
    run = proposed(owner, ticket())
    request_stop(run.pk, by=owner)
    has_effect(world_dir, call(run).request_id)
    report = drilled(run, owner)
    assert [(leak["call"], leak["by"]) for leak in report["leaked"]] == [(call(run).pk, "world")]
    assert [breach["invariant"] for breach in report["breaches"]] == ["I2"]
    assert not has_passed(report)
    assert any(line.startswith("LEAKED") for line in lines_of(report))


@pytest.mark.breaks_ledger
def test_a_gate_that_opened_after_stop_has_leaked(owner: User) -> None:
    run = proposed(owner, ticket())
    request_stop(run.pk, by=owner)
    with transaction.atomic():
        locked = lock_run(run.pk)
        record(locked, "call.commit_allowed", actor="executor", call=call(run), epoch=1)
    report = drilled(run, owner)
    assert [leak["by"] for leak in report["leaked"]] == ["ledger"]
    assert not has_passed(report)


def test_a_landed_call_without_its_effect_is_a_disagreement(owner: User) -> None:
    run = proposed(owner, ticket())
    landed(run)
    report = drilled(run, owner)
    assert [breach["invariant"] for breach in report["breaches"]] == ["I3"]
    assert not has_passed(report)
    assert any(line.startswith("DISAGREES (I3)") for line in lines_of(report))


def test_an_effect_that_nobody_recorded_is_a_disagreement(owner: User, world_dir: Path) -> None:
    run = proposed(owner)
    has_effect(world_dir, "req_of_nobody")
    report = drilled(run, owner)
    assert [breach["what"] for breach in report["breaches"]] == [
        "tickets.create req_of_nobody is in the world, and on no record"
    ]
    assert not report["agreement"]


def test_what_people_do_in_the_world_by_hand_is_nobodys_leak(owner: User, world_dir: Path) -> None:
    run = proposed(owner)
    has_effect(world_dir, "")
    assert has_passed(drilled(run, owner))


def test_tokens_after_stop_are_counted_at_the_provider(owner: User, world_dir: Path) -> None:
    run = proposed(owner, ticket())
    answer = RequestLog(world_dir, scenario="inbox", turn=0, run=run.pk)
    answer.token()
    stop = request_stop(run.pk, by=owner)
    with (world_dir / TOKENS).open("a") as record:
        for late in (100, 200, 300):  # milliseconds
            at = (stop.requested_at + timedelta(milliseconds=late)).isoformat()
            record.write(json.dumps({"request": answer.request, "n": 2, "at": at}) + "\n")
    answer.end("closed_by_client")
    report = drilled(run, owner)
    tokens = report["tokens"]
    assert (tokens["generated"], tokens["after_stop"], tokens["after_stop_250ms"]) == (4, 3, 1)
    assert report["stop"]["generation_closed_ms"] > 0


def test_a_run_that_does_not_come_to_rest_has_not_passed(owner: User) -> None:
    report = drilled(proposed(owner), owner, is_settled=False)
    assert not has_passed(report)
    assert "The run did not come to rest." in list(lines_of(report))


def test_people_are_told_of_the_parent_and_of_what_came_twice(owner: User) -> None:
    parent = proposed(owner)
    child = start_run(owner=owner, agent=parent.agent, goal="Help.", parent_id=parent.pk)
    request_stop(parent.pk, by=owner)
    twice = (("sweep:orphans", "agentruns.tasks.sweep"), ("stop:begin", ""))
    report = report_of(Plan("inbox", parent="report"), Played(child.pk, None, True, twice=twice))
    lines = list(lines_of(report))
    parent.refresh_from_db()
    label = RUN.states[parent.status].label
    assert f"Parent  “report”, {parent.pk}: {label}" in lines
    assert lines[3].startswith("Stop    answered in –;")  # by the sweeper: nobody waited for it
    assert "Twice   at sweep:orphans, agentruns.tasks.sweep" in lines
    assert "Twice   at stop:begin, by hand" in lines
