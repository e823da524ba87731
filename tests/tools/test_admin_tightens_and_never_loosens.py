from typing import Any

import pytest
from django.contrib.admin.utils import quote
from django.contrib.auth.models import Group, Permission, User
from django.test import Client
from django.urls import reverse

from tools.contract import Tier
from tools.models import Tool
from tools.policy import LOOSEN_IMPORTED, combined, effective, may_set_tier
from tools.registry import longest_timeout

LIST = reverse("admin:tools_tool_changelist")


def url(name: str) -> str:
    return reverse("admin:tools_tool_change", args=[name])


def form(**changes: Any) -> dict[str, Any]:
    sent = {"tier": "compensable", "enabled": "on", "dispatch": "default", "approvals_needed": "0"}
    return sent | {"auto_undo": "agent", "reason": "because", "note": "mind it"} | changes


def in_bulk(tier: str, *names: str, reason: str = "New rules.") -> dict[str, Any]:
    rows = Tool.objects.filter(name__in=names).order_by("name")
    seen = " ".join(row.updated_at.isoformat() for row in rows)
    chosen = {"action": "set_the_tier", "_selected_action": list(names), "seen": seen}
    return chosen | {"apply": "1", "tier": tier, "reason": reason}


def test_a_bulk_page_that_was_overtaken_changes_nothing(browser: Client) -> None:
    stale = in_bulk("compensable", "tickets.create", "chat.announce")
    assert browser.post(url("tickets.create"), form(tier="irreversible")).status_code == 302
    answer = browser.post(LIST, stale)
    assert "Somebody changed one of these tools" in answer.content.decode()
    assert Tool.objects.get(name="tickets.create").tier == "irreversible"


@pytest.mark.parametrize("name", ["chat.post_message", "tickets.create"])
def test_the_lists_own_link_leads_to_the_whole_page(browser: Client, name: str) -> None:
    """The admin quotes an underscore in a link."""
    page = browser.get(f"{LIST}{quote(name)}/change/").content.decode()
    assert "Who changed it, and why" in page
    assert "Who changed it, and why" in browser.post(url(name), form(reason="")).content.decode()


def test_what_cannot_be_in_an_address_is_refused(browser: Client) -> None:
    for path in (f"{LIST}%00/change/", f"{LIST}?q=%00", f"{LIST}?tier__exact=%00"):
        assert browser.get(path).status_code == 400


@pytest.fixture
def browser(client: Client, admin: User) -> Client:
    client.force_login(admin, backend="django.contrib.auth.backends.ModelBackend")
    return client


def test_an_admin_tightens_a_tool_and_is_named(browser: Client, admin: User) -> None:
    sent = form(tier="irreversible", enabled="", approvals_needed="2", dispatch="speculative")
    sent |= {"time_limit": "20", "rate_limit": "100"}
    assert browser.post(url("tickets.create"), sent).status_code == 302
    row = Tool.objects.get(name="tickets.create")
    assert (row.tier, row.enabled, row.updated_by) == ("irreversible", False, admin)
    assert (row.dispatch, row.approvals_needed, row.note) == ("speculative", 2, "mind it")
    found = effective("tickets.create")
    assert (found.approvals, found.timeout, found.rate_limit) == (2, 20.0, 100)


def test_a_looser_tier_than_the_code_is_refused_in_the_form(browser: Client) -> None:
    answer = browser.post(url("email.send"), form(tier="read_only"))
    assert answer.status_code == 200
    assert "stricter, but not looser" in answer.content.decode()
    assert Tool.objects.get(name="email.send").tier == "irreversible"


def test_the_form_offers_what_may_be_chosen(browser: Client) -> None:
    page = browser.get(url("tickets.create")).content.decode()
    offered = [tier for tier in Tier if f'<option value="{tier.value}"' in page]
    assert offered == [Tier.COMPENSABLE, Tier.IRREVERSIBLE]


@pytest.mark.parametrize(
    "bad",
    [
        {"reason": ""},
        {"reason": "  "},
        {"reason": "x" * 501},
        {"approvals_needed": "6"},
        {"time_limit": "0"},
        {"time_limit": str(longest_timeout() + 1)},
        {"rate_limit": "0"},
    ],
    ids=str,
)
def test_what_cannot_hold_is_not_taken(browser: Client, bad: dict[str, str]) -> None:
    assert browser.post(url("tickets.create"), form(enabled="") | bad).status_code == 200
    assert Tool.objects.get(name="tickets.create").enabled


def test_a_group_is_not_asked_for_more_people_than_it_has(browser: Client, admin: User) -> None:
    group = Group.objects.create(name="Finance")
    group.user_set.add(admin, User.objects.create_user("gone", is_active=False))
    sent = form(approver_group=str(group.pk), approvals_needed="2")

    answer = browser.post(url("tickets.create"), sent)

    assert "“Finance” has 1 member: nothing would ever be approved." in answer.content.decode()
    assert Tool.objects.get(name="tickets.create").approver_group is None


def test_a_page_that_somebody_overtook_changes_nothing(browser: Client) -> None:
    seen = Tool.objects.get(name="tickets.create").updated_at.isoformat()
    browser.post(url("tickets.create"), form(enabled="", seen=seen))

    answer = browser.post(url("tickets.create"), form(seen=seen))

    assert "Somebody changed this tool since" in answer.content.decode()
    assert not Tool.objects.get(name="tickets.create").enabled


def test_several_tools_get_one_tier(browser: Client) -> None:
    names = ["tickets.create", "chat.post_message"]
    asked = browser.post(LIST, {"action": "set_the_tier", "_selected_action": names})
    assert all(name in asked.content.decode() for name in names)
    assert Tool.objects.filter(name__in=names, tier="irreversible").count() == 0

    assert browser.post(LIST, in_bulk("irreversible", *names)).status_code == 302

    assert Tool.objects.filter(name__in=names, tier="irreversible").count() == 2


def test_where_one_tool_may_not_get_the_tier_none_does_and_it_is_named(browser: Client) -> None:
    before = dict(Tool.objects.values_list("name", "tier"))

    answer = browser.post(LIST, in_bulk("compensable", "mail.search", "email.send"))

    said = answer.content.decode()
    assert "Nothing was changed" in said
    assert "email.send: The code of this tool declares" in said
    assert "mail.search: " not in said
    assert dict(Tool.objects.values_list("name", "tier")) == before


def test_several_tools_need_a_reason_too(browser: Client) -> None:
    assert browser.post(LIST, in_bulk("irreversible", "mail.search", reason=" ")).status_code == 200
    assert Tool.objects.get(name="mail.search").tier == "read_only"


def test_a_looser_tier_in_the_row_loosens_nothing(db: None) -> None:
    """However it came there: by hand in the database, or from before the code was tightened."""
    Tool.objects.filter(name="email.send").update(tier="read_only")
    assert effective("email.send").tier is Tier.IRREVERSIBLE


def imported(tier: Tier) -> Tool:
    return Tool(name="email.send", tier=tier, source=Tool.Source.MCP)


def test_an_imported_tool_is_loosened_only_with_the_permission_for_it(
    owner: User, admin: User
) -> None:
    row = imported(Tier.IRREVERSIBLE)
    assert may_set_tier(owner, imported(Tier.READ_ONLY), Tier.IRREVERSIBLE) == ""
    assert may_set_tier(owner, row, Tier.IRREVERSIBLE) == ""
    assert "need the permission" in may_set_tier(owner, row, Tier.READ_ONLY)
    assert may_set_tier(admin, row, Tier.READ_ONLY) == ""

    label, codename = LOOSEN_IMPORTED.split(".")
    allowed = Permission.objects.get(content_type__app_label=label, codename=codename)
    owner.user_permissions.add(allowed)
    assert may_set_tier(User.objects.get(pk=owner.pk), row, Tier.READ_ONLY) == ""


@pytest.mark.parametrize("tier", [Tier.REVERSIBLE, Tier.COMPENSABLE])
def test_an_imported_tool_has_no_undo_that_a_tier_could_promise(admin: User, tier: Tier) -> None:
    assert "has no undo" in may_set_tier(admin, imported(Tier.IRREVERSIBLE), tier)


def test_of_an_imported_tool_the_admins_word_holds(db: None) -> None:
    """What its description declares binds nobody."""
    assert combined("email.send", imported(Tier.COMPENSABLE)).tier is Tier.COMPENSABLE


def test_tools_are_neither_added_nor_deleted_by_hand(browser: Client) -> None:
    assert browser.get(reverse("admin:tools_tool_add")).status_code == 403
    delete = reverse("admin:tools_tool_delete", args=["mail.search"])
    assert browser.post(delete, {"post": "yes"}).status_code == 403


def test_the_list_shows_what_the_code_declares(browser: Client) -> None:
    page = browser.get(LIST).content.decode()
    assert "email.send" in page
    assert "cannot be undone" in page


def test_the_name_cannot_be_changed(browser: Client) -> None:
    browser.post(url("mail.search"), form(name="mail.shred", tier="read_only"))
    assert not Tool.objects.filter(name="mail.shred").exists()


@pytest.mark.usefixtures("admin")
def test_other_people_do_not_get_in(client: Client, owner: User) -> None:
    client.force_login(owner, backend="django.contrib.auth.backends.ModelBackend")
    assert client.get(url("mail.search")).status_code == 302


def test_somebody_who_may_only_look_sets_no_tier(client: Client, db: None) -> None:
    person = User.objects.create_user("looker", is_staff=True)
    person.user_permissions.add(Permission.objects.get(codename="view_tool"))
    client.force_login(person, backend="django.contrib.auth.backends.ModelBackend")
    client.post(LIST, in_bulk("irreversible", "mail.search"))
    assert Tool.objects.get(name="mail.search").tier == "read_only"
