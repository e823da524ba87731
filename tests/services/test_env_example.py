"""`.env.example` and the settings tell the same story."""

import re

from agentruns.services.environment import PLACES
from agentruns.services.programs import BASE_DIR

READ = re.compile(r'(?:env\.\w+|_port|_networks|_hosts)\(\s*"([A-Z_]+)"')
LISTED = re.compile(r"^#([A-Z_]+)=", re.MULTILINE)


def test_it_lists_exactly_what_the_settings_read() -> None:
    read = set(READ.findall((BASE_DIR / "agentruns" / "settings.py").read_text()))
    listed = LISTED.findall((BASE_DIR / ".env.example").read_text())
    assert sorted(listed) == sorted(read)


def test_every_place_is_a_setting_that_exists() -> None:
    read = set(READ.findall((BASE_DIR / "agentruns" / "settings.py").read_text()))
    assert set(PLACES) <= read
    addresses = {name for name in read if name.endswith(("_URL", "_DIR", "_PORT"))}
    assert addresses <= set(PLACES)
