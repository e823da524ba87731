"""The admin's screens for undo: filters, history, try again, settle by hand (R43)."""

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from agentruns.models import Run
from compensation import saga
from compensation.models import Compensation
from tests.acting import call, message, stopped, ticket
from tests.compensation.conftest import let_pauses_pass, step, undo_all
from tests.tools.conftest import RunningWorld

pytestmark = pytest.mark.django_db(transaction=True)

LIST = reverse("admin:compensation_compensation_changelist")
SETTLE = reverse("admin:compensation_compensation_settle")


@pytest.fixture
def run(owner: User, world: RunningWorld) -> Run:
    """A run with a message that was undone, and a ticket whose undo was given up."""
    run = stopped(owner, message(), ticket())
    saga.request_undo(run.pk, by=owner, call_ids=[c.pk for c in run.calls.all()])
    world.fault("tickets", "refuse", times=saga.ATTEMPT_LIMIT)
    for _ in range(saga.ATTEMPT_LIMIT):
        undo_all(run)
        let_pauses_pass(run)
    assert [step(run, number).state for number in (1, 2)] == ["undone", "failed"]
    return run


@pytest.fixture
def browser(admin: User, client: Client) -> Client:
    client.force_login(admin)
    return client


def listed(browser: Client, **query: str) -> list[str]:
    answer = browser.get(LIST, query)
    assert answer.status_code == 200
    return [each.pk for each in answer.context["cl"].result_list]


def test_what_needs_a_person_is_found_by_a_filter(run: Run, browser: Client) -> None:
    assert listed(browser, needs_person="yes") == [step(run, 2).pk]
    assert listed(browser, needs_person="no") == [step(run, 1).pk]


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ({"state__exact": "undone"}, [1]),
        ({"reason": "too_many_attempts"}, [2]),
        ({"call__tool": "tickets.create"}, [2]),
        ({"created_at__gte": "2099-01-01 00:00:00+00:00"}, []),
    ],
)
def test_each_filter_finds_what_it_names(
    run: Run, browser: Client, query: dict[str, str], numbers: list[int]
) -> None:
    assert listed(browser, **query) == [step(run, number).pk for number in numbers]


def test_the_requester_is_a_filter(run: Run, browser: Client, owner: User, admin: User) -> None:
    found = listed(browser, request__requested_by__id__exact=str(owner.pk))
    assert len(found) == 2
    saga.try_again(step(run, 2).pk, by=admin)
    found = listed(browser, request__requested_by__id__exact=str(admin.pk))
    assert found == [step(run, 2).pk]


def test_the_page_of_a_step_tells_its_history(run: Run, browser: Client) -> None:
    address = reverse("admin:compensation_compensation_change", args=[step(run, 2).pk])
    text = browser.get(address).content.decode()
    for said in (
        "somebody asked for it",
        "attempt begun",
        "Attempt 6.",
        "did not work, put off",
        "given up",
    ):
        assert said in text
    assert reverse("run", args=[run.pk]) in text
    assert reverse("admin:agentruns_toolcall_change", args=[call(run, 2).pk]) in text
    assert "Try again or settle" in text


def test_there_is_nothing_to_decide_about_what_is_undone(run: Run, browser: Client) -> None:
    address = reverse("admin:compensation_compensation_change", args=[step(run, 1).pk])
    assert "Try again or settle" not in browser.get(address).content.decode()


def test_the_action_leads_to_the_form(run: Run, browser: Client) -> None:
    pk = step(run, 2).pk
    data = {"action": "settle_selected", "_selected_action": [pk]}
    answer = browser.post(LIST, data, follow=True)
    assert "I have undone it myself" in answer.content.decode()
    assert f'value="{pk}"' in answer.content.decode()
    detail = reverse("admin:compensation_compensation_settle_one", args=[pk])
    assert browser.get(detail)["Location"] == f"{SETTLE}?step={pk}"


@pytest.mark.parametrize(
    ("answer", "state"), [("undone", "undone"), ("leave", "left"), ("again", "planned")]
)
def test_it_is_settled_as_the_admin_says(
    run: Run, browser: Client, admin: User, answer: str, state: str
) -> None:
    data = {"step": step(run, 2).pk, "answer": answer, "reason": "I closed it."}
    said = browser.post(SETTLE, data, follow=True).content.decode()
    assert 'class="errorlist' not in said
    assert step(run, 2).state == state
    if answer == "again":
        assert step(run, 2).request.requested_by == admin
    else:
        assert (step(run, 2).settled_by, step(run, 2).settled_reason) == (admin, "I closed it.")


@pytest.mark.parametrize("answer", ["undone", "leave", "", "maybe"])
def test_without_a_reason_or_an_answer_the_form_asks_again(
    run: Run, browser: Client, answer: str
) -> None:
    data = {"step": step(run, 2).pk, "answer": answer, "reason": " "}
    shown = browser.post(SETTLE, data)
    assert shown.status_code == 200
    assert shown.context["form"].errors
    assert step(run, 2).state == "failed"


def test_what_cannot_be_settled_is_said(run: Run, browser: Client) -> None:
    data = {"step": step(run, 1).pk, "answer": "leave", "reason": "Why not."}
    assert "nothing to settle" in browser.post(SETTLE, data, follow=True).content.decode()
    assert Compensation.objects.filter(state="left").count() == 0


def test_staff_without_the_right_to_see_undos_does_not_settle(
    run: Run, client: Client, outsider: User
) -> None:
    User.objects.filter(pk=outsider.pk).update(is_staff=True)
    client.force_login(User.objects.get(pk=outsider.pk))
    data = {"step": step(run, 2).pk, "answer": "leave", "reason": "Why not."}
    client.post(SETTLE, data)
    assert step(run, 2).state == "failed"
