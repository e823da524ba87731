"""What each tool promises, whoever wrote it: tried against the demo's real servers."""

from dataclasses import replace

import pytest
from django.utils import translation

from tests.contract.conftest import SECRET, Trial, acts, only, with_secrets
from tests.contract.hands import HANDS
from tools.contract import (
    CannotUndo,
    Changed,
    Draft,
    NotLanded,
    Receipt,
    Tier,
    UndoReceipt,
    Unknown,
)
from tools.errors import NoEffect
from tools.registry import RegisteredTool
from tools.secrets import secrets_of

LONGEST_LINE = 250  # characters


def looks_up(item: RegisteredTool) -> bool:
    return item.has_lookup and acts(item)


def undoes(item: RegisteredTool) -> bool:
    return item.has_compensate


def asks_by_arguments(item: RegisteredTool) -> bool:
    return item.asks_by_arguments


def prepares(item: RegisteredTool) -> bool:
    return item.has_prepare


def reads(item: RegisteredTool) -> bool:
    return item.tier is Tier.READ_ONLY


def is_chinese(text: str) -> bool:
    return any("\u4e00" <= sign <= "\u9fff" for sign in text)


# --- What it says of itself ----------------------------------------------------------------------
def test_its_schema_describes_an_object_and_its_examples_fit(trial: Trial) -> None:
    schema = trial.tool.json_schema()
    assert schema["type"] == "object"
    assert schema.get("description"), "the model is told what the tool is for"
    for example in schema["examples"]:
        trial.tool.parse(example)


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_it_is_described_in_one_plain_line_in_each_language(trial: Trial, language: str) -> None:
    with translation.override(language):
        said = trial.tool.describe(trial.args)
        about = [trial.tool.title, trial.tool.explains]
        about += [trial.tool.undo_note] if acts(trial.tool) else []
        assert "\n" not in said
        assert 0 < len(said) <= LONGEST_LINE
        assert all(about)
        for text in (said, *about):
            assert is_chinese(text) == (language == "zh-hans"), text


@only(asks_by_arguments)
@pytest.mark.parametrize("is_there", [True, False])
def test_whether_it_asks_is_told_by_the_arguments_alone(trial: Trial, is_there: bool) -> None:
    """It looks at nothing outside: nobody out there hears of a call before a person agreed."""
    if not is_there:
        trial.scene.go_away()
    assert isinstance(trial.tool.needs_approval(trial.raw), str)
    assert trial.tool.needs_approval({"no such": "argument"}), "what does not fit needs approval"


# --- Before the effect ---------------------------------------------------------------------------
@only(prepares)
def test_what_it_prepares_nobody_outside_can_notice(trial: Trial) -> None:
    assert trial.prepare() is not None
    assert trial.landed() == 0
    if trial.tool.has_lookup:
        assert trial.lookup() == NotLanded()


@only(prepares)
def test_void_leaves_nothing_and_needs_the_key_alone(trial: Trial) -> None:
    trial.prepare()
    for _ in range(2):
        trial.impl.void(trial.ctx, Draft())
    assert trial.landed() == 0
    if trial.tool.has_drafts:
        assert trial.ctx.request_id not in trial.tool.drafts()


@only(lambda item: item.has_drafts)
def test_what_it_leaves_outside_can_be_found(trial: Trial) -> None:
    trial.prepare()
    assert trial.ctx.request_id in trial.tool.drafts()
    trial.impl.void(trial.ctx, Draft())


@only(prepares)
def test_a_draft_that_is_gone_is_made_anew(trial: Trial) -> None:
    draft = trial.prepare()
    trial.impl.void(trial.ctx, draft or Draft())
    trial.commit(draft)
    assert trial.landed() == 1


# --- The effect ----------------------------------------------------------------------------------
@only(acts)
def test_it_has_its_effect_once_and_says_so(trial: Trial) -> None:
    receipt = trial.act()
    assert receipt.response
    assert trial.landed() == 1
    assert {each.tool for each in trial.scene.effects(trial.ctx)} == {trial.tool.name}


@only(reads)
def test_a_read_has_no_effect(trial: Trial) -> None:
    assert trial.act().response
    assert trial.scene.effects(trial.ctx) == []


@only(acts)
def test_the_same_key_again_lands_once_where_the_protocol_has_one(trial: Trial) -> None:
    first = trial.act()
    second = trial.act()
    assert trial.landed() == (2 if trial.hands.lands_each_time else 1)
    if not trial.hands.lands_each_time:
        assert first.data == second.data


@only(acts)
def test_it_says_when_it_sends_and_nothing_has_left_before(trial: Trial) -> None:
    before: list[int] = []
    trial.ctx = replace(trial.ctx, sending=lambda: before.append(trial.landed()))
    trial.act()
    assert before, f"{trial.tool.name}: call ctx.sending() right before the effect leaves"
    assert before[0] == 0


@only(acts)
def test_it_does_not_send_when_it_is_told_that_it_is_too_late(trial: Trial) -> None:
    def too_late() -> None:
        raise NoEffect("too_late", "Its time is over.")

    draft = trial.prepare()
    trial.ctx = replace(trial.ctx, sending=too_late)
    with pytest.raises(NoEffect, match="Its time is over"):
        trial.commit(draft)
    assert trial.landed() == 0


@only(acts)
def test_a_system_that_cannot_be_reached_is_known_to_have_done_nothing(trial: Trial) -> None:
    trial.scene.go_away()
    with pytest.raises(NoEffect):
        trial.act()


@only(lambda item: item.has_secrets)
def test_no_secret_is_in_what_it_leaves_in_the_ledger(trial: Trial) -> None:
    trial.raw = with_secrets(trial.tool, trial.raw)
    assert SECRET in [value for _path, value in secrets_of(trial.args)]
    kept = f"{trial.prepare()}{trial.act()}{trial.tool.describe(trial.args)}"
    assert SECRET not in kept


# --- Looking it up -------------------------------------------------------------------------------
@only(looks_up)
def test_a_look_up_tells_what_landed_from_what_did_not(trial: Trial) -> None:
    assert trial.lookup() == NotLanded()
    receipt = trial.act()
    found = trial.lookup()
    assert isinstance(found, Receipt)
    known = found.data["items"] if trial.tool.has_items else found.data
    assert known == (receipt.data["items"] if trial.tool.has_items else receipt.data)
    assert trial.landed() == 1, "a look-up never sends"


@only(looks_up)
def test_a_look_up_of_a_system_that_is_away_decides_nothing(trial: Trial) -> None:
    trial.scene.go_away()
    assert isinstance(trial.lookup(), Unknown)


# --- Undo ----------------------------------------------------------------------------------------
@only(undoes)
def test_undo_takes_it_back_and_a_second_one_changes_nothing(trial: Trial) -> None:
    """F1."""
    receipt = trial.act()
    first = trial.undo(receipt)
    assert isinstance(first, UndoReceipt)
    assert first.note, "people are told what it did"
    once = trial.scene.effects(trial.ctx)
    assert trial.landed() == 0
    assert isinstance(trial.undo(receipt), UndoReceipt)
    assert trial.scene.effects(trial.ctx) == once


@only(undoes)
def test_undo_leaves_alone_what_somebody_changed_since(trial: Trial) -> None:
    """F4."""
    change = HANDS[trial.tool.name].change
    assert change, f"say in tests/contract/hands.py how somebody changes what {trial.tool.name} did"
    receipt = trial.act()
    change(trial.scene, trial.ctx, receipt)
    result = trial.undo(receipt)
    assert isinstance(result, Changed)
    assert result.what, "people are told what was found"
    assert trial.landed() == 1


@only(undoes)
def test_undo_without_a_receipt_says_that_it_cannot(trial: Trial) -> None:
    assert isinstance(trial.undo(Receipt()), CannotUndo)
