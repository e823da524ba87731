"""`python -m tests.matrix`: play the stop matrix on a stack of its own, and show the grid."""

import argparse
import importlib
import os
import shutil
import signal
import sys
from pathlib import Path

import django

from agentruns.services.scratch import ScratchFolder
from agentruns.services.stack import Stack

WIDTH = 24  # cells at once
SPARE = 6
# Deadlines that are short, so that a cell in which one passes is over soon; and a lease that is
# long, so that a driver keeps it on a machine that has too much to do.
ENV = {
    "RUNS_PER_PERSON": "0",
    "STARTS_PER_MINUTE": "0",
    # All of its runs are one person's.
    "THINK_PLACES": "1000",
    "ACT_PLACES": "1000",
    "MODEL_PACE": "0.2",
    "LEASE_TTL": "6",
    "DRAIN_DEADLINE": "4",
    "CLAIM_TTL": "12",
    "APPROVAL_TTL": "20",
    "DB_POOL_SIZE": "40",
    # A second for each minute that an outside system may take; or as its caller has it.
    "LOOKUP_HORIZON_SCALE": os.environ.get("LOOKUP_HORIZON_SCALE", str(1 / 60)),
    "LOG_LEVEL": "ERROR",
}


def main() -> int:
    options = _parser().parse_args()
    width = options.width
    scratch = ScratchFolder()
    # A held task takes up a place in its worker's pool.
    at_once = dict.fromkeys(("think", "act", "control"), width + SPARE)
    stack = Stack(scratch.path / "stack", durable=False, env=ENV, at_once=at_once)
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    try:
        with stack:
            # Settings are read once: from here on, this process belongs to the stack.
            os.environ.update(stack.env)
            os.environ["DJANGO_SETTINGS_MODULE"] = "agentruns.settings"
            django.setup()
            return int(importlib.import_module("tests.matrix.run").run(stack, options))
    finally:
        if options.logs:
            shutil.copytree(stack.data_dir / "logs", options.logs, dirs_exist_ok=True)
        scratch.remove()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make matrix", description=__doc__)
    parser.add_argument("--fast", action="store_true", help="only the part that “make test” plays")
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="CELL",
        help="cells by name, BOUNDARY/DISTURBANCE/TIER/MODE; * stands for anything",
    )
    parser.add_argument("--list", action="store_true", help="name the cells, and play none")
    parser.add_argument("--width", type=int, default=WIDTH, help="cells at once")
    parser.add_argument("--html", type=Path, default=Path("build/matrix.html"), metavar="PATH")
    parser.add_argument("--logs", type=Path, metavar="PATH", help="keep the stack's logs there")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write the results there, too")
    return parser


if __name__ == "__main__":
    sys.exit(main())
