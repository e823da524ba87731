"""The files by which a drill steers other processes (agentruns/pausepoints.py)."""

import json
import os
from collections.abc import Iterator
from contextvars import copy_context
from pathlib import Path

import pytest

from agentruns import pausepoints
from agentruns.pausepoints import begin_task, file_handler, file_of, loses_bell, reach
from tests.pausing import in_background

RUN = "run_of_a_drill"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A drill steers this process by files in it."""
    (tmp_path / RUN).mkdir()
    monkeypatch.setattr(pausepoints, "handler", file_handler(tmp_path))
    yield tmp_path
    for hold in (tmp_path / RUN).glob("*.hold"):
        hold.unlink()


def test_the_first_who_comes_says_who_it_is_and_waits(folder: Path) -> None:
    hold = file_of(folder, RUN, "call:2:gate", "hold")
    hold.touch()
    reached = file_of(folder, RUN, "call:2:gate", "reached")

    def work() -> None:
        begin_task("agentruns.tasks.act", ("call_2", 1))
        reach(RUN, "call:2:gate")

    with in_background(work) as first:
        while not reached.exists():
            assert not first.done()
        reach(RUN, "call:2:gate")  # whoever comes second passes
        assert not first.done()
        hold.unlink()
        first.result(5)
    who = {"pid": os.getpid(), "task": "agentruns.tasks.act", "args": ["call_2", 1]}
    assert json.loads(reached.read_text()) == who


def test_doorbells_are_lost_from_a_point_to_the_next(folder: Path) -> None:
    file_of(folder, RUN, "call:2:sent", "lose").touch()
    lost = file_of(folder, RUN, "call:2:sent", "lost")

    def work() -> list[bool]:
        begin_task("agentruns.tasks.act", ("call_2", 1))
        seen = [loses_bell("before")]
        reach(RUN, "call:2:sent")
        seen += [loses_bell("think"), loses_bell("watchers")]
        reach(RUN, "call:2:landed")
        return [*seen, loses_bell("after")]

    assert copy_context().run(work) == [False, True, True, False]
    assert lost.read_text().splitlines() == ["think", "watchers"]


def test_the_next_task_rings_again(folder: Path) -> None:
    file_of(folder, RUN, "stop:committed", "lose").touch()

    def work() -> list[bool]:
        reach(RUN, "stop:committed")
        seen = [loses_bell("think")]
        begin_task("agentruns.tasks.act", ("call_3", 1))
        return [*seen, loses_bell("think")]

    assert copy_context().run(work) == [True, False]


def test_another_run_is_nobodys_business(folder: Path) -> None:
    file_of(folder, RUN, "stop:begin", "hold").touch()
    file_of(folder, RUN, "stop:begin", "lose").touch()
    reach("run_of_somebody", "stop:begin")
    assert not loses_bell("think")
    assert not file_of(folder, RUN, "stop:begin", "reached").exists()


def test_without_a_handler_nothing_is_held_or_lost(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pausepoints, "handler", None)
    file_of(folder, RUN, "stop:begin", "hold").touch()
    reach(RUN, "stop:begin")
    assert not loses_bell("think")
