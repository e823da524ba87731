"""Somebody who has nothing to do with a run finds nothing there: the same as where none is."""

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import expect

from tests.browser.visitor import Complaints, Visit, Visitor

pytestmark = [pytest.mark.browser, pytest.mark.stack]

NO_RUN = "/runs/run_00000000000000000000000000/"


def test_another_persons_run_is_not_found(
    at_desk: Visitor, oto: User, visit: Visit, complaints: Complaints
) -> None:
    run = at_desk.start("report", "token:8", goal="A secret of Ana’s")
    other = visit(oto)
    complaints.forgive("status of 404")
    pages = []
    for path in (run.path, NO_RUN):
        answer = other.page.goto(path)
        assert answer is not None
        assert answer.status == 404
        expect(other.page.get_by_role("heading", name="Nothing here")).to_be_visible()
        pages.append(other.page.locator("body").inner_text())
    assert pages[0] == pages[1]
    other.page.goto("/")
    expect(other.page.get_by_role("heading", name="No runs yet")).to_be_visible()
