"""N2: however a provider numbers the calls of an answer, none gets what the model did not write."""

from typing import Any

import pytest

from agentruns.planner.stream import AnswerEnded, CallWritten, Event
from tests.agentruns.planner.conftest import Speaker, written
from tests.agentruns.planner.wires import FORMATS, Ask, chat_answer, chat_call, chat_chunk

A, B = '{"what": "a"}', '{"what": "b"}'
BOOK, POST = "test__book", "test__post"
BOTH = [("test__book", A), ("test__post", B)]

piece = chat_call


def halves(*numbers: dict[str, Any]) -> list[bytes]:
    """Both calls, each opened and then written in two pieces, one call after the other."""
    first, second, *more = numbers
    again = more or [first, second]
    events = []
    for name, args, opened, after in ((BOOK, A, first, again[0]), (POST, B, second, again[1])):
        events += [piece(**opened, name=name, args=""), piece(**after, args=args[:5])]
        events.append(piece(**after, args=args[5:]))
    return events


def alternating(
    first: dict[str, Any], second: dict[str, Any], *more: dict[str, Any]
) -> list[bytes]:
    """Both calls opened, then their pieces alternately."""
    one, two = more or (first, second)
    return [
        piece(**first, name=BOOK, args=""),
        piece(**second, name=POST, args=""),
        piece(**one, args=A[:5]),
        piece(**two, args=B[:5]),
        piece(**one, args=A[5:]),
        piece(**two, args=B[5:]),
    ]


def num(index: int | None, id: str = "") -> dict[str, Any]:
    return {"index": index, "id": id}


SORTED = {
    "by index, with ids at the beginning": alternating(num(0, "a"), num(1, "b"), num(0), num(1)),
    "by index, each id again": alternating(num(0, "a"), num(1, "b")),
    "by index alone": alternating(num(0), num(1)),
    "by an index from 1": alternating(num(1, "a"), num(2, "b"), num(1), num(2)),
    "by an index with gaps": alternating(num(3, "a"), num(7, "b"), num(3), num(7)),
    "by index, with another id on each piece": alternating(
        num(0, "a"), num(1, "b"), num(0, "x"), num(1, "y")
    ),
    "by index, both with one id, one after the other": halves(num(0, "a"), num(1, "a")),
    "always 0, each id again": alternating(num(0, "a"), num(0, "b")),
    "always 0, with ids at the beginning": halves(num(0, "a"), num(0, "b"), num(0), num(0)),
    "always 0, without ids": halves(num(0), num(0)),
    "no index, each id again": alternating(num(None, "a"), num(None, "b")),
    "no index, with ids at the beginning": halves(
        num(None, "a"), num(None, "b"), num(None), num(None)
    ),
    "neither index nor id": halves(num(None), num(None)),
    "always 0, each whole in one piece": [
        piece(0, id="a", name=BOOK, args=A),
        piece(0, id="b", name=POST, args=B),
    ],
    "arguments as objects": [
        piece(0, id="a", name=BOOK, args={"what": "a"}),
        piece(1, id="b", name=POST, args={"what": "b"}),
    ],
    "the name on each piece": [
        piece(0, id="a", name=BOOK, args=A[:5]),
        piece(0, id="a", name=BOOK, args=A[5:]),
        piece(1, id="b", name=POST, args=B[:5]),
        piece(1, id="b", name=POST, args=B[5:]),
        piece(1, id="b", name=POST, args=""),
    ],
    "the name in pieces": [
        piece(0, id="a", name="test__"),
        piece(0, name="book", args=""),
        piece(0, args=A),
        piece(1, id="b", name="test__po", args=""),
        piece(1, name="st", args=B),
    ],
    "an id and a number before the name": [
        piece(0, id="a"),
        piece(0, id="a", name=BOOK, args=A),
        piece(1, id="b"),
        piece(1, id="b", name=POST, args=B),
    ],
    "the same tool twice, without numbers": [
        piece(None, name=BOOK, args=""),
        piece(None, args=A),
        piece(None, name=BOOK, args=""),
        piece(None, args=B),
    ],
}

REFUSED = {
    "always 0, alternately, with ids at the beginning": alternating(
        num(0, "a"), num(0, "b"), num(0), num(0)
    ),
    "no numbers, alternately": alternating(num(None), num(None)),
    "no index, prose before the arguments of the second": [
        piece(None, id="a", name=BOOK, args=""),
        piece(None, id="b", name=POST, args=""),
        chat_chunk({"content": " "}),
        piece(None, args=B),
    ],
    "no numbers and one name, alternately": [
        piece(None, name=BOOK, args=""),
        piece(None, name=BOOK, args=""),
        piece(None, args='{"what": ['),
        piece(None, args=A),
        piece(None, args="]}"),
    ],
    "both with one id, alternately": alternating(num(0, "a"), num(1, "a"), num(0), num(1)),
    "another id and the name on each piece": [
        piece(0, id="a", name=BOOK, args=""),
        piece(0, id="b", name=BOOK, args=A[:5]),
        piece(0, id="c", name=BOOK, args=A[5:]),
    ],
    "pieces of a call that was never begun": [
        piece(0, id="a", name=BOOK, args=""),
        piece(4, args=A),
    ],
    "more, after a call that was complete and has been reported": [
        piece(0, id="a", name=BOOK, args=A),
        piece(1, id="b", name=POST, args=""),
        piece(0, args=A),
        piece(1, args=B),
    ],
    "two names of one call": [
        piece(0, id="a", name=BOOK, args=""),
        piece(0, name=POST, args=""),
        piece(0, args=B),
    ],
}


def calls(events: list[Event | Exception]) -> list[tuple[str, str]]:
    return [(each.tool, each.raw_args) for each in events if isinstance(each, CallWritten)]


def end(events: list[Event | Exception]) -> AnswerEnded:
    assert isinstance(events[-1], AnswerEnded), events[-1]
    return events[-1]


@pytest.mark.parametrize("numbering", SORTED)
def test_each_call_has_its_own_arguments(speaker: Speaker, numbering: str) -> None:
    [events] = speaker.listen("chat", [chat_answer(*SORTED[numbering])])
    assert end(events).is_clean
    assert calls(events) == ([(BOOK, A), (BOOK, B)] if "same tool" in numbering else BOTH)


@pytest.mark.parametrize("numbering", REFUSED)
def test_what_cannot_be_told_apart_is_refused(speaker: Speaker, numbering: str) -> None:
    [events] = speaker.listen("chat", [chat_answer(*REFUSED[numbering])])
    assert (end(events).finish_reason, end(events).is_clean) == ("malformed", False)
    assert set(calls(events)) <= {(BOOK, A)}, "at most what had been complete before"


TWO = (Ask(BOOK, (A[:5], A[5:]), "call_1"), Ask(POST, (B[:5], B[5:]), "call_2"))


@pytest.mark.parametrize("form", ["responses", "anthropic"])
def test_other_formats_may_alternate_too(speaker: Speaker, form: str) -> None:
    [events] = speaker.listen(form, [speaker.say(form, *TWO).alternating(1, 5)])
    assert end(events).is_clean
    assert calls(events) == BOTH


def test_blocks_with_one_number_are_told_apart_by_their_ids(speaker: Speaker) -> None:
    def number(event: dict[str, Any]) -> None:
        event |= {"index": 0} if "index" in event else {}

    one_number = speaker.say("anthropic", *TWO).edited(number)
    after_prose = speaker.say("anthropic", "Now. ", *TWO).edited(number)
    one, other, mixed = speaker.listen(
        "anthropic", [one_number, after_prose, one_number.alternating(1, 5)]
    )
    assert calls(one) == calls(other) == BOTH
    assert not end(mixed).is_clean
    assert calls(mixed) == []


@pytest.mark.filterwarnings("ignore")  # pydantic-ai warns, and goes on
def test_arguments_that_are_told_twice_and_differently_are_refused(speaker: Speaker) -> None:
    def edit(event: dict[str, Any]) -> None:
        if event["type"] == "response.output_item.done":
            event["item"]["arguments"] = B

    [events] = speaker.listen("responses", [speaker.say("responses", TWO[0]).edited(edit)])
    assert end(events).finish_reason == "malformed"
    assert calls(events) == []


def test_arguments_may_come_at_the_end_of_a_call_alone(speaker: Speaker) -> None:
    def drop(event: dict[str, Any]) -> None:
        if event["type"] == "response.function_call_arguments.delta":
            event["delta"] = ""

    [events] = speaker.listen("responses", [speaker.say("responses", *TWO).edited(drop)])
    assert calls(events) == BOTH


def test_arguments_under_another_id_leave_no_empty_call_behind(speaker: Speaker) -> None:
    def edit(event: dict[str, Any]) -> None:
        if event["type"] != "response.output_item.added":
            event |= {"item_id": "fc_x"} if "item_id" in event else {}
            if "item" in event:
                event["item"]["id"] = "fc_x"

    [events] = speaker.listen("responses", [speaker.say("responses", TWO[0]).edited(edit)])
    assert not end(events).is_clean
    assert calls(events) == []


@pytest.mark.parametrize("form", FORMATS)
def test_a_call_without_arguments_has_none(speaker: Speaker, form: str) -> None:
    said = ("Now. ", Ask("test__note", ()), "Done.")
    [events] = speaker.listen(form, [speaker.say(form, *said)])
    assert end(events).is_clean
    assert calls(events) in ([("test__note", "")], [("test__note", "{}")])


@pytest.mark.parametrize("tool", ["test.note", "test.book", "test.send"])
def test_no_call_is_proposed_before_its_arguments_are_there(speaker: Speaker, tool: str) -> None:
    """N2: reads at once, others at the end, in the order in which the model began them."""
    name = tool.replace(".", "__")
    events = [
        piece(0, id="a", name=name, args=""),
        piece(1, id="b", name=name, args=""),
        piece(1, args=B),
        piece(0, args=A),
    ]
    run = speaker.hear("chat", chat_answer(*events))
    assert [(each, what) for each, _state, what in written(run)] == [(tool, "a"), (tool, "b")]


def test_prose_before_the_arguments_of_a_call_does_not_end_it(speaker: Speaker) -> None:
    """N2: a space is enough."""
    events = [
        chat_chunk({"content": "Now: "}),
        piece(0, id="a", name="test__send", args=""),
        chat_chunk({"content": " "}),
        piece(0, args=A),
        chat_chunk({"content": "That is all."}),
    ]
    run = speaker.hear("chat", chat_answer(*events))
    assert written(run) == [("test.send", "awaiting_approval", "a")]
    assert run.calls.get().text_offset == len("Now: ")


def test_a_mixed_up_answer_fails_and_says_so(speaker: Speaker) -> None:
    numbering = "always 0, alternately, with ids at the beginning"
    run = speaker.hear("chat", chat_answer(*REFUSED[numbering]))
    assert (run.status, run.failure) == ("failed", "answer_malformed")
    assert "several calls" in run.failure_detail
    assert written(run) == []
