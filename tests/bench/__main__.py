"""Start servers, run each part in a process of its own, print what was found."""

import argparse
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from agentruns.services.programs import BASE_DIR, MANAGE
from agentruns.services.scratch import ScratchFolder
from agentruns.services.stack import Stack
from tests.bench import databases, machine, table
from tests.bench.figures import figure, figures, goals, pooled

QUICK = {"passes": 1, "rounds": 5, "active": [1, 50], "stops": 50, "http": 10, "closings": 10}

Data = dict[str, Any]


def main(argv: list[str]) -> None:
    options = _options(argv)
    # As a person's Ctrl-C: everything that was started ends.
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    scratch = ScratchFolder()
    try:
        report = Bench(scratch.path, options).report()
    finally:
        scratch.remove()
    text = json.dumps(report, indent=1) if options.json else "\n".join(table.lines_of(report))
    sys.stdout.write(f"{text}\n")


def _options(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--json", action="store_true", help="JSON alone on stdout")
    parser.add_argument("--quick", action="store_true", help="a rough look, in about a minute")
    number = {"type": int, "metavar": "N"}
    parser.add_argument("--passes", **number, default=5, help="over both ledgers, in turn")
    parser.add_argument("--rounds", **number, default=6, help="of all contestants, per pass")
    parser.add_argument("--steps", **number, default=20, help="of each contestant, per round")
    parser.add_argument("--active", type=_numbers, default=[1, 50, 500], help="such as 1,50,500")
    parser.add_argument("--stops", **number, default=60, help="per pass and number of active runs")
    parser.add_argument("--http", **number, default=20, help="of these over HTTP, beside")
    parser.add_argument("--closings", **number, default=50, help="model streams to be cut off")
    parser.add_argument("--events", **number, default=1_000_000, help="of the long ledger; 0: none")
    if parser.parse_args(argv).quick:
        parser.set_defaults(**QUICK, events=100_000)
    return parser.parse_args(argv)


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


class Bench:
    """All parts of one bench, on data of its own, durable as with `make up`."""

    def __init__(self, folder: Path, options: argparse.Namespace) -> None:
        self._folder = folder
        self._options = options

    def report(self) -> Data:
        """Everything found, ready for JSON. Times are in milliseconds."""
        with self._stack("ledgers", workers=False, world=False) as stack:
            about = machine.describe(self._folder, stack.env["DATABASE_URL"])
            rows = self._long_ledger(stack) if self._options.events else None
            calls, stops, loads = self._passes(stack, with_long=rows is not None)
        closing = self._closing() if self._options.closings else None
        return {
            "machine": about,
            "options": vars(self._options),
            "calls": {ledger: _data(passes) for ledger, passes in calls.items()},
            "stops": {
                ledger: {
                    active: {"figures": _data(passes), "load": _load(loads[ledger][active])}
                    for active, passes in by_active.items()
                }
                for ledger, by_active in stops.items()
            },
            "closing": closing,
            "long_ledger": rows,
            "goals": [goal.as_data() for goal in goals(calls, stops)],
        }

    def _passes(self, stack: Stack, *, with_long: bool) -> tuple[Data, Data, Data]:
        """(a) and (b) on both ledgers in turn, so that a slow hour of the machine hits both."""
        ledgers = {"empty": stack.env} | ({"full": _at_full(stack)} if with_long else {})
        calls: Data = {name: [] for name in ledgers}
        stops: Data = {name: {n: [] for n in self._options.active} for name in ledgers}
        loads: Data = {name: {n: [] for n in self._options.active} for name in ledgers}
        for number in range(self._options.passes):
            for name, env in ledgers.items():
                _say(f"pass {number + 1} of {self._options.passes}, {table.LEDGERS[name]}")
                calls[name].append(self._calls(env))
                for active in self._options.active:
                    found = self._stops(env, active, has_web=name == "empty")
                    stops[name][active].append(found["times"])
                    loads[name][active].append(found["load"])
        return calls, stops, loads

    def _calls(self, env: Data) -> Data:
        return job("calls", env, rounds=self._options.rounds, steps=self._options.steps)

    def _stops(self, env: Data, active: int, *, has_web: bool) -> Data:
        over_http = self._options.http if has_web else 0
        sizes = {"active": active, "stops": self._options.stops, "over_http": over_http}
        # The runs beside renew more seldom than a driver does (see load.py).
        return job("stops", env | {"LEASE_TTL": "60"}, port=int(env["PORT"]), **sizes)

    def _long_ledger(self, stack: Stack) -> Data:
        _say(f"a ledger of {self._options.events:,} events")
        env = _at_full(stack)
        subprocess.run([*MANAGE, "prepare"], env=env, cwd=BASE_DIR, check=True, stdout=sys.stderr)
        return job("seed", env, events=self._options.events)

    def _closing(self) -> Data:
        _say("the provider's connection")
        with self._stack("closing", web=False) as stack:
            found = job("closing", stack.env, stops=self._options.closings)
        closed = figure(found["times"])
        return {"figures": {"closed": asdict(closed)}, "too_late": found["too_late"]}

    @contextmanager
    def _stack(self, name: str, **parts: bool) -> Iterator[Stack]:
        # As in production: no drill looks in at the pause points.
        env = {"PAUSE_DIR": "", "RUNS_PER_PERSON": "0", "STARTS_PER_MINUTE": "0"}
        with Stack(self._folder / name, durable=True, env=env, **parts) as stack:
            yield stack


def _at_full(stack: Stack) -> Data:
    os.environ["DATABASE_URL"] = databases.as_superuser(stack.env["DATABASE_URL"])
    # Nobody but the superuser owns it.
    return stack.env | {"DATABASE_URL": databases.database("full"), "DATABASE_OWNER_URL": ""}


def job(name: str, env: Data, **options: Any) -> Data:
    """What one part finds out, in a process of its own (see tests.bench.job)."""
    argv = [sys.executable, "-m", "tests.bench.job", name, json.dumps(options)]
    done = subprocess.run(
        argv, env=env, cwd=BASE_DIR, check=True, text=True, stdout=subprocess.PIPE
    )
    found: Data = json.loads(done.stdout.splitlines()[-1])
    return found


def _load(passes: list[Data]) -> Data:
    seconds = sum(each["seconds"] for each in passes)
    return {
        f"{what}_per_s": round(sum(each[what] for each in passes) / seconds, 1)
        for what in ("renewals", "calls")
    }


def _data(passes: list[Data]) -> Data:
    return {name: asdict(each) for name, each in figures(pooled(passes)).items()}


def _say(what: str) -> None:
    sys.stderr.write(f"bench: {what} …\n")
    sys.stderr.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
