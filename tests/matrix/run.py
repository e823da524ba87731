"""One run of the matrix: choose the cells, play them, show and write what came of it."""

import json
import sys
import time
from argparse import Namespace
from fnmatch import fnmatch
from pathlib import Path

from django.conf import settings

from agentruns.services.stack import Stack
from agentruns.verify import Scope, verify
from tests.matrix.cells import Cell, cells
from tests.matrix.check import Result
from tests.matrix.fast import diagonal
from tests.matrix.grid import Grid, lines_of
from tests.matrix.page import page_of
from tests.matrix.play import Player


def run(stack: Stack, options: Namespace) -> int:
    """Play what was chosen; 1 if anything failed."""
    chosen = diagonal() if options.fast else [cell for cell in cells() if not cell.left_out]
    if options.only:
        chosen = [c for c in chosen if any(fnmatch(c.id, each) for each in options.only)]
    results: dict[Cell, Result] = {}
    began = time.monotonic()

    def say(result: Result) -> None:
        results[result.cell] = result
        _say(f"{len(results)}/{len(chosen)} ", result)

    player = Player(stack, options.width, say)
    try:
        player.play(chosen)
    finally:
        player.close()
        grid = Grid(results, time.monotonic() - began)
        _write(options.html, page_of(grid))
        if options.json:
            _write(options.json, _as_json(grid))
    for line in lines_of(grid):
        sys.stdout.write(f"{line}\n")
    disagrees = [
        breach
        for result in verify(Scope(world_dir=settings.WORLD_DIR))
        for breach in result.breaches
    ]
    for breach in disagrees:
        sys.stdout.write(f"DISAGREES at the end: {breach.run_id} {breach.what}\n")
    return 1 if grid.failed or disagrees or len(results) < len(chosen) else 0


def _say(progress: str, result: Result) -> None:
    is_shown = sys.stdout.isatty() or result.wrong
    if is_shown:
        wrong = f"FAILED {result.wrong[0]}" if result.wrong else "passed"
        sys.stdout.write(f"{progress} {result.cell.id} {result.seconds} s {wrong}\n")
        sys.stdout.flush()


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _as_json(grid: Grid) -> str:
    results = {
        cell.id: {
            "run_id": result.run_id,
            "seconds": result.seconds,
            "wrong": result.wrong,
            "ledger": result.ledger,
        }
        for cell, result in grid.results.items()
    }
    return json.dumps({"seconds": grid.seconds, "cells": results}, indent=1)
