"""Approval and answers to doubt, where the call stands."""

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client

from agentruns.models import ToolCall
from agentruns.page.words import clock
from agentruns.protocol.doubt import ask_again
from agentruns.protocol.execute import look_up_call
from tests.agentruns.outside import HORIZON, Outside
from tests.agentruns.pages.conftest import Browser
from tests.agentruns.pages.reading import field, page, words
from tests.agentruns.steps import Steps, anew, pass_time
from tools.models import Tool

pytestmark = pytest.mark.django_db(transaction=True)


def decide(client: Client, call: ToolCall, verdict: str, **more: str) -> str:
    """Approve or reject the call as its page shows it; returns the words of what comes then."""
    digest = field(client.get(f"/runs/{call.run_id}/"), "digest")
    path = f"/runs/{call.run_id}/calls/{call.pk}/decide/"
    answer = client.post(path, {"verdict": verdict, "digest": digest} | more, follow=True)
    return words(answer.content)


def test_the_question_shows_exactly_what_would_be_sent(
    steps: Steps, browser: Browser, owner: User
) -> None:
    run, _calls = steps.running("test.send")
    said = page(browser(owner), f"/runs/{run.pk}/")
    assert "May this go out?" in said
    assert "What thing 0 Count 1" in said


def test_approval_lets_the_call_go(steps: Steps, browser: Browser, reviewer: User) -> None:
    _run, (send,) = steps.running("test.send")
    decide(browser(reviewer), send, "approved")
    assert anew(send).state == "approved"
    assert anew(send).consent_by == reviewer


def test_a_rejection_keeps_its_reason(steps: Steps, browser: Browser, owner: User) -> None:
    run, (send,) = steps.running("test.send")
    decide(browser(owner), send, "rejected", reason="Ask Bo first")
    steps.stop(run)
    assert "Ana rejected it at" in page(browser(owner), f"/runs/{run.pk}/")
    assert "Ask Bo first" in page(browser(owner), f"/runs/{run.pk}/")


def test_a_page_from_before_the_stop_cannot_approve(
    steps: Steps, browser: Browser, owner: User
) -> None:
    run, (send,) = steps.running("test.send")
    path = f"/runs/{run.pk}/calls/{send.pk}/decide/"
    steps.stop(run)
    answer = browser(owner).post(path, {"verdict": "approved", "digest": send.args_digest})
    assert answer.status_code == 409
    assert "The run was stopped before this was decided." in words(answer.content)
    assert anew(send).state == "voided"


def test_an_error_comes_as_a_fragment_to_a_page_that_is_open(
    steps: Steps, browser: Browser, owner: User
) -> None:
    run, (send,) = steps.running("test.send")
    path = f"/runs/{run.pk}/calls/{send.pk}/decide/"
    answer = browser(owner).post(path, {"verdict": "maybe"}, headers={"HX-Request": "true"})
    assert answer.status_code == 400
    assert answer["HX-Retarget"] == "#problem"
    assert "<html" not in answer.content.decode()


def test_an_outsider_decides_nothing(steps: Steps, browser: Browser, outsider: User) -> None:
    run, (send,) = steps.running("test.send")
    path = f"/runs/{run.pk}/calls/{send.pk}/decide/"
    answer = browser(outsider).post(path, {"verdict": "approved", "digest": send.args_digest})
    assert answer.status_code == 404
    assert anew(send).state == "awaiting_approval"


def test_a_call_of_another_run_is_not_decided_here(
    steps: Steps, browser: Browser, owner: User
) -> None:
    run, _calls = steps.running("test.send")
    _other, (send,) = steps.running("test.send")
    path = f"/runs/{run.pk}/calls/{send.pk}/decide/"
    answer = browser(owner).post(path, {"verdict": "approved", "digest": send.args_digest})
    assert answer.status_code == 404
    assert anew(send).state == "awaiting_approval"


@pytest.fixture
def doubtful(steps: Steps, outside: Outside) -> ToolCall:
    """A call of a stopped run that nobody knows the outcome of."""
    outside.answers["test.book"] = "lost"
    run, (book,) = steps.running("test.book")
    steps.act(book)
    steps.stop(run)
    return anew(book)


@pytest.fixture
def slow(steps: Steps, outside: Outside) -> ToolCall:
    """The same, of a system that has not done it so far; a look-up is due."""
    outside.answers["test.book"] = "gone"
    run, (book,) = steps.running("test.book")
    steps.act(book)
    steps.stop(run)
    ask_again(book.pk)
    return anew(book)


def say(client: Client, call: ToolCall, verb: str = "answer", **data: str) -> str:
    path = f"/runs/{call.run_id}/calls/{call.pk}/{verb}/"
    return words(client.post(path, data, follow=True).content)


def test_it_happened(doubtful: ToolCall, browser: Browser, owner: User) -> None:
    said = say(browser(owner), doubtful, answer="happened", evidence="I saw it")
    assert "One thing happened." in said
    assert "Ana said at" in said
    assert "“I saw it”" in said


def test_it_did_not(doubtful: ToolCall, browser: Browser, owner: User) -> None:
    said = say(browser(owner), doubtful, answer="did_not_happen")
    assert "One counts as not done." in said
    assert "It had no effect." not in said
    assert "a person says that it was not done" in said
    assert "known to have had no effect" not in said
    assert "we look once more at" in said


def test_what_was_not_found_so_far_says_until_when_it_may_still_arrive(
    slow: ToolCall, browser: Browser, owner: User
) -> None:
    client = browser(owner)
    look_up_call(slow.pk)
    early = anew(slow)
    said = page(client, f"/runs/{slow.run_id}/")
    assert "Did this happen?" in said
    assert "not found so far" in said
    assert f"it may still arrive until {clock(early.horizon_at)}" in said
    assert f"next look-up at {clock(early.next_lookup_at)}" in said
    shown = client.get(f"/api/v1/runs/{slow.run_id}").json()["groups"]["in_doubt"][0]
    assert (shown["lookups"], shown["last_lookup"]) == (1, "not_found")
    assert early.horizon_at is not None
    assert shown["horizon_at"] == early.horizon_at.isoformat()

    pass_time(slow, hours=1.4 * HORIZON / 3600)
    look_up_call(slow.pk)

    late = anew(slow)
    said = page(client, f"/runs/{slow.run_id}/")
    assert "One counts as not done." in said
    assert f"not found until {clock(late.horizon_at)}, so it counts as not done" in said
    assert "What counts as not done may still arrive." in said
    assert "nothing had been changed" not in said
    assert "known to have failed" not in said
    assert f"we look once more at {clock(late.next_lookup_at)}, in case it arrives late" in said


def test_a_repeat_of_what_was_not_found_says_that_it_may_still_arrive(
    steps: Steps, outside: Outside, browser: Browser, owner: User
) -> None:
    outside.answers["test.book"] = "gone"
    run, (book,) = steps.running("test.book")
    steps.look_up(steps.act(book))
    lease = steps.think(run)
    steps.propose(lease, "test.book", "thing 0")
    steps.finish(lease)

    said = page(browser(owner), f"/runs/{run.pk}/")

    assert "and was not found. It may still arrive." in said


def test_cannot_tell_leaves_the_question_open(
    doubtful: ToolCall, browser: Browser, owner: User
) -> None:
    said = say(browser(owner), doubtful, answer="cannot_tell", evidence="No access")
    assert "Ana could not tell at" in said
    assert "Did this happen?" in said


def test_look_it_up_again(doubtful: ToolCall, browser: Browser, owner: User) -> None:
    said = say(browser(owner), doubtful, "look-up")
    assert "It is being looked up. It will not be sent again." in said
    assert anew(doubtful).lookups == 0


def test_two_people_have_to_agree_and_the_page_says_who_has(
    steps: Steps, browser: Browser, owner: User, reviewer: User
) -> None:
    Tool.objects.filter(name="test.send").update(approvals_needed=2)
    run, (send,) = steps.running("test.send")
    assert "0 of 2 approvals" in page(browser(owner), f"/runs/{run.pk}/")

    said = decide(browser(owner), send, "approved")
    assert "1 of 2 approvals: Ana" in said
    assert "You have agreed. It waits for somebody else." in said
    assert "Reject" not in said
    said = page(browser(reviewer), f"/runs/{run.pk}/")
    assert "1 of 2 approvals: Ana" in said
    assert said.count("of 2 approvals") == 1, "once is enough"

    assert "approved by Ana, Omar" in decide(browser(reviewer), send, "approved")


def test_somebody_outside_the_group_is_told_who_decides(
    steps: Steps, browser: Browser, owner: User
) -> None:
    Tool.objects.filter(name="test.send").update(
        approver_group=Group.objects.create(name="Finance")
    )
    run, (send,) = steps.running("test.send")

    said = page(browser(owner), f"/runs/{run.pk}/")
    assert "It waits for somebody from the group “Finance”." in said
    assert "Approve" not in said.split("May this go out?")[1].split("Reason")[0]

    path = f"/runs/{run.pk}/calls/{send.pk}/decide/"
    answer = browser(owner).post(path, {"verdict": "approved", "digest": send.args_digest})
    assert answer.status_code == 403
    assert "Only members of the group “Finance” decide this." in words(answer.content)


def test_a_double_says_when_it_was_done(
    steps: Steps, browser: Browser, owner: User, outside: Outside
) -> None:
    run, (first,) = steps.running("test.book")
    done = steps.act(first)
    steps.turn(run, "test.book")

    assert done.ended_at
    said = page(browser(owner), f"/runs/{run.pk}/")
    assert f"The same was already done at {done.ended_at:%H:%M}." in said


def test_a_double_of_what_is_in_doubt_says_so(
    steps: Steps, browser: Browser, owner: User, outside: Outside
) -> None:
    outside.answers["test.book"] = "lost"
    run, (first,) = steps.running("test.book")
    left = steps.act(first).gate_passed_at
    child = steps.start(parent_id=run.pk)
    steps.turn(child, "test.book")

    assert left
    said = page(browser(owner), f"/runs/{child.pk}/")
    assert f"The same left at {left:%H:%M}, and it is not known yet what became of it." in said


def test_what_waits_for_its_turn_says_until_when(
    steps: Steps, browser: Browser, owner: User, outside: Outside
) -> None:
    Tool.objects.filter(name="test.book").update(rate_limit=1)
    run, calls = steps.running("test.book", "test.book")
    steps.act(calls[0])
    due = steps.act(calls[1]).next_attempt_at

    said = page(browser(owner), f"/runs/{run.pk}/")
    assert "Waits its turn" in said
    assert f"as many went out in the last hour as may; its turn comes at {due:%H:%M:%S}" in said
