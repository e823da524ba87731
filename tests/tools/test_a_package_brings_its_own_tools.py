"""Tools of other packages: found by their entry point, held to the same rules."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings

BASE = settings.BASE_DIR
EXAMPLE = BASE / "tests" / "example_package"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """The example's source, to be changed at will."""
    return Path(shutil.copytree(EXAMPLE, tmp_path / "acme"))


def installed(package: Path, into: Path) -> Path:
    """Install it as pip does, into a folder of its own."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    alone = ["--no-index", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, *alone, "--target", into, package], check=True, capture_output=True)
    return into


def audit(site: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", "audit_tools", "--json"],
        cwd=BASE,
        env=os.environ | {"PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_its_tools_are_there_once_it_is_installed(package: Path, tmp_path: Path) -> None:
    found = audit(installed(package, tmp_path / "site"))
    assert found.returncode == 0, found.stderr
    rows = {row["tool"]: row for row in json.loads(found.stdout)}
    assert rows["acme.switch_light"]["tier"] == "reversible"
    assert "email.send" in rows


def test_a_tool_of_it_that_is_incomplete_says_whose_it_is(package: Path, tmp_path: Path) -> None:
    lights = package / "acme_tools" / "lights.py"
    lights.write_text(lights.read_text().replace("def compensate", "def take_back"))
    found = audit(installed(package, tmp_path / "site"))
    assert found.returncode != 0
    assert "The package “acme-tools”: Tool “acme.switch_light” is reversible" in found.stderr


def test_a_package_that_cannot_be_imported_is_named(package: Path, tmp_path: Path) -> None:
    (package / "acme_tools" / "lights.py").write_text("import lamps_that_nobody_has\n")
    found = audit(installed(package, tmp_path / "site"))
    assert "The package “acme-tools” offers tools in “acme_tools.lights”" in found.stderr
    assert "lamps_that_nobody_has" in found.stderr


def test_a_name_that_is_taken_is_refused(package: Path, tmp_path: Path) -> None:
    lights = package / "acme_tools" / "lights.py"
    lights.write_text(lights.read_text().replace('"acme.switch_light"', '"email.send"'))
    found = audit(installed(package, tmp_path / "site"))
    assert "“email.send” is registered already by tools.builtin.mail.EmailSend" in found.stderr
