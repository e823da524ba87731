"""A8: what a read would tell the host that is read, a person sees first."""

import json
import sys
from collections.abc import Iterator

import pytest
from pytest_django.fixtures import Settings

from agentruns.models import Run, ToolCall
from agentruns.page.asking import question_of
from agentruns.protocol.lease import Lease
from agentruns.protocol.turn import Proposal, propose_call
from tests.agentruns.steps import Steps, anew, now, told
from tests.tools.builtin.answering import Answering, answering
from tools import policy

# The ports of the names that were looked up, wherever in this process.
looked_up: set[object] = set()


def _watch(event: str, args: tuple[object, ...]) -> None:
    if event == "socket.getaddrinfo":
        looked_up.add(args[1])


sys.addaudithook(_watch)


@pytest.fixture
def server(settings: Settings) -> Iterator[Answering]:
    """A host that may be reached; whether it may be read at once, each test says."""
    settings.HTTP_READ_HOSTS = []
    with answering(200, {"Content-Type": "text/plain"}, "Nothing new.") as found:
        settings.HTTP_ALLOWED_HOSTS = [f"127.0.0.1:{found.port}"]
        looked_up.discard(found.port)
        yield found


@pytest.fixture
def reading(steps: Steps) -> Steps:
    """The agent may read the web, too."""
    policy.sync()
    steps.agent.tools = [*steps.agent.tools, "http.get", "http.request", "git.open_draft"]
    steps.agent.save()
    return steps


def ask(steps: Steps, tool: str, **args: object) -> tuple[Run, Lease, ToolCall]:
    """The model has asked for it; its answer still streams."""
    run = steps.start()
    lease = steps.think(run)
    call = propose_call(lease, Proposal(tool, json.dumps(args), "provider_1", 10))
    assert call is not None
    return run, lease, call


def test_a_host_that_nobody_named_is_told_nothing_until_a_person_agrees(
    reading: Steps, server: Answering
) -> None:
    url = f"{server.url}/?stolen=the+mailbox"
    run, lease, call = ask(reading, "http.get", url=url)
    assert call.state == "buffered"
    assert reading.finish(lease)
    asking = anew(call)

    question = question_of(asking, now(run), reading.owner)

    assert (asking.state, now(run).suspended_reason) == ("awaiting_approval", "approval")
    assert question is not None
    assert question.why == "This read sends everything that is shown here to 127.0.0.1."
    assert reading.act(asking).state == "awaiting_approval"
    assert server.requests == []
    assert server.port not in looked_up, "not even its name was looked up"
    reading.approve(asking)
    assert reading.act(asking).state == "landed"
    assert [each.path for each in server.requests] == ["/?stolen=the+mailbox"]
    assert "Nothing new." in told(asking)


def test_a_request_looks_up_no_name_until_a_person_agrees(
    reading: Steps, server: Answering
) -> None:
    """A name can carry data out, too: whoever answers for its domain reads it."""
    _run, lease, call = ask(reading, "http.request", method="POST", url=server.url)
    reading.finish(lease)

    assert reading.act(call).state == "awaiting_approval"
    assert server.requests == []
    assert server.port not in looked_up
    reading.approve(call)
    assert reading.act(call).state == "landed"
    assert server.port in looked_up, "it is seen where one is"


def test_stop_withdraws_the_question_and_nothing_was_told(
    reading: Steps, server: Answering
) -> None:
    run, lease, call = ask(reading, "http.get", url=server.url)
    reading.finish(lease)

    reading.stop(run)

    assert (anew(call).state, anew(call).reason) == ("voided", "approval_withdrawn")
    assert (now(run).status, server.requests) == ("stopped_clean", [])


def test_a_host_that_was_named_is_read_while_the_answer_streams(
    reading: Steps, server: Answering, settings: Settings
) -> None:
    settings.HTTP_READ_HOSTS = [f"127.0.0.1:{server.port}"]
    _run, _lease, call = ask(reading, "http.get", url=server.url)
    assert (call.state, call.is_eager) == ("approved", True)
    assert reading.act(call).state == "landed"
    assert len(server.requests) == 1


def test_a_host_that_is_named_no_longer_is_refused_at_the_gate(
    reading: Steps, server: Answering, settings: Settings
) -> None:
    settings.HTTP_READ_HOSTS = ["127.0.0.1"]
    _run, _lease, call = ask(reading, "http.get", url=server.url)
    settings.HTTP_READ_HOSTS = []

    assert reading.act(call).state == "denied"
    assert (anew(call).reason, server.requests) == ("needs_consent", [])


def test_arguments_that_do_not_fit_ask_nobody(reading: Steps, server: Answering) -> None:
    _run, lease, call = ask(reading, "http.get", url="file:///etc/passwd")
    reading.finish(lease)
    assert (anew(call).state, anew(call).reason) == ("failed", "bad_arguments")


@pytest.mark.parametrize("path", [".github/workflows/x.yml", "docs/readme.md"])
def test_a_draft_that_programs_would_run_asks_where_the_operator_allows_it(
    reading: Steps, settings: Settings, path: str
) -> None:
    """A10."""
    settings.GIT_AUTOMATION = True
    draft = {"branch": "b", "title": "T", "files": {path: "on: push"}, "message": "M"}
    run, lease, call = ask(reading, "git.open_draft", **draft)
    reading.finish(lease)

    question = question_of(anew(call), now(run), reading.owner)

    assert anew(call).state == ("awaiting_approval" if path.startswith(".") else "approved")
    assert (question is not None) == path.startswith(".")
    assert question is None or path in question.why


def test_a_draft_that_programs_would_run_is_refused_as_long_as_the_operator_does_not(
    reading: Steps,
) -> None:
    draft = {"branch": "b", "title": "T", "files": {".gitlab-ci.yml": ""}, "message": "M"}
    _run, lease, call = ask(reading, "git.open_draft", **draft)
    reading.finish(lease)
    assert (anew(call).state, anew(call).reason) == ("failed", "bad_arguments")
    assert "programs run or obey what stands there" in told(call)
