"""A setting that cannot be used is said in a sentence, before anything starts."""

import os
import subprocess
import sys

import pytest


@pytest.mark.parametrize("port", ["abc", "0", "65536", "-1", "80 80"])
def test_a_port_that_is_none_is_named(port: str) -> None:
    said = refused({"PORT": port})
    assert said == f"PORT is “{port}”. It has to be a port: a number up to 65535.\n"


@pytest.mark.parametrize("host", ["https://a.example", "*.a.example", "*", "a.example/x", "a:b"])
def test_a_host_that_is_none_is_named(host: str) -> None:
    said = refused({"HTTP_READ_HOSTS": f"good.example,{host}"})
    assert said.startswith(f"HTTP_READ_HOSTS has “{host}”. Each has to be a host or host:port")


def refused(setting: dict[str, str]) -> str:
    """What is said at the start with this setting."""
    told = subprocess.run(
        [sys.executable, "manage.py", "up"],
        env=os.environ | setting,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert told.returncode == 1
    return told.stderr
