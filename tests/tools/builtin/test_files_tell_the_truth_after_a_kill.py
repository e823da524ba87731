"""A process that changes a file is killed (-9) between two steps: what is said then is true."""

import dataclasses
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pytest_django.fixtures import Settings

from tests.tools.builtin.calls import lookup, prepare, tool, undo
from tests.tools.conftest import NewContext
from tools.builtin.folder import OWN
from tools.contract import Changed, NotLanded, Receipt, UndoReceipt, Unknown
from tools.world.record import effects

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")

OLD, NEW = "chair,79\n", "chair,89\n"
CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "new": ("files.write", {"path": "new.csv", "text": NEW}),
    "over": ("files.write", {"path": "prices.csv", "text": NEW, "replace": True}),
    "move": ("files.move", {"path": "prices.csv", "to": "old/prices.csv"}),
    "delete": ("files.delete", {"path": "prices.csv"}),
}
every_call = pytest.mark.parametrize(("name", "raw"), CALLS.values(), ids=CALLS)
STEPS = {"os.rename", "os.link", "os.remove"}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, settings: Settings) -> Path:
    folder = settings.FILES_DIR = tmp_path / "files"
    folder.mkdir()
    (folder / "prices.csv").write_text(OLD)
    return folder


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def at_the_step() -> None:
    """Die right before the step of the file system that makes the change."""

    def watch(event: str, args: tuple[Any, ...]) -> None:
        if event in STEPS and args[-1] != -1:  # relative to an open folder: what people see
            die()

    sys.addaudithook(watch)


def after_the_step() -> None:
    """Die right after it, before the log has it."""
    made: list[str] = []

    def watch(event: str, args: tuple[Any, ...]) -> None:
        if event in STEPS and args[-1] != -1:
            made.append(event)
        if made and event == "open" and str(args[0]).endswith("log.jsonl"):
            die()

    sys.addaudithook(watch)


def killed(work: Callable[[], object], at: Callable[[], None]) -> None:
    """Do the work in a process of its own, which dies on the way."""
    pid = os.fork()
    if pid == 0:
        try:
            at()
            work()
        finally:
            os._exit(1)
    _pid, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status), "it was not killed, so it did not get there"


def seen(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in folder.rglob("*")
        if path.is_file() and OWN not in path.parts
    }


@every_call
def test_before_the_step_nothing_happened_and_it_can_be_done_again(
    name: str, raw: dict[str, Any], folder: Path, new_context: NewContext
) -> None:
    ctx, args = new_context(), tool(name).parse(raw)
    draft = prepare(name, ctx, args)
    killed(lambda: tool(name).impl.commit(ctx, args, draft), at_the_step)
    assert seen(folder) == {"prices.csv": OLD}
    assert lookup(name, ctx) == NotLanded()
    assert effects(folder.parent) == []

    receipt = tool(name).impl.commit(ctx, args, draft)

    assert seen(folder) != {"prices.csv": OLD}
    assert lookup(name, ctx) == receipt
    assert len(effects(folder.parent)) == 1


@every_call
def test_when_it_is_let_go_and_dies_nothing_happened(
    name: str, raw: dict[str, Any], folder: Path, new_context: NewContext
) -> None:
    ctx, args = dataclasses.replace(new_context(), sending=die), tool(name).parse(raw)
    draft = prepare(name, ctx, args)
    killed(lambda: tool(name).impl.commit(ctx, args, draft), lambda: None)
    assert seen(folder) == {"prices.csv": OLD}
    assert lookup(name, ctx) == NotLanded()
    tool(name).impl.void(ctx, draft)  # type: ignore[attr-defined]
    assert list(tool(name).impl.drafts()) == []  # type: ignore[attr-defined]


@every_call
def test_after_the_step_it_is_found_and_never_done_twice(
    name: str, raw: dict[str, Any], folder: Path, new_context: NewContext
) -> None:
    ctx, args = new_context(), tool(name).parse(raw)
    draft = prepare(name, ctx, args)
    killed(lambda: tool(name).impl.commit(ctx, args, draft), after_the_step)
    after = seen(folder)
    assert after != {"prices.csv": OLD}

    found = lookup(name, ctx)

    assert isinstance(found, Receipt)
    assert tool(name).impl.commit(ctx, args, draft) == found
    assert seen(folder) == after
    assert len(effects(folder.parent)) == 1
    assert isinstance(undo(name, ctx, found), UndoReceipt)
    assert seen(folder) == {"prices.csv": OLD}


@every_call
def test_once_somebody_changed_it_nobody_knows(
    name: str, raw: dict[str, Any], folder: Path, new_context: NewContext
) -> None:
    ctx, args = new_context(), tool(name).parse(raw)
    draft = prepare(name, ctx, args)
    killed(lambda: tool(name).impl.commit(ctx, args, draft), at_the_step)
    (folder / raw["path"]).write_text("Mine!\n")
    assert isinstance(lookup(name, ctx), Unknown)
    with pytest.raises(Exception, match="changed by somebody since"):
        tool(name).impl.commit(ctx, args, draft)
    assert (folder / raw["path"]).read_text() == "Mine!\n"


@every_call
@pytest.mark.parametrize("at", [at_the_step, after_the_step])
def test_an_undo_that_was_killed_is_done_once_and_for_all(
    name: str,
    raw: dict[str, Any],
    at: Callable[[], None],
    folder: Path,
    new_context: NewContext,
) -> None:
    ctx, args = new_context(), tool(name).parse(raw)
    receipt = tool(name).impl.commit(ctx, args, prepare(name, ctx, args))
    killed(lambda: undo(name, ctx, receipt), at)
    assert isinstance(undo(name, ctx, receipt), UndoReceipt)
    assert seen(folder) == {"prices.csv": OLD}
    (effect,) = effects(folder.parent)
    assert effect.removals == 1


def test_an_undo_after_a_killed_one_still_sees_a_later_change(
    folder: Path, new_context: NewContext
) -> None:
    name, raw = CALLS["over"]
    ctx, args = new_context(), tool(name).parse(raw)
    receipt = tool(name).impl.commit(ctx, args, prepare(name, ctx, args))
    killed(lambda: undo(name, ctx, receipt), at_the_step)
    (folder / "prices.csv").write_text("Mine!\n")
    assert isinstance(undo(name, ctx, receipt), Changed)
