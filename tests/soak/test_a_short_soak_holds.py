"""The real thing, short: random stops and kills on a stack of its own, and zeros at its end."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from agentruns.services.environment import isolated
from agentruns.services.programs import BASE_DIR, MANAGE
from agentruns.soak.truth import ZEROS

SECONDS = 40


@pytest.mark.stack
@pytest.mark.timeout(300)
def test_a_short_soak_ends_with_zeros(scratch: Path) -> None:
    folder = scratch / "short soak"
    asked = ["--seed", "4", "--minutes", str(SECONDS / 60), "--data-dir", str(folder)]
    done = subprocess.run(
        [*MANAGE, "soak", "--json", *asked],
        env=isolated(os.environ),
        cwd=BASE_DIR,
        capture_output=True,
        text=True,
        check=False,
    )
    report = json.loads(done.stdout)
    assert (done.returncode, report["findings"]) == (0, []), done.stderr
    assert {kind: report[kind] for kind in ZEROS} == dict.fromkeys(ZEROS, 0)
    assert report["stops"] > 20
    assert report["kills"] > 3
    assert "Seed 4" in done.stderr
