"""A model that never ends is cut off as one that says itself that it wrote too much."""

import pytest
from pytest_django.fixtures import Settings

from agentruns.models import Output
from agentruns.planner.stream import MOST_CALLS
from tests.agentruns.planner.conftest import Speaker, written
from tests.agentruns.planner.wires import Answer, Ask, chat_answer, chat_call, chat_chunk
from tests.pausing import PATIENCE

LONGEST = 1000


@pytest.fixture(autouse=True)
def _short(settings: Settings) -> None:
    settings.ANSWER_MAX_CHARACTERS = LONGEST


def endless(*events: bytes) -> Answer:
    """An answer whose provider keeps the connection open."""
    return Answer(list(events), 0, waits=True)


def test_prose_is_kept_to_the_limit_and_the_connection_is_closed(speaker: Speaker) -> None:
    call = chat_call(0, id="a", name="test__book", args='{"what": "it"}')
    run = speaker.hear("chat", endless(call, *[chat_chunk({"content": "word " * 20})] * 20))
    assert (run.status, run.failure) == ("failed", "answer_length")
    assert written(run) == [("test.book", "voided", "it")]
    [output] = Output.objects.filter(run=run)
    assert output.status == "incomplete"
    assert output.text.startswith("word word ")
    assert LONGEST - 50 < len(output.text) <= LONGEST
    assert speaker.provider.is_left.wait(PATIENCE)


@pytest.mark.parametrize(
    "events",
    [
        [chat_call(0, id="a", name="test__book", args="")]
        + [chat_call(0, args='{"what": "')] * 200,
        [chat_call(0, id="a", name="n" * 2000, args="{}")],
        [chat_chunk({"reasoning_content": "hmm " * 50})] * 10,
        [chat_call(n, id=f"c{n}", name="t", args="{}") for n in range(MOST_CALLS + 1)],
    ],
    ids=["arguments", "a name", "thoughts", "calls"],
)
def test_arguments_names_thoughts_and_calls_count_too(
    speaker: Speaker, events: list[bytes]
) -> None:
    run = speaker.hear("chat", endless(*events))
    assert (run.status, run.failure) == ("failed", "answer_length")
    assert not run.calls.exclude(state__in=("voided", "denied")).exists()
    assert speaker.provider.is_left.wait(PATIENCE)


def test_what_is_just_not_too_long_is_complete(speaker: Speaker) -> None:
    ask = Ask("test__book", ('{"what": "it"}',))
    text = "x" * (LONGEST - len(ask.name) - len(ask.args))
    run = speaker.hear("anthropic", speaker.say("anthropic", text, ask))
    assert written(run) == [("test.book", "approved", "it")]
    assert Output.objects.get(run=run).status == "complete"


def test_a_long_name_is_cut_into_one_that_no_tool_has(speaker: Speaker) -> None:
    run = speaker.hear("chat", chat_answer(chat_call(0, id="a", name="n" * 900, args="{}")))
    [call] = run.calls.all()
    assert (call.tool, call.state) == ("n" * 199 + "…", "denied")
