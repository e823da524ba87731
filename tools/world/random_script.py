"""Scripts at random, for soaks: what the model writes and calls in a run follows from its id.

The same run id gives the same script, in every process. All tiers come up, and so does what goes
wrong at real providers: arguments that do not fit, tools that do not exist, answers that break off.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from tools.world.scenarios import (
    CUTS,
    Call,
    Cut,
    Finish,
    Pause,
    Results,
    Say,
    Scenario,
    ScenarioAgent,
    Step,
    Turn,
)
from tools.world.services import CHANNELS

NAME = "random"  # as the model is called at the provider
PACE = 30.0  # tokens per second at a pace of 1
SENTENCES = (
    *("First I look, then I write.", "Nobody has to ask again.", "This is the plan:"),
    *("Once more, to be sure.", "What was agreed?", "Next step.", "So far, so good.", "Hm."),
)
_MONDAY = datetime(2031, 1, 6, 9, tzinfo=UTC)


@dataclass(frozen=True)
class _Place:
    """Where a call stands: everything that it writes carries it, so no two calls are equal."""

    run: str
    turn: int
    number: int

    def __str__(self) -> str:
        return f"{self.run}-{self.turn}-{self.number}"


Arguments = dict[str, Any]


def _search(random: Random, _place: _Place) -> Arguments:
    query = random.choice(("Q3", "review", "draft", "budget", "printer"))
    return {"query": query, "limit": random.randint(1, 10)}


def _event(random: Random, place: _Place) -> Arguments:
    start = _MONDAY + timedelta(hours=random.randrange(24 * 365))
    end = start + timedelta(minutes=random.choice((15, 30, 60)))
    people = random.sample(("ana@team.example", "bo@team.example", "mei@team.example"), 2)
    return {
        "title": f"Meeting {place}",
        "start": start.isoformat(),
        "end": end.isoformat(),
        "attendees": people,
    }


def _draft(_random: Random, place: _Place) -> Arguments:
    return {
        "branch": f"soak/{place}",
        "title": f"Draft {place}",
        "message": f"Add the numbers of {place}",
        "files": {f"numbers/{place}.csv": "month,revenue\nOct,470\n"},
    }


def _message(random: Random, place: _Place) -> Arguments:
    # Now and then a channel that the chat does not have.
    channel = "#nowhere" if random.random() < 0.05 else random.choice(CHANNELS)
    return {"channel": channel, "text": f"{_prose(random, 1)}({place})"}


def _ticket(random: Random, place: _Place) -> Arguments:
    return {"title": f"Ticket {place}", "body": _prose(random, 3)}


def _mail(random: Random, place: _Place) -> Arguments:
    to = random.sample(("ana@team.example", "bo@team.example", "finance@team.example"), 2)
    return {"to": to, "subject": f"Mail {place}", "body": _prose(random, 4)}


# How often each comes up, and how it is called. A draft costs a dozen git processes.
CALLS: dict[str, tuple[int, Callable[[Random, _Place], Arguments]]] = {
    "mail.search": (22, _search),
    "calendar.create_event": (20, _event),
    "git.open_draft": (3, _draft),
    "chat.post_message": (23, _message),
    "tickets.create": (20, _ticket),
    "email.send": (12, _mail),
}


def scenario_of(run: str) -> Scenario:
    """The script of this run. It lasts a few turns; then the model reports."""
    random = Random(f"script of {run}")  # noqa: S311  (nothing is to be kept secret)
    turns = random.choice((1, 2, 2, 3, 3, 4))
    return Scenario(
        name=NAME,
        title="Anything",
        goal="Do what comes to your mind",
        agent=ScenarioAgent("Restless assistant", "Does anything, at random.", tuple(CALLS)),
        turns=(*(_turn(random, run, turn) for turn in range(turns)), (Results(new=True),)),
        pace=PACE,
        listed=False,
    )


def _turn(random: Random, run: str, turn: int) -> Turn:
    steps: list[Step] = []
    if random.random() < 0.15:
        steps.append(Pause(random.uniform(0.5, 3.0)))
    for number in range(random.choice((1, 1, 2, 2, 3, 4))):
        steps.append(Say(_prose(random, random.randint(1, 2))))
        steps.append(_call(random, _Place(run, turn, number), steps))
    end = random.random()
    if end < 0.04:
        return (*steps, Cut(random.choice(CUTS)))
    if end < 0.05:
        return (*steps, Finish("content_filter"))
    return (*steps, Say(_prose(random, random.randint(1, 3))))


def _call(random: Random, place: _Place, before: list[Step]) -> Call:
    oddity = random.random()
    earlier = [step for step in before if isinstance(step, Call)]
    if oddity < 0.03:
        return Call("mail.burn", {"subject": str(place)})  # there is no such tool
    if oddity < 0.06 and earlier:
        return earlier[-1]  # the same once more
    tool = random.choices(list(CALLS), [weight for weight, _ in CALLS.values()])[0]
    arguments = CALLS[tool][1](random, place)
    if oddity > 0.96:
        arguments[next(iter(arguments))] = {"not": "what was asked for"}
    return Call(tool, arguments)


def _prose(random: Random, sentences: int) -> str:
    return " ".join(random.choices(SENTENCES, k=sentences)) + " "
