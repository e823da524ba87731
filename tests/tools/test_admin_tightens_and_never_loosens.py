from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from tools.models import Tool


def url(name: str) -> str:
    return reverse("admin:tools_tool_change", args=[name])


def form(**changes: Any) -> dict[str, Any]:
    sent = {"tier": "compensable", "enabled": "on", "dispatch": "default", "approval": "by_tier"}
    return sent | {"note": "because"} | changes


@pytest.fixture
def browser(client: Client, admin: User) -> Client:
    client.force_login(admin, backend="django.contrib.auth.backends.ModelBackend")
    return client


def test_an_admin_tightens_a_tool_and_is_named(browser: Client, admin: User) -> None:
    sent = form(tier="irreversible", enabled="", approval="always", dispatch="speculative")
    assert browser.post(url("tickets.create"), sent).status_code == 302
    row = Tool.objects.get(name="tickets.create")
    assert (row.tier, row.enabled, row.updated_by) == ("irreversible", False, admin)
    assert (row.dispatch, row.approval, row.note) == ("speculative", "always", "because")


def test_a_looser_tier_than_the_code_is_refused_in_the_form(browser: Client) -> None:
    answer = browser.post(url("email.send"), form(tier="read_only"))
    assert answer.status_code == 200
    assert "stricter, but not looser" in answer.content.decode()
    assert Tool.objects.get(name="email.send").tier == "irreversible"


def test_tools_are_neither_added_nor_deleted_by_hand(browser: Client) -> None:
    assert browser.get(reverse("admin:tools_tool_add")).status_code == 403
    delete = reverse("admin:tools_tool_delete", args=["mail.search"])
    assert browser.post(delete, {"post": "yes"}).status_code == 403


def test_the_list_shows_what_the_code_declares(browser: Client) -> None:
    page = browser.get(reverse("admin:tools_tool_changelist")).content.decode()
    assert "email.send" in page
    assert "cannot be undone" in page


def test_the_name_cannot_be_changed(browser: Client) -> None:
    browser.post(url("mail.search"), form(name="mail.shred", tier="read_only"))
    assert not Tool.objects.filter(name="mail.shred").exists()


@pytest.mark.usefixtures("admin")
def test_other_people_do_not_get_in(client: Client, owner: User) -> None:
    client.force_login(owner, backend="django.contrib.auth.backends.ModelBackend")
    assert client.get(url("mail.search")).status_code == 302
