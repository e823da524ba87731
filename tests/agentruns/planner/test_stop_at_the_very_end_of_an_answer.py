"""E10: an answer that had ended when Stop came is whole; and nothing of it goes out."""

from agentruns.models import Output, Run
from tests.agentruns.planner.conftest import Speaker, drive, written
from tests.agentruns.planner.wires import Answer, Ask
from tests.agentruns.steps import now
from tests.pausing import Pauses, in_background

BOOK = Ask("test__book", ('{"what": "room"}',), "call_1")
POST = Ask("test__post", ('{"what": "news"}',), "call_2")


def stopped_at(speaker: Speaker, pauses: Pauses, answer: Answer, point: str, **how: str) -> Run:
    """The run, stopped while its driver stands at this point."""
    run = speaker.start("chat", answer)
    hold = pauses.hold(run.pk, point)
    with in_background(drive, speaker.steps, run) as driving:
        hold.wait()
        speaker.steps.stop(run, **how)
        hold.release()
        driving.result(timeout=20)
    return now(run)


def test_it_is_complete_and_its_calls_are_dropped(speaker: Speaker, pauses: Pauses) -> None:
    answer = speaker.say("chat", "I will do that. ", BOOK)
    run = stopped_at(speaker, pauses, answer, "think:1:ended")
    [output] = Output.objects.filter(run=run)
    assert (output.status, output.text, output.finish_reason) == (
        "complete",
        "I will do that. ",
        "tool_call",
    )
    assert written(run) == [("test.book", "voided", "room")]
    assert run.status == "stopped_clean"


def test_its_calls_can_be_kept_and_let_go_on_by_a_person(speaker: Speaker, pauses: Pauses) -> None:
    answer = speaker.say("chat", "I will do that. ", BOOK)
    run = stopped_at(speaker, pauses, answer, "think:1:ended", pending="freeze")
    assert written(run) == [("test.book", "frozen", "room")]
    speaker.steps.resume(run)
    assert written(run) == [("test.book", "approved", "room")]


def test_it_is_not_whole_if_a_call_of_it_is_not_on_record(speaker: Speaker, pauses: Pauses) -> None:
    answer = speaker.say("chat", "I will do that. ", BOOK, POST)
    run = stopped_at(speaker, pauses, answer, "call:1:buffered")
    assert Output.objects.get(run=run).status == "incomplete"
    assert written(run) == [("test.book", "voided", "room")]
    assert run.status == "stopped_clean"
