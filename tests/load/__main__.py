"""`python -m tests.load`: the table, and exit code 1 if Stop took longer than it may."""

import argparse
import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psutil

from agentruns.services.ports import free_ports
from agentruns.services.processes import give_way
from agentruns.services.programs import BASE_DIR
from agentruns.services.scratch import ScratchFolder
from agentruns.services.stack import Stack

LIMIT = 0.2  # seconds, p99
Data = dict[str, Any]


def main() -> None:
    options = argparse.ArgumentParser(prog="make load", description=__doc__)
    options.add_argument("--stops", type=int, default=120, help="how often Stop is pressed")
    options.add_argument("--starts", type=int, default=200, help="runs the attacker starts at once")
    options.add_argument("--sockets", type=int, default=300, help="live pages the attacker opens")
    options.add_argument("--json", action="store_true")
    wanted = options.parse_args()
    report = measure(wanted.stops, wanted.starts, wanted.sockets)
    sys.stdout.write((json.dumps(report) if wanted.json else table(report)) + "\n")
    raise SystemExit(0 if report["p99"] <= LIMIT else 1)


def measure(stops: int, starts: int, sockets: int) -> Data:
    """Times, in seconds, before and under attack, and what the attack did meanwhile."""
    folder = ScratchFolder()
    [model] = free_ports(1)
    env = {
        "MODEL_BASE_URL": f"http://127.0.0.1:{model}/v1",
        "ANSWER_MAX_CHARACTERS": "6000000",  # the worst that an operator may allow
        "RUNS_PER_PERSON": "20",
        "STARTS_PER_MINUTE": "600",
        "PAUSE_DIR": "",
    }
    try:
        with Stack(folder.path / "stack", durable=False, world=False, env=env) as stack:
            port = int(stack.env["PORT"])
            people = _job(stack, "prepare", port=port)
            attacker = people["attacker"]
            cookies = "; ".join(f"{n}={v}" for n, v in attacker["cookies"].items())
            wish = {"port": model, "base_url": stack.base_url, "token": attacker["token"]}
            wish |= {"cookies": cookies, "starts": starts, "sockets": sockets}
            quiet = _job(
                stack, "stop", port=port, account=people["owner"], stops=max(4, stops // 4)
            )
            with _attack(wish) as done:
                times = _job(stack, "stop", port=port, account=people["owner"], stops=stops)
                load = os.getloadavg()
                memory = {name: _megabytes(stack.pids[name]) for name in ("web", "pages")}
    finally:
        folder.remove()
    presses = times["Stop by page"] + times["Stop by API"]
    p99 = percentile(presses, 99)
    before = {f"{name}, before": seconds for name, seconds in quiet.items()}
    return {"times": before | times, "attack": done, "load": load, "memory": memory, "p99": p99}


@contextmanager
def _attack(wish: Data) -> Iterator[Data]:
    """Under attack for the time of the block; afterwards the dict says what was done."""
    argv = [sys.executable, "-m", "tests.load.attack", json.dumps(wish)]
    done: Data = {}
    apart = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "start_new_session": True}
    with subprocess.Popen(argv, cwd=BASE_DIR, text=True, **apart) as process:  # type: ignore[call-overload]
        give_way(process.pid, 10)  # an attacker brings their own machine
        assert process.stdout.readline() == "ready\n"
        try:
            yield done
        finally:
            said, _ = process.communicate(timeout=60)
            done |= json.loads(said.splitlines()[-1])


def _job(stack: Stack, name: str, **options: Any) -> Data:
    argv = [sys.executable, "-m", "tests.load.stopping", name, json.dumps(options)]
    done = subprocess.run(
        argv, env=stack.env, cwd=BASE_DIR, check=True, text=True, stdout=subprocess.PIPE
    )
    found: Data = json.loads(done.stdout.splitlines()[-1])
    return found


def percentile(seconds: list[float], percent: int) -> float:
    """The smallest time that at least so many of 100 did not exceed."""
    ordered = sorted(seconds)
    return ordered[math.ceil(len(ordered) * percent / 100) - 1]


def table(report: Data) -> str:
    """For people: milliseconds."""
    lines = [f"{'':<24}{'n':>5}{'p50':>8}{'p95':>8}{'p99':>8}{'max':>8}   ms"]
    for name, seconds in report["times"].items():
        figures = [round(percentile(seconds, p) * 1000) for p in (50, 95, 99, 100)]
        lines.append(f"{name:<24}{len(seconds):>5}" + "".join(f"{f:>8}" for f in figures))
    lines.append(f"\nThe attack meanwhile: {json.dumps(report['attack'])}")
    lines.append(f"Memory in MB: {report['memory']}; load average: {report['load']}")
    verdict = "reached" if report["p99"] <= LIMIT else "NOT reached"
    lines.append(f"Stop within {LIMIT * 1000:.0f} ms (p99): {verdict}")
    return "\n".join(lines)


def _megabytes(pid: int) -> int:
    return int(psutil.Process(pid).memory_info().rss / 1_000_000)


if __name__ == "__main__":
    main()
