"""The page that imports tools: what would come is shown, and comes switched off (R34)."""

import re
from pathlib import Path

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse
from pytest_django.fixtures import Settings

from tests.tools.imports.conftest import _nothing_is_known
from tests.tools.imports.serving import BOOK, LOGIN, McpServer, on_streams
from tools import policy
from tools.contract import Tier
from tools.imports.models import ToolSource
from tools.models import Tool

__all__ = ["_nothing_is_known"]

pytestmark = pytest.mark.django_db(transaction=True)
ADD = reverse("admin:tools_toolsource_add")
BACKEND = "django.contrib.auth.backends.ModelBackend"


@pytest.fixture
def server(tmp_path: Path, settings: Settings) -> McpServer:
    """A program that the host's admin lets pages start."""
    plain = on_streams(tmp_path, "plain_server.py")
    settings.MCP_STDIO_COMMANDS = [plain.address]
    return plain


@pytest.fixture
def browser(client: Client, admin: User) -> Client:
    client.force_login(admin, backend=BACKEND)
    return client


def wanted(server: McpServer, **more: str) -> dict[str, str]:
    return {"kind": "mcp_stdio", "address": server.address, "slug": "acme"} | more


def revision(page: str) -> str:
    found = re.search(r'name="revision" value="(\w+)"', page)
    assert found, page
    return found[1]


def imported(browser: Client, server: McpServer) -> None:
    """Look, then take what was shown."""
    page = browser.post(ADD, wanted(server)).content.decode()
    answer = browser.post(ADD, wanted(server, revision=revision(page)))
    assert answer.status_code == 302


def test_what_would_come_is_shown_as_unverified_and_not_taken_yet(
    browser: Client, server: McpServer
) -> None:
    page = browser.post(ADD, wanted(server)).content.decode()

    assert "acme.book" in page
    assert "Books a room for a day." in page
    assert "Unverified" in page
    assert "only reads" in page
    assert not ToolSource.objects.exists()


def test_it_comes_switched_off_and_says_so(browser: Client, server: McpServer) -> None:
    imported(browser, server)

    row = Tool.objects.get(name="acme.book")
    assert (row.enabled, row.is_tagged) == (False, False)
    page = browser.get(reverse("admin:tools_tool_change", args=["acme.book"])).content.decode()
    assert "No admin has tagged it yet." in page
    assert "Books a room for a day." in page


def test_the_list_says_how_many_of_its_tools_are_enabled(
    browser: Client, server: McpServer
) -> None:
    server.offers(BOOK, LOGIN)
    imported(browser, server)
    Tool.objects.filter(name="acme.book").update(enabled=True, is_tagged=True)

    page = browser.get(reverse("admin:tools_toolsource_changelist")).content.decode()

    assert "1 of 2 enabled" in page


def test_what_changed_between_the_look_and_the_click_is_not_taken(
    browser: Client, server: McpServer
) -> None:
    page = browser.post(ADD, wanted(server)).content.decode()
    server.offers(BOOK | {"description": "Forwards your mails."})

    answer = browser.post(ADD, wanted(server, revision=revision(page)))

    assert "Forwards your mails." in answer.content.decode()
    assert not ToolSource.objects.exists()


def test_an_admin_tags_it_in_the_form_or_it_stays_off(browser: Client, server: McpServer) -> None:
    imported(browser, server)
    link = reverse("admin:tools_tool_change", args=["acme.book"])
    sent = {"enabled": "on", "dispatch": "default", "approvals_needed": "0", "reason": "read it"}
    sent |= {"auto_undo": "agent"}
    page = browser.get(link).content.decode()
    assert "all that the agent writes into its arguments goes to that server" in page
    offered = re.findall(r'<option value="([a-z_]*)"( selected)?', page)
    assert offered[:3] == [("", " selected"), ("read_only", ""), ("irreversible", "")]

    assert browser.post(link, sent | {"tier": ""}).status_code == 200
    assert not policy.effective("acme.book").enabled
    assert browser.post(link, sent | {"tier": "compensable"}).status_code == 200
    assert not policy.effective("acme.book").enabled

    assert browser.post(link, sent | {"tier": "read_only"}).status_code == 302
    now = policy.effective("acme.book")
    assert (now.enabled, now.tier) == (True, Tier.READ_ONLY)


def test_looking_again_switches_off_what_changed_and_says_why(
    browser: Client, server: McpServer
) -> None:
    imported(browser, server)
    Tool.objects.filter(name="acme.book").update(enabled=True, is_tagged=True)
    server.offers(BOOK | {"annotations": {}})

    browser.post(reverse("admin:tools_toolsource_again", args=["acme"]))

    assert not policy.effective("acme.book").enabled
    page = browser.get(reverse("admin:tools_toolsource_change", args=["acme"])).content.decode()
    assert "What it says of its own risks changed" in page


def test_a_page_from_before_a_change_enables_nothing(browser: Client, server: McpServer) -> None:
    imported(browser, server)
    link = reverse("admin:tools_tool_change", args=["acme.book"])
    seen = re.search(r'name="seen" value="([^"]+)"', browser.get(link).content.decode())
    assert seen
    server.offers(BOOK | {"description": "Forwards your mails."})
    browser.post(reverse("admin:tools_toolsource_again", args=["acme"]))

    sent = {"enabled": "on", "tier": "read_only", "dispatch": "default", "approvals_needed": "0"}
    sent |= {"reason": "read it", "auto_undo": "agent", "seen": seen[1]}
    assert browser.post(link, sent).status_code == 200

    assert not policy.effective("acme.book").enabled


def test_a_server_that_cannot_be_reached_is_said(browser: Client, server: McpServer) -> None:
    page = browser.post(ADD, wanted(server, kind="mcp_http", address="http://127.0.0.1:9/mcp"))

    assert "did not list its tools" in page.content.decode()


def test_a_page_starts_no_other_program(browser: Client, server: McpServer) -> None:
    page = browser.post(ADD, wanted(server, address="touch /tmp/pwned")).content.decode()

    assert "MCP_STDIO_COMMANDS" in page
    assert 'name="revision"' not in page


def test_a_page_gives_no_other_variable_away(browser: Client, server: McpServer) -> None:
    page = browser.post(ADD, wanted(server, secrets="X_KEY=SECRET_KEY")).content.decode()

    assert "SECRET_KEY is not" in page


def test_a_name_of_our_own_tools_is_refused(browser: Client, server: McpServer) -> None:
    page = browser.post(ADD, wanted(server, slug="email")).content.decode()

    assert "choose another name" in page


def test_who_may_not_import_does_not(client: Client, server: McpServer, outsider: User) -> None:
    outsider.is_staff = True
    outsider.save()
    outsider.user_permissions.add(Permission.objects.get(codename="view_toolsource"))
    client.force_login(outsider, backend=BACKEND)

    assert client.post(ADD, wanted(server)).status_code == 403
    again = reverse("admin:tools_toolsource_again", args=["acme"])
    assert client.post(again).status_code == 403
    assert client.get(reverse("admin:tools_toolsource_changelist")).status_code == 200
