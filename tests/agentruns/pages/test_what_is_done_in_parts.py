"""Units, items and further attempts: how far each has come, and what Stop waits for."""

import pytest
from django.contrib.auth.models import User

from agentruns.models import Run, ToolCall
from agentruns.page.words import clock
from agentruns.protocol.execute import execute_call
from agentruns.protocol.gate import Claim, pass_gate
from agentruns.protocol.items import CallItems
from agentruns.protocol.outcome import record_landed
from tests.agentruns.outside import Outside
from tests.agentruns.pages.conftest import Browser
from tests.agentruns.pages.reading import numbers, page, words
from tests.agentruns.steps import Steps, anew, now
from tools.contract import Receipt, StopSignal


def batch(steps: Steps, count: int) -> tuple[Run, Claim]:
    """A call with `count` effects, of which the first is out."""
    run = steps.start()
    lease = steps.think(run)
    call = steps.propose(lease, "test.batch", count=count)
    steps.finish(lease)
    claim = steps.claim(call)
    assert pass_gate(claim)
    CallItems(call.pk, claim.token).land("it 1", {"id": "1"})
    return run, claim


def test_a_batch_says_how_far_it_is_and_what_is_out(
    steps: Steps, browser: Browser, owner: User
) -> None:
    run, _claim = batch(steps, 3)
    said = page(browser(owner), f"/runs/{run.pk}/")
    assert "1 of 3 done ✓ it 1" in said
    assert "– it 2 not yet – it 3 not yet" in said


def test_stopped_it_has_landed_with_what_is_out(
    steps: Steps, browser: Browser, owner: User, outside: Outside
) -> None:
    run, claim = batch(steps, 3)
    call = ToolCall.objects.get(run=run)
    steps.stop(run)
    with pytest.raises(StopSignal):
        CallItems(call.pk, claim.token).land("it 2", {"id": "2"})
    outside.effects += [("test.batch", f"{call.request_id}/{n}") for n in (1, 2)]
    record_landed(claim, Receipt({}, ""))
    said = page(browser(owner), f"/runs/{run.pk}/")
    assert "One thing happened." in said
    assert f"◐ 2 of 3 done · {clock(anew(call).ended_at)}" in said
    assert f"It came in the middle of “{call.in_words}”: 2 of 3 done." in said
    assert "What came back Number" in said  # the items stand by themselves


def test_a_begun_unit_is_what_stop_waits_for(steps: Steps, browser: Browser, owner: User) -> None:
    run, (reserve, _pay, _ship) = unit(steps)
    claim = steps.claim(reserve)
    assert pass_gate(claim)
    client = browser(owner)
    said = page(client, f"/runs/{run.pk}/")
    assert "Stop takes effect after: order, step 1 of 3; order, step 2 of 3; order, step 3" in said
    assert "order, step 1 of 3" in said

    text = client.post(f"/runs/{run.pk}/stop/", follow=True).content
    said = words(text)
    assert "Nothing else can start." in said
    assert "No new action can start" not in said
    assert "no new action possible, except to finish what had begun" in said
    assert numbers(text)["waiting"] == 2

    record_landed(claim, Receipt({}, "Done."))
    for call in ToolCall.objects.filter(run=run, state="approved").order_by("number"):
        execute_call(call.pk, epoch=call.epoch)
    said = page(client, f"/runs/{run.pk}/")
    assert "Three things happened." in said
    assert "Stop takes effect" not in said


def test_what_is_tried_again_says_when(
    steps: Steps, browser: Browser, owner: User, outside: Outside
) -> None:
    outside.answers["test.book"] = ["busy"]
    run, (book,) = steps.running("test.book")
    steps.act(book)
    assert anew(book).next_attempt_at is not None
    said = page(browser(owner), f"/runs/{run.pk}/")
    assert "tried 1 of 4, " in said
    assert "Tries again" in said


def test_one_that_cannot_be_interrupted_says_so(
    steps: Steps, browser: Browser, owner: User
) -> None:
    run, (migrate,) = steps.running("test.migrate")
    claim = steps.claim(migrate)
    assert pass_gate(claim)
    steps.stop(run)
    said = page(browser(owner), f"/runs/{run.pk}/")
    assert "cannot be broken off" in said
    assert "Stop takes effect after: book “thing 0”." in said
    record_landed(claim, Receipt({}, "Done."))
    assert now(run).status == "stopped_clean"


def unit(steps: Steps) -> tuple[Run, list[ToolCall]]:
    """The three steps of one order."""
    run = steps.start()
    lease = steps.think(run)
    for tool in ("test.reserve", "test.pay", "test.ship"):
        steps.propose(lease, tool, "a book")
    steps.finish(lease)
    return run, list(ToolCall.objects.filter(run=run).order_by("number"))
