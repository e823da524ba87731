"""R32: who changed what, when and why, kept by the database in the same transaction."""

import pytest
from django.contrib.auth.models import Group, User
from django.db import InternalError, ProgrammingError, connection, transaction
from django.test import Client
from django.urls import reverse

from tools.changes import change_tools, recorded
from tools.history import history_of
from tools.models import Tool
from tools.policy import sync

pytestmark = pytest.mark.django_db(transaction=True)

NAME = "tickets.create"


@pytest.fixture(autouse=True)
def _rows() -> None:
    sync()


def post(client: Client, user: User, **changes: str) -> None:
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    sent = {"tier": "compensable", "enabled": "on", "dispatch": "default", "auto_undo": "agent"}
    sent |= {"approvals_needed": "0", "reason": "Too many tickets.", "note": ""} | changes
    answer = client.post(reverse("admin:tools_tool_change", args=[NAME]), sent)
    assert answer.status_code == 302, answer.content


def test_a_change_is_kept_with_who_and_why_and_what(client: Client, admin: User) -> None:
    group = Group.objects.create(name="Finance")
    group.user_set.add(admin, User.objects.create_user("bo"))
    post(client, admin, approvals_needed="2", approver_group=str(group.pk), rate_limit="10")

    last, first = history_of(NAME)

    assert (last.by, last.reason, first.by, first.changes) == (admin, "Too many tickets.", None, [])
    assert {(c.label, c.before, c.after) for c in last.changes} == {
        ("approvals needed", "0", "2"),
        ("who may approve", "–", "Finance"),
        ("calls per hour", "–", "10"),
    }


def test_the_page_shows_it(client: Client, admin: User) -> None:
    post(client, admin, enabled="")
    page = client.get(reverse("admin:tools_tool_change", args=[NAME])).content.decode()
    assert "Too many tickets." in page
    assert "enabled: yes → <strong>no</strong>" in page
    assert "Ada" in page


def test_what_is_not_a_change_is_not_kept(client: Client, admin: User) -> None:
    post(client, admin)
    assert len(history_of(NAME)) == 1


def test_a_change_that_did_not_come_through_is_not_kept(admin: User) -> None:
    with transaction.atomic():
        change_tools([NAME], by=admin, reason="A slip.", enabled=False)
        transaction.set_rollback(True)
    assert len(history_of(NAME)) == 1
    assert Tool.objects.get(name=NAME).enabled


def test_a_change_by_the_system_says_why(db: None) -> None:
    assert change_tools([NAME], by=None, reason="Its description changed.", enabled=False) == [NAME]
    assert (history_of(NAME)[0].by, history_of(NAME)[0].reason) == (
        None,
        "Its description changed.",
    )


def test_who_and_why_do_not_stick_to_the_connection(admin: User) -> None:
    """The pool hands it on to somebody else; so does the next transaction of this one."""
    change_tools([NAME], by=admin, reason="Mine.", enabled=False)

    for number in range(4):  # by hand, and nobody said why
        Tool.objects.filter(name=NAME).update(enabled=number % 2 == 0)
        connection.close()

    *later, mine, _first = [(entry.by, entry.reason) for entry in history_of(NAME)]
    assert later == [(None, "")] * 4
    assert mine == (admin, "Mine.")


def test_what_several_statements_change_has_one_reason(admin: User) -> None:
    with recorded(by=admin, reason="Both."), transaction.atomic():
        Tool.objects.filter(name=NAME).update(enabled=False)
        Tool.objects.filter(name="mail.search").update(enabled=False)
    assert [history_of(name)[0].reason for name in (NAME, "mail.search")] == ["Both.", "Both."]


@pytest.mark.parametrize(
    "sql", ["UPDATE tools_toolevent SET enabled = true", "DELETE FROM tools_toolevent"]
)
def test_the_database_keeps_the_history_as_it_is(sql: str) -> None:
    with pytest.raises((ProgrammingError, InternalError)), connection.cursor() as cursor:
        cursor.execute(sql)
