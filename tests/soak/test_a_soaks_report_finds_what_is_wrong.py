"""Zeros prove something only if a report finds what is there to be found."""

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from pytest_django.fixtures import Settings

from agentruns.models import Run
from agentruns.protocol.gate import claim_call, pass_gate
from agentruns.protocol.items import CallItems
from agentruns.protocol.ledger import lock_run, record
from agentruns.protocol.outcome import record_failed, record_landed
from agentruns.protocol.stop import request_stop
from agentruns.soak.people import Tally
from agentruns.soak.table import lines_of
from agentruns.soak.truth import ZEROS, has_passed, report_of
from tests.acting import call, proposed, ticket
from tools.contract import Receipt
from tools.journal import Journal
from tools.world import journal

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def world_dir(settings: Settings, tmp_path: Path) -> Path:
    settings.WORLD_DIR = tmp_path
    return tmp_path


@pytest.fixture
def run(owner: User) -> Run:
    """It has asked for one ticket."""
    return proposed(owner, ticket())


def found(world_dir: Path, tally: Tally | None = None) -> dict[str, int]:
    """What a report on all that there is finds, without its zeros."""
    report = report_of(tally or Tally(), world_dir)
    assert has_passed(report) == (not report["findings"])
    said = list(lines_of({"seed": 1, **report}))
    assert ("To plan the same again: manage.py soak --seed 1" in said) != has_passed(report)
    return {kind: report[kind] for kind in ZEROS if report[kind]}


def effect(world_dir: Path, run: Run) -> None:
    tickets = Journal(world_dir / journal.TICKETS)
    tickets.append("opened", id="T-1", title="Printer", body="", key=call(run).request_id)


def passed(run: Run) -> Any:
    claim = claim_call(call(run).pk, epoch=run.epoch)
    assert claim is not None
    assert pass_gate(claim)
    return claim


def test_nothing_is_found_where_ledger_and_world_agree(
    run: Run, owner: User, world_dir: Path
) -> None:
    record_landed(passed(run), Receipt({"id": "T-1"}, "Opened."))
    effect(world_dir, run)
    request_stop(run.pk, by=owner)
    assert found(world_dir) == {}


def test_an_effect_of_a_dropped_call_has_leaked(run: Run, owner: User, world_dir: Path) -> None:
    request_stop(run.pk, by=owner)
    effect(world_dir, run)
    assert found(world_dir)["leaked"] == 1


@pytest.mark.breaks_ledger
def test_a_gate_that_opened_after_stop_has_leaked(run: Run, owner: User, world_dir: Path) -> None:
    request_stop(run.pk, by=owner)
    with transaction.atomic():
        record(lock_run(run.pk), "call.commit_allowed", actor="executor", call=call(run), epoch=1)
    assert found(world_dir)["leaked"] == 1


def test_an_effect_of_a_call_that_failed_is_lost(run: Run, owner: User, world_dir: Path) -> None:
    record_failed(passed(run), "refused", "No.")
    effect(world_dir, run)
    request_stop(run.pk, by=owner)
    assert found(world_dir)["lost"] == 1


def test_a_landed_call_without_its_effect_is_lost(run: Run, owner: User, world_dir: Path) -> None:
    record_landed(passed(run), Receipt({"id": "T-1"}, "Opened."))
    request_stop(run.pk, by=owner)
    assert found(world_dir)["lost"] == 1


def test_the_items_of_a_call_are_its_effects(owner: User, world_dir: Path) -> None:
    args = {"channels": ["#team", "#general"], "text": "We move on Friday."}
    run = proposed(owner, ("chat.announce", args))
    claim, chat = passed(run), Journal(world_dir / journal.CHAT)
    for number, channel in enumerate(args["channels"], start=1):
        key = f"{call(run).request_id}/{number}"
        chat.append("posted", ts=f"{number}", client_msg_id=key, channel=channel, text="We move")
        CallItems(call(run).pk, claim.token).land(channel, {"id": key})
    record_landed(claim, Receipt({}, "Posted."))
    request_stop(run.pk, by=owner)
    assert found(world_dir) == {}


def test_the_same_effect_twice_is_doubled(run: Run, owner: User, world_dir: Path) -> None:
    record_landed(passed(run), Receipt({"id": "T-1"}, "Opened."))
    request_stop(run.pk, by=owner)
    effect(world_dir, run)
    effect(world_dir, run)
    assert found(world_dir)["doubled"] == 1


def test_a_run_that_still_acts_is_stuck(run: Run, world_dir: Path) -> None:
    assert found(world_dir) == {"stuck": 1}


def test_what_people_must_never_see_is_a_trouble(run: Run, owner: User, world_dir: Path) -> None:
    request_stop(run.pk, by=owner)
    tally = Tally()
    tally.accuse("two presses got different answers")
    assert found(world_dir, tally) == {"troubles": 1}
