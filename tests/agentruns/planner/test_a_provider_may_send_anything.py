"""Whatever a provider sends, the run ends with the true reason, and asks it once."""

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.function import AgentInfo, FunctionModel

from agentruns.models import Output, ToolCall
from agentruns.planner import driver
from agentruns.planner.history import wire_name
from tests.agentruns.planner.conftest import Speaker, drive
from tests.agentruns.planner.wires import chat_answer, chat_call, chat_chunk
from tests.agentruns.steps import Steps, now

Say = Callable[..., list[str]]


@pytest.fixture
def say(monkeypatch: pytest.MonkeyPatch) -> Say:
    """Have the model say these pieces, or break with this error; returns the requests so far."""

    def begin(*pieces: str | Exception) -> list[str]:
        asked: list[str] = []

        async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
            asked.append("once")
            for piece in pieces:
                if isinstance(piece, Exception):
                    raise piece
                yield piece

        model = FunctionModel(stream_function=stream)
        monkeypatch.setattr(driver, "model_of", lambda name: model)
        return asked

    return begin


@pytest.mark.parametrize("words", [(), ("Half a word",)])
def test_what_nobody_can_read_is_the_providers_failure(
    steps: Steps, say: Say, words: tuple[str, ...]
) -> None:
    asked = say(*words, json.JSONDecodeError("Expecting value", "{garbage", 1))
    run = steps.start()

    drive(steps, run)

    assert (now(run).status, now(run).failure) == ("failed", "provider_failed")
    assert "Expecting value" in now(run).failure_detail
    assert asked == ["once"]
    [output] = Output.objects.filter(run=run)
    assert (output.status, output.text) == ("incomplete", "".join(words))


def test_characters_that_cannot_be_kept_are_marked(speaker: Speaker) -> None:
    odd = chat_call(0, id="c\x00" + "d" * 500, name="no\x00such", args='{"a": "\x00"}')
    said = chat_chunk({"content": "before \x00 and \ud800 after"})

    run = speaker.hear("chat", chat_answer(said, odd))

    [output] = Output.objects.filter(run=run)
    assert output.text == "before \ufffd and \ufffd after"
    [call] = ToolCall.objects.filter(run=run)
    assert call.tool == "no\ufffdsuch"
    assert call.provider_call_id == "c\ufffd" + "d" * 198


@pytest.mark.parametrize(
    ("tool", "wire"),
    [
        ("mail.search", "mail__search"),
        ("no\ufffdsuch tool!", "no_such_tool_"),
        ("x" * 200, "x" * 64),
        ("", "_"),
    ],
)
def test_a_history_has_only_names_that_providers_take(tool: str, wire: str) -> None:
    assert wire_name(tool) == wire
