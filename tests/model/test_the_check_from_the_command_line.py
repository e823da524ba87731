"""`python -m tests.model --break NAME` shows the shortest way to the breach, and exits 1."""

import subprocess
import sys


def model(*args: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.model", *args]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_broken_gate_fails_and_is_told_step_by_step() -> None:
    shown = model("--break", "gate-trusts-the-claim")
    assert shown.returncode == 1, shown.stderr
    assert (
        "I1 does not hold: call 1 passed the gate of a run that is stopped_clean." in shown.stdout
    )
    told = [line for line in shown.stdout.splitlines() if line[:4].strip().isdigit()]
    assert [line.split(maxsplit=1)[1].split("  ")[0] for line in told[-3:]] == [
        "worker 1",
        "a person",
        "worker 1",
    ]


def test_a_guard_with_another_behind_it_passes() -> None:
    shown = model("--break", "status-at-stop")
    assert shown.returncode == 0, shown.stderr
    assert "I1 holds all the same" in shown.stdout
