"""Servers that ignore a filter answer with what others have written: none of it is ours (N17)."""

from collections.abc import Iterator

import pytest

from tests.contract.blind import without_filters
from tests.contract.conftest import Trial, acts, only
from tools.contract import Receipt, UndoReceipt, Unknown
from tools.registry import RegisteredTool

# Their look-up asks for a list, and cannot see whether that is all of it.
ASK_FOR_A_LIST = (
    "chat.post_message",
    "chat.announce",
    "tickets.create",
    "payments.authorize_capture",
)


def looks_up(item: RegisteredTool) -> bool:
    return item.has_lookup and acts(item)


def undoes(item: RegisteredTool) -> bool:
    return item.has_compensate and looks_up(item)


@pytest.fixture(autouse=True)
def _blind(trial: Trial) -> Iterator[None]:
    with without_filters(trial.scene):
        yield


@only(looks_up)
def test_what_did_not_land_is_not_found_among_what_others_did(trial: Trial) -> None:
    trial.of_another().act()
    found = trial.lookup()
    assert not isinstance(found, Receipt)
    if trial.tool.name in ASK_FOR_A_LIST:
        assert isinstance(found, Unknown), "a list of others' records is no proof"


@only(looks_up)
def test_what_landed_is_found_between_older_and_newer_ones(trial: Trial) -> None:
    trial.of_another().act()
    receipt = trial.act()
    trial.of_another().act()
    found = trial.lookup()
    if trial.tool.has_items:  # there may have been one more, of which nobody knows
        assert isinstance(found, Unknown)
    else:
        assert isinstance(found, Receipt)
        assert found.data == receipt.data


@only(undoes)
def test_undo_leaves_alone_what_others_did(trial: Trial) -> None:
    older, newer = trial.of_another(), trial.of_another()
    older.act()
    receipt = trial.act()
    newer.act()
    found = trial.lookup()
    result = trial.undo(found if isinstance(found, Receipt) else receipt)
    assert isinstance(result, UndoReceipt)
    assert (older.landed(), trial.landed(), newer.landed()) == (1, 0, 1)


@only(lambda item: item.has_drafts)
def test_void_leaves_alone_what_others_prepared(trial: Trial) -> None:
    other = trial.of_another()
    other.prepare()
    draft = trial.prepare()
    assert draft is not None
    try:
        trial.impl.void(trial.ctx, draft)
    except ValueError:  # it says so where it cannot know that this was all
        assert trial.tool.name in ASK_FOR_A_LIST
    drafts = trial.tool.drafts()
    assert other.ctx.request_id in drafts
    assert trial.ctx.request_id not in drafts
    other.impl.void(other.ctx, draft) if trial.tool.name not in ASK_FOR_A_LIST else None
