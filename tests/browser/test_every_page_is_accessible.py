"""axe finds nothing to complain of on any page, in light and in dark, on a desk and on a phone."""

import os
from pathlib import Path
from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from agentruns.services.stack import Stack
from tests.browser import standstills, tour
from tests.browser.visitor import Complaints, Visitor, Walk

pytestmark = [pytest.mark.browser, pytest.mark.stack]

LOOKS: list[tuple[int, Literal["light", "dark"]]] = [
    (390, "dark"),
    (390, "light"),
    (1280, "dark"),
    (1280, "light"),
]


@pytest.mark.timeout(300)  # an audit of each page in four looks
@pytest.mark.parametrize("walk", [tour.walk, *standstills.WALKS])
def test_every_page_is_accessible(
    at_desk: Visitor, stack: Stack, complaints: Complaints, walk: Walk
) -> None:
    complaints.forgive("status of 40[04]")  # pages that say what is wrong, among others
    page = at_desk.page
    found = []
    for name in walk(at_desk, stack):
        for width, scheme in LOOKS:
            page.set_viewport_size({"width": width, "height": 900})
            page.emulate_media(color_scheme=scheme)
            picture(page, f"{name}-{width}-{scheme}")
            seen = Axe().run(page)
            if seen.violations_count:
                found.append(f"{name}, {width}, {scheme}: {seen.generate_report()}")
    assert found == [], "\n\n".join(found)


def picture(page: Page, name: str) -> None:
    """Kept only where SCREENSHOTS names a folder."""
    if folder := os.environ.get("SCREENSHOTS"):
        page.evaluate("window.scrollTo(0, 0)")
        path = Path(folder) / f"{name}.png"
        page.screenshot(path=path, full_page=True, animations="disabled")
