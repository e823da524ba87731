"""The real thing, short: random stops and kills on a stack of its own, and zeros at its end."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from agentruns.services.environment import isolated
from agentruns.services.programs import BASE_DIR, MANAGE
from agentruns.soak.truth import ZEROS

ENOUGH = "00:30"  # of play, in the words of its progress


@pytest.mark.evidence
@pytest.mark.stack
@pytest.mark.timeout(400)
def test_a_soak_that_is_cut_short_ends_with_its_report_and_zeros(scratch: Path) -> None:
    asked = ["--json", "--seed", "4", "--data-dir", str(scratch / "short soak")]
    with subprocess.Popen(
        [*MANAGE, "soak", *asked],
        env=isolated(os.environ),
        cwd=BASE_DIR,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as soak:
        assert soak.stderr is not None
        said = next((line for line in soak.stderr if line.startswith(ENOUGH)), "")
        soak.send_signal(signal.SIGINT)
        out, err = soak.communicate()
    assert said, "it ended before that"
    report = json.loads(out)
    assert (soak.returncode, report["findings"]) == (0, []), err
    assert {kind: report[kind] for kind in ZEROS} == dict.fromkeys(ZEROS, 0)
    assert report["seed"] == 4
    assert report["stops"] > 15
    assert report["kills"] > 3


def test_a_soak_begins_with_an_empty_folder(tmp_path: Path) -> None:
    (tmp_path / "somebody's").touch()
    with pytest.raises(CommandError, match="is not empty"):
        call_command("soak", "--data-dir", str(tmp_path))
