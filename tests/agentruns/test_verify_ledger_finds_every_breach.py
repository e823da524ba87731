"""manage.py verify_ledger: each invariant is broken in the database, and the breach is found.

The triggers are switched off for it: without that, the database refuses most of this.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pgtrigger
import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from agentruns.models import LedgerEvent, Run, StopRequest, ToolCall
from agentruns.verify import Breach, Scope, verify
from tests.agentruns.steps import Steps, now
from tools.world.journal import CHAT, MAIL, Journal

pytestmark = pytest.mark.breaks_ledger


def breaches(**scope: Any) -> dict[str, list[Breach]]:
    """What is wrong, by invariant; those that hold are not in it."""
    results = verify(Scope(**scope))
    return {each.invariant.code: each.breaches for each in results if each.breaches}


@contextmanager
def without_triggers() -> Iterator[None]:
    with pgtrigger.ignore():
        yield


def sql(statement: str, *values: Any) -> None:
    with without_triggers(), connection.cursor() as cursor:
        cursor.execute(statement, values)


@pytest.fixture
def run(steps: Steps) -> Run:
    """A stopped run: one call landed, one in doubt, one never started."""
    run, calls = steps.running("test.book", "test.post", "test.send")
    steps.act(calls[0])
    steps.stop(run)
    return now(run)


def test_a_run_as_the_protocol_made_it_breaks_nothing(run: Run) -> None:
    results = verify(Scope())

    assert [result.breaches for result in results] == [[]] * len(results)
    looked_at = {result.invariant.code for result in results if result.checked}
    assert looked_at == {"I1", "I4", "I5", "I6", "I7", "I11"}


def test_i1_a_call_that_passed_the_gate_after_the_stop(run: Run) -> None:
    call = ToolCall.objects.get(run=run, number=2)
    LedgerEvent.objects.create(
        run=run, kind="call.commit_allowed", actor="executor", call=call, data={"epoch": 1}
    )

    assert "after the stop" in breaches()["I1"][0].what


def test_i2_an_effect_that_nobody_has_on_record(run: Run, tmp_path: Path) -> None:
    Journal(tmp_path / MAIL).append("sent", message_id="<req_0@x>", to=["a@b.c"], subject="Hi")

    (breach,) = breaches(world_dir=tmp_path)["I2"]
    assert "on no record" in breach.what


def test_i2_an_effect_of_a_call_that_never_started(run: Run, tmp_path: Path) -> None:
    dropped = ToolCall.objects.get(run=run, number=2)
    _post(tmp_path, dropped.request_id)

    (breach,) = breaches(world_dir=tmp_path)["I2"]
    assert (breach.run_id, "is voided" in breach.what) == (run.pk, True)


def test_i2_the_same_effect_twice(run: Run, tmp_path: Path) -> None:
    landed = ToolCall.objects.get(run=run, number=1)
    for ts in ("1", "2"):
        _post(tmp_path, landed.request_id, ts)

    (breach,) = breaches(world_dir=tmp_path)["I2"]
    assert "2 times" in breach.what


def test_i3_a_landed_row_without_its_effect(run: Run, tmp_path: Path) -> None:
    ToolCall.objects.filter(run=run, number=1).update(tool="chat.post_message")

    assert "the world knows nothing" in breaches(world_dir=tmp_path)["I3"][0].what
    ToolCall.objects.filter(run=run, number=1).update(undo_state="undone")
    assert "I3" not in breaches(world_dir=tmp_path)


def test_i4_a_call_that_is_in_no_group(run: Run) -> None:
    sql("UPDATE agentruns_toolcall SET state = 'lost' WHERE number = 1")

    assert "in no group" in breaches()["I4"][0].what


def test_i4_a_call_that_is_undone_and_never_landed(run: Run) -> None:
    sql("UPDATE agentruns_toolcall SET undo_state = 'undone' WHERE number = 2")

    assert "is undone, and it is voided" in breaches()["I4"][0].what


def test_i5_a_stop_that_the_ledger_does_not_have(run: Run) -> None:
    _copy_of_the_stop(run, epoch=1)

    assert "in the ledger 0 times" in breaches()["I5"][0].what


def test_i5_a_stop_in_the_ledger_that_nobody_asked_for(run: Run) -> None:
    sql("DELETE FROM agentruns_stoprequest")

    whats = [breach.what for breach in breaches()["I5"]]
    assert whats == [
        "a stop of epoch 2 is in the ledger, and nobody's request",
        "is stopped_clean; nobody asked for it",
    ]


def test_i5_two_stops_of_one_epoch_in_the_ledger(run: Run) -> None:
    LedgerEvent.objects.create(run=run, kind="stop.requested", actor="x", data={"epoch": 2})

    assert "in the ledger 2 times" in breaches()["I5"][0].what


def test_i5_a_stop_without_its_answer(run: Run) -> None:
    StopRequest.objects.update(answer={})

    assert "no answer of its own" in breaches()["I5"][0].what


def test_i6_an_event_that_was_changed(run: Run) -> None:
    sql("UPDATE agentruns_ledgerevent SET actor = 'nobody' WHERE seq = 3")

    assert breaches() == {"I6": [Breach(run.pk, "event 3 is not what was written")]}


def test_i6_an_event_that_was_taken_out(run: Run) -> None:
    sql("DELETE FROM agentruns_ledgerevent WHERE kind = 'turn.started'")

    assert "event 3 is missing" in breaches()["I6"][0].what


def test_i6_an_event_that_was_taken_out_and_the_rest_renumbered(run: Run) -> None:
    sql("DELETE FROM agentruns_ledgerevent WHERE kind = 'turn.started'")
    sql("UPDATE agentruns_ledgerevent SET seq = seq + 1000 WHERE seq > 3")
    sql("UPDATE agentruns_ledgerevent SET seq = seq - 1001 WHERE seq > 1000")

    assert "event 3 is not chained to the one before" in breaches()["I6"][0].what


def test_i6_the_last_event_cut_off(run: Run) -> None:
    sql("DELETE FROM agentruns_ledgerevent WHERE seq = %s", run.ledger_seq)

    assert "its last event is another" in breaches()["I6"][-1].what


def test_i7_a_call_that_left_a_terminal_state(run: Run) -> None:
    sql("UPDATE agentruns_toolcall SET state = 'in_flight' WHERE state = 'voided'")

    assert "is in_flight; its ledger says voided" in breaches()["I7"][0].what


def test_i7_a_run_that_forgot_its_stop(run: Run) -> None:
    sql("UPDATE agentruns_run SET status = 'running'")

    assert "is running; its ledger says" in breaches()["I7"][0].what


UNPROVEN = {
    "a doubt in a clean run": "UPDATE agentruns_toolcall SET state = 'in_doubt' WHERE number = 2",
    "a call in flight": "UPDATE agentruns_toolcall SET state = 'in_flight' WHERE number = 2",
    "a driver at work": "UPDATE agentruns_run SET lease_holder = 'somebody'",
    "a dirty run without a doubt": "UPDATE agentruns_run SET status = 'stopped_dirty'",
    "a drain with nothing in flight": "UPDATE agentruns_run SET status = 'draining'",
    "a stop that no driver delays": "UPDATE agentruns_run SET status = 'cancel_requested'",
    "a finished run with a question": """
        UPDATE agentruns_run SET status = 'completed';
        UPDATE agentruns_toolcall SET state = 'awaiting_approval' WHERE number = 3""",
}


@pytest.mark.parametrize("statement", UNPROVEN.values(), ids=UNPROVEN)
def test_i7_a_run_that_says_what_its_rows_do_not(run: Run, statement: str) -> None:
    sql(statement)

    assert any("its rows say otherwise" in breach.what for breach in breaches()["I7"])


def test_i7_an_event_that_cannot_follow(run: Run) -> None:
    landed = ToolCall.objects.get(run=run, number=1)
    LedgerEvent.objects.create(run=run, kind="call.voided", actor="x", call=landed, data={})

    assert "call.voided (seq " in breaches()["I7"][0].what
    assert "out of landed" in breaches()["I7"][0].what


def test_i7_a_contradiction_without_its_mark(run: Run) -> None:
    ToolCall.objects.filter(number=1).update(contradicted_at=timezone.now())

    assert "contradiction is not marked" in breaches()["I7"][0].what


def test_i7_a_text_that_became_complete_after_it_was_cut(steps: Steps) -> None:
    run = steps.start()
    lease = steps.think(run)
    steps.stop(run)
    steps.give_back(lease)
    sql("UPDATE agentruns_output SET status = 'complete'")

    assert "the text of turn 1: is complete" in breaches()["I7"][0].what


def test_i11_two_calls_that_share_one_result(run: Run) -> None:
    ToolCall.objects.update(provider_call_id="the same")

    assert breaches()["I11"][0].run_id == run.pk


def test_only_what_began_since_a_moment_is_looked_at(run: Run) -> None:
    StopRequest.objects.update(answer={})
    later = timezone.now() + timedelta(seconds=1)

    assert breaches(since=later) == {}
    assert "I5" in breaches(since=later - timedelta(hours=1))


def test_the_command_exits_1_and_names_the_breach(run: Run, tmp_path: Path) -> None:
    StopRequest.objects.update(answer={})
    text, data = StringIO(), StringIO()

    with pytest.raises(CommandError, match="1 found"):
        call_command("verify_ledger", "--world", str(tmp_path), stdout=text)
    with pytest.raises(CommandError):
        call_command("verify_ledger", "--json", "--world", str(tmp_path), stdout=data)

    assert f"{run.pk}: the stop of epoch 2 has no answer of its own" in text.getvalue()
    found = {each["code"]: len(each["breaches"]) for each in json.loads(data.getvalue())}
    assert found == {"I1": 0, "I2": 0, "I3": 0, "I4": 0, "I5": 1, "I6": 0, "I7": 0, "I11": 0}


def test_the_command_prints_each_invariant_with_its_count(run: Run, tmp_path: Path) -> None:
    out = StringIO()
    call_command("verify_ledger", "--since", "2020-01-01", "--world", str(tmp_path), stdout=out)

    lines = out.getvalue().splitlines()
    assert [line.split()[1] for line in lines[1:]] == [
        "I1",
        "I2",
        "I3",
        "I4",
        "I5",
        "I6",
        "I7",
        "I11",
    ]
    assert f"{run.ledger_seq + 1} checked" in lines[6]


@pytest.mark.django_db
@pytest.mark.parametrize("wrong", [("--since", "yesterday"), ("--world", "/nowhere/at/all")])
def test_the_command_says_what_it_cannot_use(wrong: tuple[str, str]) -> None:
    with pytest.raises(CommandError, match=wrong[0]):
        call_command("verify_ledger", *wrong)


def _post(folder: Path, request_id: str, ts: str = "1") -> None:
    Journal(folder / CHAT).append(
        "posted", ts=ts, client_msg_id=request_id, channel="team", text="Hello"
    )


def _copy_of_the_stop(run: Run, *, epoch: int) -> None:
    at = datetime.now(UTC)
    StopRequest.objects.create(run=run, epoch=epoch, requested_at=at, no_new_effect_at=at)
