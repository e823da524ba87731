"""E14: in every wire format, an answer counts once its provider has said that it has ended."""

import json

import pytest

from agentruns.models import Output, Run
from agentruns.planner.stream import AnswerEnded, CallWritten
from agentruns.states import READY
from tests.agentruns.planner.conftest import Speaker, written
from tests.agentruns.planner.wires import FORMATS, Answer, Ask

BOOK = Ask("test__book", ('{"what": "a ', 'room"}'), "call_1")
SEND = Ask("test__send", ('{"what": "the ', 'news"}'), "call_2")
SAID = ("I will ", "do that. ", BOOK, SEND)

each_format = pytest.mark.parametrize("form", FORMATS)


def went_out(run: Run) -> bool:
    return run.calls.filter(state__in=(*READY, "awaiting_approval", "in_flight", "landed")).exists()


@each_format
def test_of_one_that_ended_cleanly_everything_goes_out(speaker: Speaker, form: str) -> None:
    run = speaker.hear(form, speaker.say(form, *SAID))
    assert written(run) == [
        ("test.book", "approved", "a room"),
        ("test.send", "awaiting_approval", "the news"),
    ]
    [output] = Output.objects.filter(run=run)
    assert (output.text, output.status) == ("I will do that. ", "complete")


@each_format
def test_of_one_that_just_ends_nothing_goes_out(speaker: Speaker, form: str) -> None:
    """With both calls whole, and in the middle of the second one's arguments."""
    whole = speaker.say(form, *SAID)
    before_end = len(whole.events) - whole.ends
    inside = next(n for n, event in enumerate(whole.events) if b"news" in event)
    for answer in (whole.cut(before_end), whole.torn(inside), whole.cut(2)):
        run = speaker.hear(form, answer)
        assert not went_out(run)
        assert run.status == "failed"
        assert Output.objects.get(run=run).status == "incomplete"


@each_format
def test_wherever_one_is_cut_it_is_no_clean_end(speaker: Speaker, form: str) -> None:
    whole = speaker.say(form, *SAID)
    before_end = len(whole.events) - whole.ends
    cuts = [whole.cut(count) for count in range(1, before_end + 1)]
    torn = [whole.torn(count) for count in range(before_end)]
    asked = {BOOK.name: json.loads(BOOK.args), SEND.name: json.loads(SEND.args)}
    for events in speaker.listen(form, [*cuts, *torn]):
        for call in (each for each in events if isinstance(each, CallWritten)):
            assert json.loads(call.raw_args) == asked[call.tool]
        assert not any(isinstance(each, AnswerEnded) and each.is_clean for each in events)
    [events] = speaker.listen(form, [whole])
    assert isinstance(events[-1], AnswerEnded)
    assert events[-1].is_clean


@each_format
def test_of_one_whose_connection_breaks_nothing_goes_out(speaker: Speaker, form: str) -> None:
    whole = speaker.say(form, *SAID)
    before_end = whole.events[: len(whole.events) - whole.ends]
    run = speaker.hear(form, Answer(before_end, 0, breaks=True))
    assert not went_out(run)
    assert (run.status, run.failure) == ("failed", "provider_failed")


@each_format
def test_prose_alone_is_complete_only_with_its_end(speaker: Speaker, form: str) -> None:
    whole = speaker.say(form, "That is all.")
    assert speaker.hear(form, whole).status == "completed"
    run = speaker.hear(form, whole.without_end())
    assert (run.status, run.failure) == ("failed", "answer_broken")
    assert Output.objects.get(run=run).status == "incomplete"


@each_format
def test_a_read_goes_out_in_mid_stream(speaker: Speaker, form: str) -> None:
    """R31: the answer breaks off after it, and it is gone by then."""
    note = Ask("test__note", ('{"what": ', '"mail"}'))
    whole = speaker.say(form, note, "Meanwhile ")
    run = speaker.hear(form, whole.without_end())
    assert run.events.filter(kind="call.approved").count() == 1
