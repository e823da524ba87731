"""Prose and calls interleave, token by token, as pydantic-ai reads them from a real server."""

import asyncio
import json
from typing import Any

import httpx2
import pytest
from pydantic_ai.exceptions import ModelAPIError, ModelHTTPError
from pydantic_ai.messages import (
    ModelRequest,
    ModelResponse,
    ModelResponseStreamEvent,
    PartEndEvent,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from tests.tools.world.serving import StartProvider, script
from tools.world.provider_record import model_requests
from tools.world.scenarios import Call, Cut, Finish, Results, Say

SEARCH = Call("mail.search", {"query": "Q3 review", "limit": 5})
MAIL = Call("email.send", {"to": ["ana@team.example"], "subject": "Q3", "body": "Für Ana “hier”"})
TALK = (Say("First I look. "), SEARCH, Say("Then I write. "), MAIL, Say("That is all."))


async def read(
    start_provider: StartProvider, scenarios: dict[str, Any], **request: Any
) -> tuple[list[ModelResponseStreamEvent], ModelResponse]:
    (name,) = scenarios
    async with start_provider(scenarios).stream(name, **request) as stream:
        return [event async for event in stream], stream.get()


def test_prose_and_calls_interleave_in_one_turn(start_provider: StartProvider) -> None:
    events, response = asyncio.run(read(start_provider, script("talk", TALK)))

    ended = [event for event in events if isinstance(event, PartEndEvent)]
    parts = [event.part for event in ended]
    assert [type(part) for part in parts] == [
        TextPart,
        ToolCallPart,
        TextPart,
        ToolCallPart,
        TextPart,
    ]
    assert [part.content for part in parts if isinstance(part, TextPart)] == [
        step.text for step in TALK if isinstance(step, Say)
    ]
    calls = [part for part in parts if isinstance(part, ToolCallPart)]
    assert [(call.tool_name, json.loads(str(call.args))) for call in calls] == [
        (SEARCH.tool, SEARCH.args),
        (MAIL.tool, MAIL.args),
    ]
    assert len({call.tool_call_id for call in calls}) == 2
    # A call is known to be whole as soon as the next part begins, not only at the end.
    assert [event.next_part_kind for event in ended] == [
        "tool-call",
        "text",
        "tool-call",
        "text",
        None,
    ]
    assert response.finish_reason == "tool_call"


def test_usage_is_the_tokens_on_record(start_provider: StartProvider) -> None:
    provider = start_provider(script("talk", TALK))

    async def turn() -> ModelResponse:
        async with provider.stream("talk") as stream:
            async for _event in stream:
                pass
            return stream.get()

    response = asyncio.run(turn())

    recorded = provider.ended()
    assert response.usage.output_tokens == len(recorded.token_times) > 10
    assert recorded.end == "complete"
    assert (recorded.scenario, recorded.turn, recorded.run) == ("talk", 0, "run_of_the_test")
    assert recorded.ended_at is not None
    assert recorded.started_at <= recorded.token_times[0] <= recorded.token_times[-1]
    assert recorded.tokens_after(recorded.started_at) == len(recorded.token_times)
    assert recorded.tokens_after(recorded.ended_at) == 0


def test_a_turn_of_prose_ends_with_stop(start_provider: StartProvider) -> None:
    _events, response = asyncio.run(read(start_provider, script("prose", (Say("Hello there."),))))

    assert response.finish_reason == "stop"
    assert response.text == "Hello there."


def test_the_second_turn_tells_what_the_tools_answered(start_provider: StartProvider) -> None:
    scenarios = script("talk", TALK, (Say("So:"), Results(new=True)))
    messages = [
        ModelRequest([UserPromptPart("Go on.")]),
        ModelResponse(
            [
                ToolCallPart("mail.search", {"query": "Q3 review"}, tool_call_id="call_1"),
                ToolCallPart("email.send", {"subject": "Q3"}, tool_call_id="call_2"),
            ]
        ),
        ModelRequest(
            [
                ToolReturnPart("mail.search", [{"from": "Bo"}, {"from": "Ana"}], "call_1"),
                ToolReturnPart("email.send", "Not executed: stopped by the user.", "call_2"),
            ]
        ),
    ]

    _events, response = asyncio.run(read(start_provider, scenarios, messages=messages))

    assert response.text == (
        "So:\n\n- Mail search “Q3 review”: 2 found\n"
        "- Mail “Q3”: Not executed: stopped by the user.\n\n"
    )
    assert response.finish_reason == "stop"


@pytest.mark.parametrize("asked", ["past the last turn", "without tools"])
def test_where_there_is_no_script_it_reports_and_calls_nothing(
    start_provider: StartProvider, asked: str
) -> None:
    scenarios = script("talk", TALK)
    history = [
        ModelRequest.user_text_prompt("Hi"),
        ModelResponse([TextPart("Yes?")]),
        ModelRequest.user_text_prompt("And?"),
    ]
    request: dict[str, Any] = (
        {"messages": history} if asked == "past the last turn" else {"tools": ()}
    )

    _events, response = asyncio.run(read(start_provider, scenarios, **request))

    assert response.text == "\n\nI have not done anything yet.\n\n"
    assert response.finish_reason == "stop"


def test_a_tool_is_called_by_the_name_that_was_offered(start_provider: StartProvider) -> None:
    _events, response = asyncio.run(
        read(start_provider, script("talk", TALK), tools=("mail_search", "email__send"))
    )

    assert [call.tool_name for call in response.tool_calls] == ["mail_search", "email__send"]


@pytest.mark.parametrize(
    ("last", "finish", "whole"),
    [
        (Cut("length"), "length", False),
        (Cut("malformed"), "tool_call", False),
        (Finish("content_filter"), "content_filter", True),
    ],
)
def test_a_broken_turn_can_end_politely(
    start_provider: StartProvider, last: Cut | Finish, finish: str, whole: bool
) -> None:
    _events, response = asyncio.run(read(start_provider, script("broken", (SEARCH, MAIL, last))))

    assert response.finish_reason == finish
    search, mail = response.tool_calls
    assert json.loads(str(search.args)) == SEARCH.args
    text = json.dumps(MAIL.args, ensure_ascii=False)
    assert str(mail.args) == (text if whole else text[: len(text) // 2])


@pytest.mark.parametrize("kind", ["connection", "eof"])
def test_a_broken_turn_can_just_stop(start_provider: StartProvider, kind: str) -> None:
    provider = start_provider(script("broken", (SEARCH, MAIL, Cut(kind))))
    whole: list[str] = []

    async def turn() -> None:
        async with provider.stream("broken") as stream:
            async for event in stream:
                if isinstance(event, PartEndEvent) and event.next_part_kind:
                    whole.append(event.part.part_kind)

    with pytest.raises(ModelAPIError):
        asyncio.run(turn())

    assert whole == ["tool-call"]
    assert provider.ended().end == "cut"


def test_an_unknown_scenario_is_a_404_that_names_the_known_ones(
    start_provider: StartProvider,
) -> None:
    provider = start_provider()

    async def turn() -> None:
        async with provider.stream("outbox"):
            pass

    with pytest.raises(ModelHTTPError) as caught:
        asyncio.run(turn())

    assert caught.value.status_code == 404
    body = caught.value.body
    assert isinstance(body, dict)
    assert body["code"] == "model_not_found"
    assert "migration, mixed, payment, report, ticket" in body["message"]


def test_the_models_are_the_scenarios(start_provider: StartProvider) -> None:
    answer = httpx2.get(f"{start_provider().url}/models").json()

    assert {"inbox", "report", "ticket"} <= {model["id"] for model in answer["data"]}


@pytest.mark.parametrize(
    "content", [b"no json", b"[]", b"{}", b'{"model": "talk", "messages": [], "stream": false}']
)
def test_a_request_that_is_none_gets_an_error_in_the_provider_shape(
    start_provider: StartProvider, content: bytes
) -> None:
    provider = start_provider(script("talk", TALK))

    answer = httpx2.post(f"{provider.url}/chat/completions", content=content)

    assert answer.status_code == 400
    assert answer.json()["error"]["type"] == "invalid_request_error"
    assert model_requests(provider.world_dir) == []
