"""`check --deploy` finds nothing in the settings of docs/deploy.md, and says what is missing."""

import os
import re
import secrets
import subprocess
import sys
from pathlib import Path

import pytest

from agentruns.services.programs import BASE_DIR
from agentruns.services.secretkey import kept_key

BLOCK = re.compile(r"```sh\n(DEMO=.*?)```", re.DOTALL)


@pytest.fixture
def documented() -> dict[str, str]:
    """The settings of docs/deploy.md, word for word, with a password where it has “…”."""
    [block] = BLOCK.findall((BASE_DIR / "docs" / "deploy.md").read_text())
    lines = dict(line.split("=", 1) for line in block.splitlines())
    return {name: value.replace("…", secrets.token_urlsafe(64)) for name, value in lines.items()}


def check(data_dir: Path, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """In a process that knows nothing but these settings."""
    given = {"PATH": os.environ["PATH"], "ENV_FILE": os.devnull, "DATA_DIR": str(data_dir)}
    command = ["manage.py", "check", "--deploy", "--fail-level", "WARNING"]
    return subprocess.run(
        [sys.executable, *command],
        env=given | env,
        cwd=BASE_DIR,
        capture_output=True,
        text=True,
        check=False,
    )


def found(data_dir: Path, env: dict[str, str]) -> list[str]:
    return re.findall(r"\(([\w.]+\.[EW]\d+)\)", check(data_dir, env).stderr)


def test_the_documented_settings_are_clean(data_dir: Path, documented: dict[str, str]) -> None:
    done = check(data_dir, documented)
    assert (done.returncode, done.stderr) == (0, "")
    assert "no issues" in done.stdout


def test_a_demo_is_no_deployment(data_dir: Path, documented: dict[str, str]) -> None:
    done = check(data_dir, documented | {"DEMO": "1"})
    assert done.returncode == 1
    assert "agentruns.E001" in done.stderr
    assert set(found(data_dir, {})) >= {"agentruns.E001", "agentruns.E002", "security.W004"}


def test_a_key_that_others_may_know_is_an_error(data_dir: Path, documented: dict[str, str]) -> None:
    keys = ["short", "ab" * 40, "demo-only-key-that-protects-nothing-beyond-this-machine"]
    for key in [*keys, kept_key(data_dir)]:
        assert "agentruns.E002" in found(data_dir, documented | {"SECRET_KEY": key})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"HTTPS": "0"}, {f"security.W{number}" for number in ("004", "008", "012", "016")}),
        ({"TRUSTED_PROXIES": ""}, {"agentruns.W003", "security.W008"}),
        ({"LOOKUP_HORIZON_SCALE": "0.1"}, {"agentruns.E005"}),
    ],
)
def test_what_is_left_out_is_named(
    data_dir: Path, documented: dict[str, str], change: dict[str, str], said: set[str]
) -> None:
    assert set(found(data_dir, documented | change)) == said


def test_without_a_key_nothing_starts(data_dir: Path, documented: dict[str, str]) -> None:
    done = check(data_dir, documented | {"SECRET_KEY": ""})
    assert "SECRET_KEY is not set" in done.stderr


@pytest.mark.parametrize("text", ["*", "proxy.example", "10.0.0.1/8"])
def test_a_proxy_is_named_by_its_address(
    data_dir: Path, documented: dict[str, str], text: str
) -> None:
    done = check(data_dir, documented | {"TRUSTED_PROXIES": text})
    assert done.returncode == 1
    assert "TRUSTED_PROXIES has" in done.stderr
