"""A scenario's turn as the pieces that a model would generate, one token each.

Pure: no clock, no connection. `provider.py` paces the pieces and puts them on the wire.
"""

import json
import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from tools.world import scenarios
from tools.world.provider_history import History, result_lines, same_name
from tools.world.scenarios import Call, Cut, Finish, Pause, Results, Say, Scenario, Step

WORD = re.compile(r"\s*\S+\s*")
ARGS_PIECE = 12
RUN_MARK = "@run"  # in a script: a short name of the run, so that two runs don't collide
NOTHING_YET = "\n\nI have not done anything yet.\n\n"
NOTHING_NEW = "\n\nNothing new has come back since I last wrote.\n\n"


@dataclass(frozen=True)
class Text:
    """A piece of prose."""

    content: str


@dataclass(frozen=True)
class CallStart:
    """The head of a tool call; `index` counts the calls of one turn."""

    index: int
    id: str
    tool: str


@dataclass(frozen=True)
class CallArgs:
    """A piece of a call's arguments, as JSON text."""

    index: int
    arguments: str


@dataclass(frozen=True)
class End:
    """The last piece. `reason` is None where the stream ends without one."""

    reason: str | None
    drops_connection: bool = False


Piece: TypeAlias = Text | CallStart | CallArgs | Pause | End


def pieces(
    scenario: Scenario, history: History, offered: tuple[str, ...], now: datetime, run: str = ""
) -> Iterator[Piece]:
    """What the model generates next; ends with exactly one End. `run` is the run's id.

    A model that is offered no tools calls none, and past a scenario's last turn there is no
    script: both times it reports what the history holds.
    """
    scripted = offered and history.turn < len(scenario.turns)
    turn = scenario.turns[history.turn] if scripted else (Results(),)
    short = run[-4:].lower() or "draft"
    index = -1
    for position, step in enumerate(turn):
        following = turn[position + 1] if position + 1 < len(turn) else None
        match step:
            case Say(text):
                yield from _words(text.replace(RUN_MARK, short))
            case Results(new):
                yield from _words(_report(history, new=new))
            case Pause():
                yield step
            case Call(tool, args):
                index += 1
                yield CallStart(index, f"call_{secrets.token_hex(12)}", _wire_name(tool, offered))
                text = json.dumps(scenarios.dated(args, now), ensure_ascii=False)
                text = text.replace(RUN_MARK, short)
                yield from _arguments(index, text, following)
    yield _end(turn[-1], called=index >= 0)


def _words(text: str) -> Iterator[Text]:
    return (Text(word) for word in WORD.findall(text))


def _arguments(index: int, text: str, following: Step | None) -> Iterator[CallArgs]:
    if isinstance(following, Cut):
        # Half of it for a broken stream. `malformed` is the same half under a clean end: a
        # client that trusts the finish reason alone would run it.
        text = text[: len(text) // 2]
    for start in range(0, len(text), ARGS_PIECE):
        yield CallArgs(index, text[start : start + ARGS_PIECE])


def _end(last: Step, *, called: bool) -> End:
    match last:
        case Cut("connection"):
            return End(None, drops_connection=True)
        case Cut("eof"):
            return End(None)
        case Cut("length"):
            return End("length")
        case Finish(reason):
            return End(reason)
    return End("tool_calls" if called else "stop")


def _report(history: History, *, new: bool) -> str:
    results = history.new_results if new else history.results
    if results:
        return result_lines(results)
    return NOTHING_NEW if new else NOTHING_YET


def _wire_name(tool: str, offered: tuple[str, ...]) -> str:
    """The name by which the client offered this tool.

    Providers allow no dots in function names, so a client may offer mail.search as
    mail_search or mail__search; a model answers with what it was offered.
    """
    for name in offered:
        if same_name(name) == same_name(tool):
            return name
    return tool
