"""A setting that cannot be used is said in a sentence, before anything starts."""

import os
import subprocess
import sys

import pytest


@pytest.mark.parametrize("port", ["abc", "0", "65536", "-1", "80 80"])
def test_a_port_that_is_none_is_named(port: str) -> None:
    told = subprocess.run(
        [sys.executable, "manage.py", "up"],
        env=os.environ | {"PORT": port},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert told.returncode == 1
    assert told.stderr == f"PORT is “{port}”. It has to be a port: a number up to 65535.\n"
