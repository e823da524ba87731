import pytest
from pytest_django.fixtures import Settings

from tools import registry
from tools.contract import Tier
from tools.models import Tool
from tools.policy import effective, sync

pytestmark = pytest.mark.django_db


def tag(name: str, **changes: object) -> None:
    Tool.objects.filter(name=name).update(**changes)


def test_every_registered_tool_has_a_row_with_its_tier() -> None:
    rows = dict(Tool.objects.values_list("name", "tier"))
    assert rows == {item.name: item.tier.value for item in registry.all()}


def test_sync_creates_what_is_missing_and_keeps_what_an_admin_decided() -> None:
    tag("mail.search", enabled=False)
    Tool.objects.filter(name="email.send").delete()
    assert sync() == ["email.send"]
    assert sync() == []
    assert not Tool.objects.get(name="mail.search").enabled


@pytest.mark.parametrize("code", ["mail.search", "tickets.create", "email.send"])
@pytest.mark.parametrize("row", list(Tier))
@pytest.mark.parametrize("proposed", [None, *Tier])
def test_the_strictest_of_code_row_and_proposal_holds(
    code: str, row: Tier, proposed: Tier | None
) -> None:
    declared = registry.get(code)
    assert declared is not None
    tag(code, tier=row.value)
    found = effective(code, proposed_tier=proposed)
    tiers = [declared.tier, row, *([proposed] if proposed else [])]
    assert found.tier == max(tiers, key=lambda tier: tier.rank)
    assert found.eager == (found.tier is Tier.READ_ONLY)
    assert found.needs_approval == (found.tier is Tier.IRREVERSIBLE)


def test_the_row_is_read_afresh_every_time() -> None:
    assert effective("mail.search").enabled
    tag("mail.search", enabled=False)
    assert not effective("mail.search").enabled


def test_an_admin_may_make_a_read_wait_and_any_call_ask() -> None:
    tag("mail.search", dispatch=Tool.Dispatch.SPECULATIVE, approvals_needed=1)
    found = effective("mail.search")
    assert not found.eager
    assert found.needs_approval


def test_arguments_can_only_ask_for_more(settings: Settings) -> None:
    settings.HTTP_READ_HOSTS = ["named.example"]

    listed = effective("http.get", args={"url": "https://named.example/"})
    other = effective("http.get", args='{"url": "https://other.example/?q=secret"}')
    odd = effective("http.get", args={"url": 7})
    tag("http.get", approvals_needed=2)
    more = effective("http.get", args={"url": "https://other.example/"})

    assert (listed.eager, listed.approvals, listed.why) == (True, 0, "")
    assert (other.eager, other.approvals, other.tier) == (False, 1, Tier.READ_ONLY)
    assert "other.example" in other.why
    assert (odd.eager, odd.approvals) == (False, 1)
    assert more.approvals == 2


def test_an_unknown_tool_may_do_nothing() -> None:
    found = effective("mail.shred")
    assert (found.known, found.enabled, found.eager) == (False, False, False)
    assert found.tier is Tier.IRREVERSIBLE
    assert found.needs_approval


def test_a_tool_without_a_row_is_not_enabled() -> None:
    Tool.objects.filter(name="mail.search").delete()
    found = effective("mail.search")
    assert found.known
    assert not found.enabled
