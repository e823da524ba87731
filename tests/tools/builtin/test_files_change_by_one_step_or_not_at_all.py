"""Writing, moving and deleting in one folder: what is staged, done, found again and undone."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from pytest_django.fixtures import Settings

from tests.tools.builtin.calls import lookup, prepare, tool, undo
from tests.tools.conftest import NewContext
from tools.builtin.folder import OWN, Folder
from tools.contract import (
    CannotUndo,
    Changed,
    Context,
    Draft,
    NotLanded,
    Receipt,
    UndoReceipt,
    Unknown,
)
from tools.errors import BadArguments, NoEffect
from tools.world.record import Effect, effects

Tree = dict[str, str]
START: Tree = {"prices.csv": "chair,79\n", "old/todo.txt": "Order chairs\n"}
# Each call, and what the folder has after it.
CALLS: dict[str, tuple[str, dict[str, Any], Tree]] = {
    "new": (
        "files.write",
        {"path": "notes/neu zäh.md", "text": "Grüße\n"},
        START | {"notes/neu zäh.md": "Grüße\n"},
    ),
    "over": (
        "files.write",
        {"path": "prices.csv", "text": "chair,89\n", "replace": True},
        START | {"prices.csv": "chair,89\n"},
    ),
    "move": (
        "files.move",
        {"path": "prices.csv", "to": "archive/2025/prices.csv"},
        {"old/todo.txt": "Order chairs\n", "archive/2025/prices.csv": "chair,79\n"},
    ),
    "delete": ("files.delete", {"path": "old/todo.txt"}, {"prices.csv": "chair,79\n"}),
}
BAD_NAMES = ["../x", "a/../x", "/x", "a//x", "a/", "./x", ".x", "a/.x", f"{OWN}/log.jsonl", "x."]
BAD_NAMES += [
    "",
    " x",
    "a\\x",
    "a:x",
    "a/" * 8 + "x",
    "a\x00",
    "a\n",
    "a\u202e",
    "a\u3164b",
    "x" * 201,
    "ä" * 101,
]
every_call = pytest.mark.parametrize(("name", "raw", "after"), CALLS.values(), ids=CALLS)


@pytest.fixture
def folder(tmp_path: Path, settings: Settings) -> Path:
    """The folder of a demo world, with what START says in it."""
    folder = tmp_path / "files"
    for name, text in START.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    settings.FILES_DIR = folder
    return folder


def tree(folder: Path) -> Tree:
    """What people see in the folder."""
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in folder.rglob("*")
        if path.is_file() and OWN not in path.parts
    }


def on_record(folder: Path, ctx: Context) -> list[Effect]:
    return [each for each in effects(folder.parent) if each.request_id == ctx.request_id]


def arguments(name: str, raw: dict[str, Any]) -> BaseModel:
    return tool(name).parse(raw)


def act(name: str, ctx: Context, raw: dict[str, Any]) -> Receipt:
    args = arguments(name, raw)
    return tool(name).impl.commit(ctx, args, prepare(name, ctx, args))


@every_call
def test_what_is_staged_is_seen_by_nobody_and_dropped_by_its_request_id_alone(
    name: str, raw: dict[str, Any], after: Tree, folder: Path, new_context: NewContext
) -> None:
    ctx, impl = new_context(), tool(name).impl
    prepare(name, ctx, arguments(name, raw))
    assert tree(folder) == START
    assert list(impl.drafts()) == [ctx.request_id]  # type: ignore[attr-defined]
    assert lookup(name, ctx) == NotLanded()

    for _ in range(2):
        impl.void(ctx, Draft())  # type: ignore[attr-defined]

    assert list(impl.drafts()) == []  # type: ignore[attr-defined]
    assert tree(folder) == START
    assert not list((folder / OWN / "versions").iterdir())


@every_call
def test_a_change_lands_once_and_is_found(
    name: str, raw: dict[str, Any], after: Tree, folder: Path, new_context: NewContext
) -> None:
    ctx, args = new_context(), arguments(name, raw)
    receipt = act(name, ctx, raw)
    assert tree(folder) == after
    assert lookup(name, ctx) == receipt
    assert list(tool(name).impl.drafts()) == []  # type: ignore[attr-defined]
    for draft in (None, Draft(), prepare(name, ctx, args)):
        assert tool(name).impl.commit(ctx, args, draft) == receipt
    assert tree(folder) == after
    (effect,) = on_record(folder, ctx)
    assert (effect.tool, effect.undone_at) == (name, None)


@every_call
def test_a_draft_that_was_dropped_is_made_anew(
    name: str, raw: dict[str, Any], after: Tree, folder: Path, new_context: NewContext
) -> None:
    ctx, args = new_context(), arguments(name, raw)
    draft = prepare(name, ctx, args)
    tool(name).impl.void(ctx, Draft())  # type: ignore[attr-defined]
    tool(name).impl.commit(ctx, args, draft)
    assert tree(folder) == after


@every_call
def test_undo_makes_it_as_it_was_and_twice_is_once(
    name: str, raw: dict[str, Any], after: Tree, folder: Path, new_context: NewContext
) -> None:
    ctx = new_context()
    receipt = act(name, ctx, raw)
    first = undo(name, ctx, receipt)
    assert isinstance(first, UndoReceipt)
    assert first.note
    assert tree(folder) == START
    (folder / "prices.csv").write_text("chair,99\n")
    assert undo(name, ctx, receipt) == first
    assert tree(folder)["prices.csv"] == "chair,99\n"
    (effect,) = on_record(folder, ctx)
    assert effect.removals == 1


@every_call
def test_undo_leaves_alone_what_somebody_changed_since(
    name: str, raw: dict[str, Any], after: Tree, folder: Path, new_context: NewContext
) -> None:
    ctx = new_context()
    receipt = act(name, ctx, raw)
    path = folder / str(raw.get("to", raw["path"]))
    path.write_text("Mine!\n")
    result = undo(name, ctx, receipt)
    assert isinstance(result, Changed)
    assert path.name in result.what
    assert path.read_text() == "Mine!\n"
    (effect,) = on_record(folder, ctx)
    assert effect.undone_at is None


@every_call
def test_a_folder_in_the_place_of_the_file_is_a_change_too(
    name: str, raw: dict[str, Any], after: Tree, folder: Path, new_context: NewContext
) -> None:
    ctx = new_context()
    receipt = act(name, ctx, raw)
    path = folder / str(raw.get("to", raw["path"]))
    path.unlink(missing_ok=True)
    path.mkdir()
    assert isinstance(undo(name, ctx, receipt), Changed)
    assert path.is_dir()


@every_call
def test_a_file_that_somebody_changed_after_it_was_staged_is_left_alone(
    name: str, raw: dict[str, Any], after: Tree, folder: Path, new_context: NewContext
) -> None:
    ctx, args = new_context(), arguments(name, raw)
    draft = prepare(name, ctx, args)
    path = folder / raw["path"]
    path.parent.mkdir(exist_ok=True)
    path.write_text("Mine!\n")
    with pytest.raises(NoEffect) as caught:
        tool(name).impl.commit(ctx, args, draft)
    assert caught.value.code == "changed"
    assert path.read_text() == "Mine!\n"
    assert on_record(folder, ctx) == []
    assert lookup(name, ctx) == NotLanded()


@pytest.mark.parametrize(("name", "raw"), [CALLS["new"][:2], CALLS["move"][:2]])
def test_undo_takes_the_folders_that_were_made_for_it_unless_somebody_uses_them(
    name: str, raw: dict[str, Any], folder: Path, new_context: NewContext
) -> None:
    before = {path for path in folder.rglob("*") if path.is_dir() and OWN not in path.parts}
    ctx, made = new_context(), (folder / str(raw.get("to", raw["path"]))).parent
    undo(name, ctx, act(name, ctx, raw))
    now = {path for path in folder.rglob("*") if path.is_dir() and OWN not in path.parts}
    assert now == before
    ctx = new_context()
    receipt = act(name, ctx, raw)
    (made / "mine.txt").write_text("Mine!\n")
    assert isinstance(undo(name, ctx, receipt), UndoReceipt)
    assert (made / "mine.txt").exists()


def test_undo_without_a_usable_receipt_or_version_says_so(
    folder: Path, new_context: NewContext
) -> None:
    name, raw, after = CALLS["over"]
    ctx = new_context()
    assert isinstance(undo(name, ctx, Receipt()), CannotUndo)
    receipt = act(name, ctx, raw)
    for version in (folder / OWN / "versions").iterdir():
        version.unlink()
    assert isinstance(undo(name, ctx, receipt), CannotUndo)
    assert tree(folder) == after


@pytest.mark.parametrize(
    ("name", "raw", "code"),
    [
        ("files.write", {"path": "prices.csv", "text": "x"}, "exists"),
        ("files.move", {"path": "prices.csv", "to": "old/todo.txt"}, "exists"),
        ("files.move", {"path": "nowhere.txt", "to": "new.txt"}, "missing"),
        ("files.move", {"path": "prices.csv", "to": "prices.csv/new.txt"}, "no_file"),
        ("files.delete", {"path": "nowhere.txt"}, "missing"),
        ("files.delete", {"path": "old"}, "no_file"),
    ],
)
def test_what_cannot_be_done_is_known_before_anything_is(
    name: str, raw: dict[str, Any], code: str, folder: Path, new_context: NewContext
) -> None:
    ctx = new_context()
    with pytest.raises(NoEffect) as caught:
        act(name, ctx, raw)
    assert caught.value.code == code
    assert tree(folder) == START
    assert list(tool(name).impl.drafts()) == []  # type: ignore[attr-defined]


@pytest.mark.parametrize("path", BAD_NAMES)
def test_a_name_that_leads_elsewhere_or_cannot_be_read_is_refused(path: str) -> None:
    for name, raw in (
        ("files.write", {"path": path, "text": ""}),
        ("files.delete", {"path": path}),
        ("files.move", {"path": "a", "to": path}),
    ):
        with pytest.raises(BadArguments):
            arguments(name, raw)


def make_link(folder: Path, outside: Path) -> None:
    (folder / "linked").symlink_to(outside)


def make_link_to_the_file(folder: Path, outside: Path) -> None:
    (folder / "linked").mkdir()
    (folder / "linked" / "secret.txt").symlink_to(outside / "secret.txt")


@pytest.mark.parametrize("link", [make_link, make_link_to_the_file])
def test_a_link_does_not_lead_outside(
    link: Callable[[Path, Path], None], folder: Path, tmp_path: Path, new_context: NewContext
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text("secret")
    link(folder, outside)
    for name, raw in (
        ("files.write", {"path": "linked/secret.txt", "text": "x", "replace": True}),
        ("files.write", {"path": "linked/secret.txt/new.txt", "text": "x"}),
        ("files.delete", {"path": "linked/secret.txt"}),
        ("files.move", {"path": "linked/secret.txt", "to": "mine.txt"}),
    ):
        with pytest.raises(NoEffect) as caught:
            act(name, new_context(), raw)
        assert caught.value.code == "no_file"
    assert tree(outside) == {"secret.txt": "secret"}


def test_a_pipe_is_no_file_and_nobody_waits_for_it(folder: Path, new_context: NewContext) -> None:
    os.mkfifo(folder / "pipe")
    with pytest.raises(NoEffect):
        act("files.delete", new_context(), {"path": "pipe"})


def test_a_folder_that_cannot_be_used_decides_nothing(
    folder: Path, settings: Settings, new_context: NewContext
) -> None:
    settings.FILES_DIR = folder / "prices.csv" / "files"
    ctx = new_context()
    with pytest.raises(NoEffect):
        act("files.delete", ctx, {"path": "x"})
    assert isinstance(lookup("files.delete", ctx), Unknown)


def test_a_folder_in_use_is_passing_trouble(folder: Path, new_context: NewContext) -> None:
    name, raw, _after = CALLS["new"]
    ctx = new_context(timeout=0.05)
    with Folder(folder).locked(1.0):
        with pytest.raises(NoEffect) as caught:
            act(name, ctx, raw)
        assert isinstance(lookup(name, ctx), Unknown)
    assert (caught.value.code, caught.value.is_passing) == ("busy", True)


def test_a_file_keeps_its_rights(folder: Path, new_context: NewContext) -> None:
    (folder / "prices.csv").chmod(0o640)
    name, raw, _after = CALLS["over"]
    act(name, new_context(), raw)
    assert (folder / "prices.csv").stat().st_mode & 0o777 == 0o640
