"""I8 and I11: what is given out as complete is, and what a provider is sent has no hole."""

from collections import defaultdict
from collections.abc import Iterator

from pydantic_ai.messages import ModelResponse, TextPart

from agentruns.models import Output
from agentruns.planner.stream import CLEAN_REASONS
from agentruns.verify.facts import Event, Facts, Finding


def nothing_incomplete_is_served(facts: Facts) -> Iterator[Finding]:
    """I8: what the one door gives out as complete is complete, by its row and by its ledger, and
    nothing else is in a history.
    """
    served = {output.pk for output in facts.served}
    ended: dict[int, list[Event]] = defaultdict(list)
    for event in facts.by_call[None]:
        if event.kind == "output.completed":
            ended[event.data["turn"]].append(event)
    for output in facts.outputs:
        is_served = output.pk in served
        what = f"the text of turn {output.turn} "
        if is_served != (output.status == "complete"):
            yield facts.breach(
                what + f"is {output.status}; it is given out as complete: {is_served}"
            )
        elif is_served and (wrong := _not_whole(output, ended[output.turn])):
            yield facts.breach(what + wrong)
        else:
            yield None
    if facts.run.status == "completed":
        last = [output.status for output in facts.outputs if output.turn == facts.run.turn]
        yield facts.unless(last == ["complete"], "is completed; its last answer is not")
    yield _finding_of_prose(facts)


def _not_whole(output: Output, ended: list[Event]) -> str:
    """What speaks against a text that is said to be complete."""
    written = len(output.text)
    if [event.data["offset"] for event in ended] != [written] or output.offset != written:
        at = [event.data["offset"] for event in ended]
        return f"has {written} characters; it ended at {output.offset}, and by its ledger at {at}"
    if output.finish_reason not in CLEAN_REASONS:
        return f"is complete, and ended as {output.finish_reason}"
    return ""


def _finding_of_prose(facts: Facts) -> Finding:
    said = [
        "".join(part.content for part in message.parts if isinstance(part, TextPart))
        for message in facts.history
        if isinstance(message, ModelResponse)
    ]
    complete = [output.text for output in facts.outputs if output.status == "complete"]
    return facts.unless(said == complete, "its history says other than its complete answers")


def history_has_every_result(facts: Facts) -> Iterator[Finding]:
    """I11: in what the model is sent, each call is answered right after it, once."""
    messages = facts.history
    for number, message in enumerate(messages):
        asked = [part.tool_call_id for part in message.parts if part.part_kind == "tool-call"]
        following = messages[number + 1].parts if number + 1 < len(messages) else []
        answered = [part.tool_call_id for part in following if part.part_kind == "tool-return"]
        is_paired = asked == answered and len(set(asked)) == len(asked)
        yield facts.unless(is_paired, f"message {number}: {asked} got {answered}")
