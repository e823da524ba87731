"""The picture in the README is taken here: a stopped run that has something of everything.

With UPDATE_SCREENSHOTS=1 it is written to docs/; else it goes where nobody keeps it.
"""

import os
from pathlib import Path

import pytest
from playwright.sync_api import expect

from agentruns.services.programs import BASE_DIR
from agentruns.services.stack import Stack
from tests.browser.tour import story
from tests.browser.visitor import Visitor

pytestmark = [pytest.mark.browser, pytest.mark.stack]

WIDTH, HEIGHT = 1280, 1400


def test_a_stopped_run_is_shown_in_the_readme(
    at_desk: Visitor, stack: Stack, tmp_path: Path
) -> None:
    page = at_desk.page
    for _name in story(at_desk, stack):
        continue
    page.set_viewport_size({"width": WIDTH, "height": HEIGHT})
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    page.evaluate("window.scrollTo(0, 0)")
    for part in ("#run-verdict", "#numbers", "#run-timeline", "#group-in_doubt > h3"):
        expect(page.locator(part)).to_be_in_viewport(ratio=1)
    folder = BASE_DIR / "docs" if os.environ.get("UPDATE_SCREENSHOTS") else tmp_path
    page.screenshot(path=folder / "run-stopped.png", animations="disabled")
    assert "docs/run-stopped.png" in (BASE_DIR / "README.md").read_text()
