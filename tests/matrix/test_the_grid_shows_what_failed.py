"""What the matrix says on the terminal and on its page, of cells that passed and that did not."""

import pytest

from tests.matrix.cells import RULES, Cell, cells
from tests.matrix.check import Result
from tests.matrix.grid import FAILED, LEFT_OUT, NOT_PLAYED, PASSED, Grid, lines_of
from tests.matrix.page import page_of

LIVE = [cell for cell in cells() if not cell.left_out]


def result(cell: Cell, *wrong: str) -> Result:
    return Result(cell, f"run_{LIVE.index(cell)}", 2.5, wrong, ("1 run.created",) if wrong else ())


@pytest.fixture(scope="module")
def grid() -> Grid:
    """Two cells that passed and one that did not; the others were not played."""
    good, other, bad = LIVE[:3]
    found = [result(good), result(other), result(bad, "I2 <twice> in the world")]
    return Grid({each.cell: each for each in found}, seconds=90.0)


def test_every_cell_is_counted_once(grid: Grid) -> None:
    counts = grid.counts
    assert (counts[PASSED], counts[FAILED], counts[NOT_PLAYED]) == (2, 1, len(LIVE) - 3)
    assert counts[LEFT_OUT] + len(LIVE) == len(list(cells()))


def test_the_terminal_names_the_cell_its_run_and_what_was_wrong(grid: Grid) -> None:
    lines = list(lines_of(grid))
    assert f"FAILED {LIVE[2].id}  run_2" in lines
    assert "       I2 <twice> in the world" in lines
    assert lines[-1].startswith("2 passed, 1 failed, ")
    assert lines[-1].endswith("in 1.5 minutes")


def test_the_page_shows_it_with_the_ledger(grid: Grid) -> None:
    page = page_of(grid)
    assert LIVE[2].id in page
    assert "<li>I2 &lt;twice&gt; in the world</li>" in page
    assert "run_2, 2.5 s" in page
    assert "<pre>1 run.created</pre>" in page


def test_the_page_has_a_square_for_each_cell_and_needs_nothing_beside_it(grid: Grid) -> None:
    page = page_of(grid)
    assert page.count(" title=") >= len(list(cells()))
    assert all(each not in page for each in ("http:", "https:", "<script", "<link", "@import"))


def test_every_rule_leaves_something_out_and_is_on_the_page(grid: Grid) -> None:
    used = {cell.left_out for cell in cells()}
    assert {reason for reason, _applies in RULES} <= used
    page = page_of(Grid({}, 0.0)).replace("&#x27;", "'")
    assert all(reason in page for reason, _applies in RULES)
