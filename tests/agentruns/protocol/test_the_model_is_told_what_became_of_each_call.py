"""E3, E4, I11: every call has a result, and each fate its own word."""

from pydantic_ai.messages import ModelRequest, ModelResponse, ToolCallPart, ToolReturnPart

from agentruns.models import ToolCall
from agentruns.planner.history import messages_of, result_words
from agentruns.protocol.doubt import answer
from tests.agentruns.outside import Outside
from tests.agentruns.steps import Steps, anew, now, pass_time
from tools.models import Tool


def words(call: ToolCall) -> str:
    return result_words(anew(call))


def test_stopped_is_not_rejected(steps: Steps) -> None:
    run, (book, send) = steps.running("test.book", "test.send")
    steps.stop(run)

    assert words(book) == "Not executed: stopped by the user."
    assert words(send) == "Not executed: stopped by the user while it waited for approval."


def test_each_fate_has_its_own_word(steps: Steps, outside: Outside) -> None:
    run, calls = steps.running("test.book", "test.send", "test.send", "test.post", "test.draft")
    landed, rejected, expired, denied, failed = calls
    steps.act(landed)
    steps.reject(rejected, "wrong person")
    pass_time(expired)
    steps.sweep()
    Tool.objects.filter(name="test.post").update(enabled=False)
    steps.act(denied)
    outside.answers["test.draft"] = "refused"
    steps.act(failed)

    said = [words(call) for call in calls]

    assert said == [
        "test.book is done.",
        "Not executed: a person rejected it. wrong person",
        "Not executed: nobody approved it in time.",
        "Not executed: an administrator has switched this tool off.",
        "Failed, and had no effect (refused). The outside said no.",
    ]
    assert now(run).status == "running"


def test_a_doubt_is_told_as_doubt(steps: Steps, outside: Outside) -> None:
    """E6."""
    outside.answers["test.post"] = "lost"
    _run, (call,) = steps.running("test.post")
    steps.act(call)

    assert words(call).startswith("Unknown whether it happened. Do not repeat it.")
    answer(call.pk, by=steps.owner, answer="happened", evidence="seen")
    assert words(call) == "It happened."


def test_every_call_in_the_history_has_its_result_right_after_it(
    steps: Steps, outside: Outside
) -> None:
    run, calls = steps.running("test.book", "test.send", "test.unknown")
    steps.act(calls[0])
    steps.reject(calls[1])

    messages = messages_of(now(run))

    assert [type(message) for message in messages] == [ModelRequest, ModelResponse, ModelRequest]
    asked = [p.tool_call_id for p in messages[1].parts if isinstance(p, ToolCallPart)]
    told = [p.tool_call_id for p in messages[2].parts if isinstance(p, ToolReturnPart)]
    assert asked == told == [call.provider_call_id for call in calls]


def test_an_answer_that_was_cut_is_not_passed_off_as_said(steps: Steps) -> None:
    """E9."""
    run = steps.start()
    lease = steps.think(run)
    steps.propose(lease, "test.book")
    steps.stop(run)
    steps.give_back(lease)

    assert len(messages_of(now(run))) == 1
