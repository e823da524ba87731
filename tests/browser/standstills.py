"""More walks: past runs that wait, that go on after a stop, and that have company."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from django.utils import timezone
from playwright.sync_api import Page, expect

from agentruns import ids
from agentruns.models import Agent, Run, ToolCall
from agentruns.models.agent import DEMO
from agentruns.protocol.gate import pass_gate
from agentruns.protocol.outcome import record_failed
from agentruns.protocol.start import start_run
from agentruns.services.stack import Stack
from tests.agentruns.outside import TOOLS, registered
from tests.agentruns.steps import Steps
from tests.browser.visitor import Started, Visitor, badge, notice, stop_button, verdict
from tools import policy
from tools.models import Tool

LATER = timedelta(minutes=10)


def paused_stopped_and_continued(visitor: Visitor, stack: Stack) -> Iterator[str]:
    page = visitor.page
    run = visitor.start("inbox", "token:8", "token:40")
    expect(page.locator("#run-head")).to_contain_text("8 tokens")
    page.get_by_role("button", name="Pause").click()
    expect(notice(page, "paused")).to_contain_text("still writes this answer")
    yield "paused"
    page.get_by_role("button", name="Continue").click()
    expect(badge(page)).to_contain_text("Running")
    stop_button(page).click()
    run.let_go("token:8")
    expect(badge(page)).to_contain_text("Stopped")
    yield "stopped-clean"
    page.locator("#run-next").get_by_role("button", name="Continue").click()
    expect(badge(page)).to_contain_text("Running")
    expect(page.locator("#run-earlier")).to_contain_text("continued by Ana")
    yield "continued"
    stop(page, run)
    expect(page.locator("#run-earlier")).to_be_visible()
    yield "stopped-again"


def out_of_budget(visitor: Visitor, stack: Stack) -> Iterator[str]:
    page = visitor.page
    with careful_assistant() as agent:
        page.goto(f"/runs/new/?agent={agent.slug}")
        expect(page.get_by_text("At most 50,000 tokens, 2 actions.")).to_be_visible()
        yield "new-run-with-limits"
        run = visitor.start(agent.slug)
    expect(badge(page)).to_contain_text("budget is used up")
    yield "budget"
    run.hold("call:3:gate")
    page.get_by_label("New limit of actions").fill("3")
    page.get_by_role("button", name="Raise the limit").click()
    expect(page.locator("#run-head")).to_contain_text("3 of 3 actions")
    yield "budget-raised"
    stop(page, run)


@contextmanager
def careful_assistant() -> Iterator[Agent]:
    """An agent with limits, that people may choose for as long as this lasts."""
    agent, _is_new = Agent.objects.update_or_create(
        slug="careful",
        defaults={
            "name": "Careful assistant",
            "model": f"{DEMO}ticket",
            "tools": Agent.objects.get(slug="ticket").tools,
            "call_limit": 2,
            "token_limit": 50_000,
            "on_limit": "wait",
            "is_listed": True,
        },
    )
    try:
        yield agent
    finally:
        Agent.objects.filter(pk=agent.pk).update(is_listed=False)


def with_children(visitor: Visitor, stack: Stack) -> Iterator[str]:
    page = visitor.page
    parent = visitor.start("inbox", "token:8")
    expect(page.locator("#run-head")).to_contain_text("8 tokens")
    child = Started(ids.run_id(), Path(stack.env["PAUSE_DIR"]))
    visitor.started.append(child)
    child.hold("token:8")
    start_run(
        owner=visitor.user,
        agent=Agent.objects.get(slug="report"),
        goal="Collect the numbers of July, August and September",
        run_id=child.id,
        parent_id=parent.id,
        ring=False,
    )
    expect(page.locator("#foresight")).to_contain_text("1 run that it started stops too.")
    expect(page.locator("#run-children")).to_contain_text("Running")
    yield "with-children"
    page.locator("#run-children a").click()
    expect(page.locator("#run-head")).to_contain_text("Started by the run")
    yield "child"
    page.go_back()
    stop(page, parent, child)
    expect(page.locator("#run-children")).to_contain_text("Stopped")
    yield "stopped-with-children"


def in_a_unit(visitor: Visitor, stack: Stack) -> Iterator[str]:
    """The demo has no tool with units: these are steps that this process takes itself."""
    page = visitor.page
    with registered():
        policy.sync()
        agent = Agent.objects.create(
            slug=ids.run_id().lower(),
            name="Buyer",
            model="demo:none",
            tools=[*TOOLS],
            is_listed=False,
        )
        steps = Steps(agent, visitor.user)
        run = steps.start()
        lease = steps.think(run)
        for tool in ("test.reserve", "test.pay", "test.ship"):
            steps.propose(lease, tool, "the tickets")
        steps.finish(lease)
        first = ToolCall.objects.get(run=run, number=1)
        claim = steps.claim(first)
        assert pass_gate(claim)
        ToolCall.objects.filter(pk=first.pk).update(deadline_at=timezone.now() + LATER)
        page.goto(f"/runs/{run.pk}/")
        expect(page.locator("#foresight")).to_contain_text("Stop takes effect after: order, step")
        yield "unit"
        stop_button(page).click()
        expect(verdict(page)).to_have_text("Stopping: 1 action in flight …")
        Run.objects.filter(pk=run.pk).update(drain_deadline=timezone.now() + LATER)
        yield "unit-stopping"
        record_failed(claim, "refused", "The shop had no more of them.")
        expect(badge(page)).to_contain_text("Stopped")
        yield "unit-broken"
        Tool.objects.filter(name__in=TOOLS).delete()


def stop(page: Page, *runs: Started) -> None:
    """Stop it, and let whoever waits somewhere go."""
    stop_button(page).click()
    for run in runs:
        run.let_go_of_all()
    expect(badge(page)).to_contain_text("Stopped")


WALKS = [paused_stopped_and_continued, out_of_budget, with_children, in_a_unit]
