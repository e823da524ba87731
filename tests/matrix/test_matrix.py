"""A diagonal of the stop matrix, in every test run; `make matrix` plays all of it."""

import json
import os
import subprocess
import sys
from collections import Counter
from typing import Any

import pytest

from agentruns.services.environment import isolated
from agentruns.services.programs import BASE_DIR
from tests.matrix.axes import BOUNDARIES, TIERS, Disturbance, Mode
from tests.matrix.cells import ANNOUNCE, ANNOUNCING, TOOLS, cells, script_of
from tests.matrix.fast import diagonal
from tools.world import scenarios

PATIENCE = 600  # seconds

CELLS = diagonal()


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The diagonal, by the command, on a stack of its own: what came of each cell."""
    folder = tmp_path_factory.mktemp("matrix")
    results, page = folder / "results.json", folder / "page.html"
    command = [sys.executable, "-m", "tests.matrix", "--fast"]
    command += ["--json", str(results), "--html", str(page)]
    done = subprocess.run(
        command,
        env=isolated(os.environ),
        cwd=BASE_DIR,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert results.exists(), done.stdout + done.stderr
    found: dict[str, Any] = json.loads(results.read_text())["cells"]
    return found | {"code": done.returncode, "out": done.stdout, "page": page.read_text()}


@pytest.mark.stack
@pytest.mark.timeout(PATIENCE)
@pytest.mark.parametrize("name", [cell.id for cell in CELLS])
def test_nothing_leaks_nothing_is_lost_nothing_is_stuck(played: dict[str, Any], name: str) -> None:
    result = played[name]
    assert result["wrong"] == [], "\n".join(result["ledger"])


@pytest.mark.stack
@pytest.mark.timeout(PATIENCE)
def test_the_command_says_so_on_the_terminal_and_on_a_page(played: dict[str, Any]) -> None:
    assert played["code"] == 0, played["out"]
    assert f"{len(CELLS)} passed, 0 failed" in played["out"]
    assert played["page"].count('<i class="ok" title=') == len(CELLS)


def test_every_axis_comes_up_in_the_diagonal() -> None:
    assert {cell.disturbance for cell in CELLS} == set(Disturbance)
    assert {cell.tier for cell in CELLS} == set(TIERS)
    assert {cell.mode for cell in CELLS} == set(Mode)
    played = {cell.boundary for cell in cells() if not cell.left_out}
    assert {cell.boundary for cell in CELLS} == played


def test_a_disturbance_is_tried_wherever_it_can_happen() -> None:
    """A rule that leaves out too much would leave nothing to fail."""
    live = [cell for cell in cells() if not cell.left_out]
    boundaries = {each: {c.boundary for c in live if c.disturbance == each} for each in Disturbance}
    of_world = [each for each in Disturbance if each.of_world]
    assert all(len(boundaries[each]) >= 6 for each in of_world)
    others = [each for each in Disturbance if not each.of_world]
    assert all(boundaries[each] == set(BOUNDARIES) for each in others)


def test_each_script_makes_two_calls_of_its_tool() -> None:
    scripts = {script_of(tier): tool for tier, tool in TOOLS.items()} | {ANNOUNCE: ANNOUNCING}
    for script, tool in scripts.items():
        scenario = scenarios.load(script)
        steps = [step for turn in scenario.turns for step in turn]
        calls = Counter(step.tool for step in steps if isinstance(step, scenarios.Call))
        assert calls == {tool: 2}
