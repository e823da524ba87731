"""E4: a history that a real provider would answer with 400 gets a 400 here too."""

from typing import Any

import httpx2
import pytest

from tests.tools.world.serving import StartProvider, script
from tools.world.scenarios import Say

USER = {"role": "user", "content": "Go on."}


def asking(*ids: str) -> dict[str, Any]:
    function = {"name": "mail.search", "arguments": "{}"}
    calls = [{"id": call, "type": "function", "function": function} for call in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def answering(call: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call, "content": "found"}


def post(provider_url: str, messages: Any) -> httpx2.Response:
    body = {"model": "talk", "stream": True, "messages": messages}
    return httpx2.post(f"{provider_url}/chat/completions", json=body)


@pytest.mark.parametrize(
    ("messages", "problem"),
    [
        ([], "at least one message"),
        ("hello", "at least one message"),
        (["hello"], "Invalid value for 'role'"),
        ([{"role": "narrator", "content": "x"}], "Invalid value for 'role'"),
        ([USER, asking("a")], "did not have response messages: a"),
        ([USER, asking("a"), USER], "did not have response messages: a"),
        ([USER, asking("a", "b"), answering("a")], "did not have response messages: b"),
        ([USER, asking("a"), USER, answering("a")], "did not have response messages: a"),
        ([USER, asking("a"), asking("b"), answering("b")], "response messages: a"),
        ([USER, answering("a")], "messages with role 'tool' must be a response"),
        ([USER, asking("a"), answering("a"), answering("a")], "one for each call"),
        ([USER, asking("a"), answering("other")], "messages with role 'tool' must be a response"),
        ([USER, asking("a", "a"), answering("a")], "Duplicate tool_call_id"),
        ([USER, {"role": "assistant", "tool_calls": [{"id": "a"}]}], "Invalid tool call"),
        ([USER, {"role": "assistant", "tool_calls": "a"}], "Invalid tool call"),
    ],
)
def test_a_history_with_a_hole_is_a_400(
    start_provider: StartProvider, messages: Any, problem: str
) -> None:
    provider = start_provider(script("talk", (Say("Hello."),)))

    answer = post(provider.url, messages)

    assert answer.status_code == 400
    error = answer.json()["error"]
    assert error["type"] == "invalid_request_error"
    assert problem in error["message"]
    recorded = provider.ended()
    assert (recorded.end, recorded.token_times) == ("refused", [])


def test_a_whole_history_is_answered(start_provider: StartProvider) -> None:
    provider = start_provider(script("talk", (Say("One."),), (Say("Two."),), (Say("Three."),)))
    whole = [USER, asking("a", "b"), answering("b"), answering("a"), USER, asking("c")]

    answer = post(provider.url, [*whole, answering("c")])

    assert answer.status_code == 200
    assert answer.text.rstrip().endswith("data: [DONE]")
    assert provider.ended().turn == 2
