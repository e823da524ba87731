"""What an admin sees of a tool, and what a change does to what waits."""

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from agentruns.models import Agent
from agentruns.protocol.gate import pass_gate
from agentruns.protocol.outcome import record_landed
from compensation import saga
from tests.agentruns.conftest import agent, outside, steps
from tests.agentruns.outside import Outside
from tests.agentruns.pages.reading import field, words
from tests.agentruns.steps import Steps, anew
from tools.contract import Receipt

__all__ = ["agent", "outside", "steps"]

LIST = reverse("admin:tools_tool_changelist")


@pytest.fixture
def browser(client: Client, admin: User, agent: Agent) -> Client:
    client.force_login(admin, backend="django.contrib.auth.backends.ModelBackend")
    return client


def url(tool: str) -> str:
    return reverse("admin:tools_tool_change", args=[tool])


def read(browser: Client, tool: str = "test.book") -> str:
    answer = browser.get(url(tool))
    assert answer.status_code == 200
    return words(answer.content)


def change(browser: Client, tool: str, **changes: str) -> str:
    sent = {"tier": "reversible", "enabled": "on", "dispatch": "default", "auto_undo": "agent"}
    sent |= {"approvals_needed": "0", "reason": "New rules."} | changes
    return words(browser.post(url(tool), sent, follow=True).content)


def test_it_counts_what_became_of_its_calls(
    browser: Client, steps: Steps, outside: Outside
) -> None:
    run, calls = steps.running(*["test.book"] * 4, "test.post")
    outside.answers["test.book"] = ["", "refused", "lost"]
    for call in calls[:3]:
        steps.act(call)
    steps.look_up(calls[2])
    steps.stop(run)
    saga.request_undo(run.pk, by=steps.owner, call_ids=[calls[0].pk])
    while saga.run_next(run.pk):
        pass

    said = read(browser)

    assert "Done 2 2 in the last 7 days" in said
    assert "Failed, no effect 1 1 in the last 7 days" in said
    assert "Were in doubt 1 1 in the last 7 days" in said
    assert "Undone 1 1 in the last 7 days" in said


def test_what_is_in_doubt_now_is_counted(browser: Client, steps: Steps, outside: Outside) -> None:
    outside.answers["test.book"] = "lost"
    _run, (call,) = steps.running("test.book")
    steps.act(call)

    assert "Were in doubt 1 1 in the last 7 days" in read(browser)


def test_its_last_ten_calls_lead_to_their_runs(
    browser: Client, steps: Steps, outside: Outside
) -> None:
    run, calls = steps.running(*["test.book"] * 12)
    for call in calls[:11]:
        steps.act(call)

    markup = browser.get(url("test.book")).content.decode()

    listed = [n for n in range(12) if f"book “thing {n}”" in words(markup)]
    assert listed == list(range(2, 12))
    assert markup.count(f'href="/runs/{run.pk}/"') == 10


def test_whoever_tags_tools_reads_no_calls_of_others(
    client: Client, steps: Steps, outside: Outside
) -> None:
    run, (call,) = steps.running("test.book")
    steps.act(call)
    tagger = User.objects.create_user("tagger", is_staff=True)
    tagger.user_permissions.set(Permission.objects.filter(content_type__app_label="tools"))
    client.force_login(tagger, backend="django.contrib.auth.backends.ModelBackend")

    said = words(client.get(url("test.book")).content)

    assert "Done 1 1 in the last 7 days" in said
    assert "book “thing 0”" not in said
    assert "Its calls are shown to people who may see all runs." in said
    assert client.get(f"/runs/{run.pk}/").status_code == 404
    assert client.get("/admin/agentruns/run/").status_code == 403


def test_whoever_may_view_runs_reads_them_on_every_page(
    client: Client, steps: Steps, outside: Outside
) -> None:
    run, (call,) = steps.running("test.book")
    steps.act(call)
    looker = User.objects.create_user("looker", is_staff=True)
    for codename in ("view_run", "view_tool"):
        looker.user_permissions.add(Permission.objects.get(codename=codename))
    client.force_login(looker, backend="django.contrib.auth.backends.ModelBackend")

    assert "book “thing 0”" in words(client.get(url("test.book")).content)
    assert run.pk in client.get("/admin/agentruns/run/").content.decode()
    assert client.get(f"/runs/{run.pk}/").status_code == 200
    assert client.post(f"/runs/{run.pk}/stop/").status_code == 403


def test_it_says_how_soon_after_the_gate_it_was_sent(
    browser: Client, steps: Steps, outside: Outside
) -> None:
    for took in (1.0, 2.0, 30.0):
        _run, (call,) = steps.running("test.book")
        claim = steps.claim(call)
        assert pass_gate(claim)
        record_landed(claim, Receipt({}, "Done."), gate_to_send_ms=took)

    assert "half within 2.0 ms, 95 of 100 within 30.0 ms (3 calls)" in read(browser)


def test_it_says_what_undo_means_and_what_is_missing(browser: Client) -> None:
    said = read(browser, "test.post")
    assert "What undo means The message is deleted; people may have read it." in said
    assert "Can be looked up when in doubt no" in said
    assert "Declared in code can be partly undone" in said


def test_a_page_costs_few_statements_however_many_calls(
    browser: Client, steps: Steps, outside: Outside
) -> None:
    def cost() -> int:
        with CaptureQueriesContext(connection) as captured:
            browser.get(url("test.book"))
        return len(captured)

    _run, (call,) = steps.running("test.book")
    steps.act(call)
    few = cost()
    _run, calls = steps.running(*["test.book"] * 8)
    for call in calls:
        steps.act(call)

    assert cost() <= few


def test_a_change_holds_for_what_waits_and_says_so(
    browser: Client, steps: Steps, outside: Outside
) -> None:
    _run, (call, asking) = steps.running("test.book", "test.send")

    said = change(browser, "test.book", enabled="")
    assert "1 call that was waiting does not go out" in said
    assert anew(call).reason == "tool_disabled"

    said = change(browser, "test.send", tier="irreversible", approvals_needed="3")
    assert "1 call that waits for approval now waits for more people." in said
    assert anew(asking).consents_needed == 3


def test_tiers_in_bulk_hold_for_what_waits_too(
    browser: Client, steps: Steps, outside: Outside
) -> None:
    _run, calls = steps.running("test.book", "test.post")
    names = ["test.book", "test.post"]
    sent = {"action": "set_the_tier", "_selected_action": names}
    sent |= {"seen": field(browser.post(LIST, sent), "seen"), "apply": "1"}

    answer = browser.post(LIST, sent | {"tier": "irreversible", "reason": "All ask."}, follow=True)

    assert "2 tools were changed." in words(answer.content)
    assert "2 calls that were waiting do not go out" in words(answer.content)
    assert [anew(call).reason for call in calls] == ["needs_consent"] * 2


def test_a_change_that_was_refused_touches_nothing(
    browser: Client, steps: Steps, outside: Outside
) -> None:
    _run, (call,) = steps.running("test.book")

    change(browser, "test.book", enabled="", reason="")

    assert anew(call).state == "approved"


def test_the_list_says_which_tool_asks_for_some_calls_only(browser: Client) -> None:
    said = words(browser.get(LIST).content)
    assert "http.get Read from the web read-only read-only" in said
    assert "1 person, for some calls" in said
