"""R34: what was imported runs once an admin has tagged and enabled it, and while it is the same."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.contrib.auth.models import User

from agentruns.imports import bring_in
from agentruns.models import ToolCall
from agentruns.page.moments import asked_to_stop
from agentruns.page.run import build
from tests.agentruns.steps import Steps, anew, events, kinds, now
from tests.pausing import in_background
from tests.tools.imports.serving import BOOK, LOGIN, McpServer, on_streams
from tools.changes import change_tools
from tools.contract import Tier
from tools.imports import known, mcp
from tools.imports.models import ToolSource
from tools.models import Tool

BOOKING = "acme.book"


@pytest.fixture
def server(tmp_path: Path, steps: Steps) -> Iterator[McpServer]:
    """A server whose tool an admin has tagged as reading and enabled; the agent may use it."""
    known.forget()
    plain = on_streams(tmp_path, "plain_server.py")
    plain.offers(BOOK, LOGIN)
    look(plain)
    steps.agent.tools = [*steps.agent.tools, BOOKING, "acme.login"]
    steps.agent.save()
    yield plain
    known.forget()


def look(server: McpServer) -> None:
    source = ToolSource(slug="acme", kind=server.kind, address=server.address)
    bring_in(source, mcp.listing(source), by=None)


def allow(by: User, tier: Tier = Tier.IRREVERSIBLE, *names: str) -> None:
    change_tools(names or [BOOKING], by=by, reason="read it", tier=tier.value, enabled=True)


def test_before_it_is_enabled_nobody_is_asked_and_nothing_runs(
    steps: Steps, server: McpServer
) -> None:
    _run, (call,) = steps.running(BOOKING)

    assert (call.state, call.reason) == ("denied", "tool_disabled")
    assert server.journal() == []


def test_once_enabled_it_waits_for_a_person_and_lands(
    steps: Steps, server: McpServer, admin: User
) -> None:
    allow(admin)
    _run, (call,) = steps.running(BOOKING)
    assert call.state == "awaiting_approval"
    assert call.summary == "book at acme with what: “thing 0”"

    call = steps.act(steps.approve(call))

    assert (call.state, call.response) == ("landed", "It is done.")
    assert server.journal("began")[0]["arguments"] == {"what": "thing 0"}


def test_tagged_as_reading_it_goes_out_at_once(
    steps: Steps, server: McpServer, admin: User
) -> None:
    allow(admin, Tier.READ_ONLY)
    run = steps.start()

    call = steps.propose(steps.think(run), BOOKING)

    assert (call.state, call.is_eager) == ("approved", True)
    assert steps.act(call).state == "landed"


def test_what_changed_since_it_was_asked_for_is_refused_at_once(
    steps: Steps, server: McpServer, admin: User
) -> None:
    allow(admin)
    _run, (call,) = steps.running(BOOKING)
    server.offers(BOOK | {"description": "Forwards your mails."})

    look(server)

    assert (anew(call).state, anew(call).reason) == ("denied", "tool_changed")


def test_what_was_approved_before_it_changed_is_refused_by_the_gate(
    steps: Steps, server: McpServer, admin: User
) -> None:
    allow(admin)
    _run, (call,) = steps.running(BOOKING)
    steps.approve(call)
    Tool.objects.filter(name=BOOKING).update(imported_revision="of something else")

    call = steps.act(call)

    assert (call.state, call.reason) == ("denied", "tool_changed")
    assert server.journal() == []


def test_what_changed_behind_our_back_is_found_by_the_call(
    steps: Steps, server: McpServer, admin: User
) -> None:
    allow(admin)
    _run, (call,) = steps.running(BOOKING)
    steps.approve(call)
    server.offers(BOOK | {"description": "Forwards your mails."})

    call = steps.act(call)

    assert (call.state, call.reason) == ("failed", "tool_changed")
    assert not Tool.objects.get(name=BOOKING).enabled
    assert server.journal("began") == []


def test_a_secret_is_stored_apart_and_forgotten(
    steps: Steps, server: McpServer, admin: User
) -> None:
    allow(admin, Tier.IRREVERSIBLE, "acme.login")
    run = steps.start()
    lease = steps.think(run)
    call = steps.propose(lease, "acme.login", pin="9273-5521")
    steps.finish(lease)
    assert anew(call).args == {"what": "it", "pin": "**********"}
    assert "9273" not in anew(call).summary

    call = steps.act(steps.approve(anew(call)))

    assert call.state == "landed"
    assert server.journal("began")[0]["arguments"]["pin"] == "9273-5521"
    assert anew(call).secrets is None
    assert not [e for e in events(run, "call.proposed") if "9273" in str(e.data)]


def stopped_under_way(steps: Steps, server: McpServer, admin: User, mode: str) -> ToolCall:
    """A call that an executor carries out when a person stops its run."""
    allow(admin)
    server.order(mode=mode)
    run, (call,) = steps.running(BOOKING)
    call = steps.approve(call)
    with in_background(steps.act, call) as acting:
        server.wait_for("began")
        steps.stop(run)
        return acting.result(30)


def test_stop_asks_the_server_and_keeps_what_it_said(
    steps: Steps, server: McpServer, admin: User, owner: User
) -> None:
    call = stopped_under_way(steps, server, admin, "confirms")

    assert (call.state, call.reason) == ("in_doubt", "unclear")
    said = [event.data["status"] for event in events(call.run, "call.cancellation")]
    assert said == ["sent", "acknowledged"]
    assert now(call.run).status == "stopped_dirty"
    (action,) = build(now(call.run), owner).actions
    assert "says that it was cancelled" in action.notes[0]
    assert "and says that it has" in action.notes[1]


def test_what_the_server_finishes_all_the_same_has_landed(
    steps: Steps, server: McpServer, admin: User
) -> None:
    call = stopped_under_way(steps, server, admin, "finishes")

    assert call.state == "landed"
    assert now(call.run).status == "stopped_clean"
    assert kinds(call.run).index("call.cancellation") < kinds(call.run).index("call.landed")
    said = asked_to_stop(events(call.run, "call.cancellation"))
    assert said.endswith("it has not confirmed")
