"""I2, I3 and I9 against the world's record, broken by hand."""

from pathlib import Path

import pytest

from agentruns.models import Run, ToolCall
from tests.agentruns.verify.breaking import (
    at_number,
    breaches,
    delete,
    post,
    sql,
    whats,
)
from tests.forging import rewrite
from tools.journal import Journal
from tools.world.journal import MAIL

pytestmark = pytest.mark.breaks_ledger


def as_chat(run: Run) -> None:
    """The world keeps a record of the calls of this tool."""
    rewrite(ToolCall.objects.filter(run=run), tool="chat.post_message")


def test_an_effect_that_nobody_has_on_record(run: Run, tmp_path: Path) -> None:
    Journal(tmp_path / MAIL).append("sent", message_id="<req_0@x>", to=["a@b.c"], subject="Hi")

    (what,) = whats("I2", world_dir=tmp_path)
    assert "on no record" in what


def test_an_effect_of_a_call_that_never_started(run: Run, tmp_path: Path) -> None:
    post(tmp_path, at_number(run, 2).request_id)

    (breach,) = breaches(world_dir=tmp_path)["I2"]
    assert (breach.run_id, "is voided" in breach.what) == (run.pk, True)


def test_the_same_effect_twice(run: Run, tmp_path: Path) -> None:
    for ts in ("1", "2"):
        post(tmp_path, at_number(run, 1).request_id, ts)

    (what,) = whats("I2", world_dir=tmp_path)
    assert "2 times" in what


def test_a_landed_row_without_its_effect(run: Run, tmp_path: Path) -> None:
    as_chat(run)

    assert "the world knows nothing" in whats("I3", world_dir=tmp_path)[0]
    rewrite(ToolCall.objects.filter(run=run, number=1), undo_state="undone")
    assert whats("I3", world_dir=tmp_path) == []


def test_items_count_to_their_call_and_are_there_once_each(batch: Run, tmp_path: Path) -> None:
    as_chat(batch)
    key = at_number(batch, 1).request_id
    for number in (1, 2, 3):
        post(tmp_path, f"{key}/{number}", str(number))
    assert not breaches(world_dir=tmp_path).keys() & {"I2", "I3"}

    post(tmp_path, f"{key}/3", "4")

    (what,) = whats("I2", world_dir=tmp_path)
    assert f"{key}/3" in what
    assert "2 times" in what


def test_an_item_that_the_call_does_not_have(batch: Run, tmp_path: Path) -> None:
    post(tmp_path, f"{at_number(batch, 1).request_id}/4")

    assert "has no such item" in whats("I2", world_dir=tmp_path)[0]


def test_an_item_of_a_call_that_is_held_after_it(batch: Run, tmp_path: Path) -> None:
    post(tmp_path, f"{at_number(batch, 1).request_id}/1")
    sql("UPDATE agentruns_toolcall SET state = 'approved'")
    assert whats("I2", world_dir=tmp_path) == []

    sql("UPDATE agentruns_toolcall SET state = 'frozen'")

    assert "is frozen" in whats("I2", world_dir=tmp_path)[0]


def test_an_item_on_record_that_is_not_there(batch: Run, tmp_path: Path) -> None:
    as_chat(batch)
    key = at_number(batch, 1).request_id
    for number in (1, 3):
        post(tmp_path, f"{key}/{number}", str(number))

    (what,) = whats("I3", world_dir=tmp_path)
    assert f"['{key}/2']" in what


def test_an_undo_without_its_effect(undone: Run, tmp_path: Path) -> None:
    as_chat(undone)
    post(tmp_path, at_number(undone, 1).request_id)

    (what,) = whats("I9", world_dir=tmp_path)
    assert "is undone; in the world it stands" in what
    delete(tmp_path)
    assert whats("I9", world_dir=tmp_path) == []


def test_an_undo_that_had_its_effect_twice(undone: Run, tmp_path: Path) -> None:
    as_chat(undone)
    post(tmp_path, at_number(undone, 1).request_id)
    for _ in range(2):
        delete(tmp_path)

    assert "taken out of the world 2 times" in whats("I9", world_dir=tmp_path)[0]


def test_a_long_record_is_read_in_parts(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tools.world.record.PART_SIZE", 200)
    as_chat(run)
    landed, dropped = at_number(run, 1), at_number(run, 2)
    for number in range(20):
        post(tmp_path, f"req_{number}", str(number))
    post(tmp_path, dropped.request_id, "20")

    found = breaches(world_dir=tmp_path)

    orphans = [breach for breach in found["I2"] if "on no record" in breach.what]
    assert (len(orphans), len(found["I2"])) == (20, 21)
    assert [landed.pk in breach.what for breach in found["I3"]] == [True]
