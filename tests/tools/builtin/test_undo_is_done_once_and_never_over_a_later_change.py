from pathlib import Path

import httpx2
import pytest

from tests.tools.builtin.calls import WITH_LOOKUP, act, undo
from tests.tools.conftest import NewContext, RunningWorld
from tools.contract import CannotUndo, Changed, Context, Receipt, UndoReceipt
from tools.gitcli import git


@pytest.mark.parametrize("name", WITH_LOOKUP)
def test_undo_takes_the_effect_back_and_a_second_undo_changes_nothing(
    name: str, world: RunningWorld, new_context: NewContext
) -> None:
    """Case F1."""
    ctx = new_context()
    receipt = act(name, ctx)
    assert isinstance(undo(name, ctx, receipt), UndoReceipt)
    (once,) = world.effects(ctx)
    assert once.undone_at is not None
    assert isinstance(undo(name, ctx, receipt), UndoReceipt)
    assert world.effects(ctx) == [once]


@pytest.mark.parametrize("name", WITH_LOOKUP)
def test_undo_leaves_alone_what_somebody_changed_since(
    name: str, world: RunningWorld, new_context: NewContext, tmp_path: Path
) -> None:
    """Case F4."""
    ctx = new_context()
    receipt = act(name, ctx)
    CHANGES[name](world, ctx, receipt, tmp_path)
    result = undo(name, ctx, receipt)
    assert isinstance(result, Changed)
    assert result.what
    (effect,) = world.effects(ctx)
    assert effect.undone_at is None


@pytest.mark.parametrize("name", WITH_LOOKUP)
def test_undo_without_a_usable_receipt_says_so(
    name: str, world: RunningWorld, new_context: NewContext
) -> None:
    assert isinstance(undo(name, new_context(), Receipt({})), CannotUndo)


def test_a_closed_ticket_is_named(world: RunningWorld, new_context: NewContext) -> None:
    ctx = new_context()
    receipt = act("tickets.create", ctx)
    result = undo("tickets.create", ctx, receipt)
    assert result.note == (
        f"The ticket {receipt.data['id']} “Printer” was closed with a note; it stays in the list."
    )


def test_undo_of_a_branch_whose_draft_was_refused_deletes_the_branch(
    world: RunningWorld, new_context: NewContext
) -> None:
    ctx = new_context()
    receipt = act("git.open_draft", ctx)
    partial = Receipt(receipt.data | {"draft": None})
    assert isinstance(undo("git.open_draft", ctx, partial), UndoReceipt)
    branch = f"refs/heads/{receipt.data['branch']}"
    assert git("ls-remote", "--", str(world.folder / "repo.git"), branch, timeout=10) == ""


def _move_the_meeting(world: RunningWorld, ctx: Context, receipt: Receipt, tmp: Path) -> None:
    href = receipt.data["href"]
    ics = httpx2.get(href).text.replace("SUMMARY:", "SUMMARY:Moved ")
    httpx2.put(href, content=ics.encode()).raise_for_status()


def _edit_the_message(world: RunningWorld, ctx: Context, receipt: Receipt, tmp: Path) -> None:
    kept = receipt.data.get("items", {}).get("#team", receipt.data)
    body = {"channel": kept["channel"], "ts": kept["ts"], "text": "Wednesday!"}
    assert httpx2.post(f"{world.http}/chat/chat.update", json=body).json()["ok"]


def _work_on_the_ticket(world: RunningWorld, ctx: Context, receipt: Receipt, tmp: Path) -> None:
    url = f"{world.http}/tickets/tickets/{receipt.data['id']}"
    httpx2.patch(url, json={"note": "I am on it."}).raise_for_status()


def _pay_some_of_it_back(world: RunningWorld, ctx: Context, receipt: Receipt, tmp: Path) -> None:
    url = f"{world.http}/payments/captures/{receipt.data['capture']}/refund"
    httpx2.post(url, json={"amount": 1_000}).raise_for_status()


def _add_to_the_branch(world: RunningWorld, ctx: Context, receipt: Receipt, tmp: Path) -> None:
    branch, work = receipt.data["branch"], tmp / "colleague"
    repo = str(world.folder / "repo.git")
    git("clone", "--quiet", "--branch", branch, "--", repo, str(work), timeout=20)
    git("commit", "--quiet", "--allow-empty", "-m", "My part", cwd=work, timeout=20)
    git("push", "--quiet", "origin", branch, cwd=work, timeout=20)


def _replace_the_delivery(world: RunningWorld, ctx: Context, receipt: Receipt, tmp: Path) -> None:
    url = f"{world.http}/hooks/deliveries/{ctx.request_id}"
    httpx2.put(url, json={"event": "another"}).raise_for_status()


CHANGES = {
    "calendar.cancel_event": _move_the_meeting,
    "calendar.create_event": _move_the_meeting,
    "calendar.move_event": _move_the_meeting,
    "chat.announce": _edit_the_message,
    "chat.post_message": _edit_the_message,
    "payments.authorize_capture": _pay_some_of_it_back,
    "tickets.create": _work_on_the_ticket,
    "git.open_draft": _add_to_the_branch,
    "http.hooks": _replace_the_delivery,
}
