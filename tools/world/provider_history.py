"""The conversation that a client sends: checked as real providers check it, then read back.

Pure Python, over the plain JSON of an OpenAI chat completions request.
"""

import json
import re
from dataclasses import dataclass
from typing import Any

LONGEST_LINE = 220
# How agentruns marks what others wrote, within what it says itself.
_MARKED = re.compile(r"<outside (\w+):[^>]*>\n(.*)\n</outside \1>", re.DOTALL)
# A model that writes for people does not tell them the names of its tools.
_NAMES = {
    "mail_search": "Mail search",
    "email_send": "Mail",
    "email_send_later": "Mails",
    "calendar_create_event": "Meeting",
    "calendar_move_event": "Meeting",
    "calendar_cancel_event": "Meeting",
    "git_open_draft": "Draft",
    "chat_post_message": "Message to",
    "chat_announce": "Announcement",
    "tickets_create": "Ticket",
    "payments_authorize_capture": "Payment",
    "sql_execute": "Database",
    "files_write": "File",
    "files_move": "File",
    "files_delete": "File",
    "http_get": "Web page",
    "http_request": "Web request",
}


class BadHistory(Exception):
    """The request is refused with HTTP 400. `param` names the part of it that is wrong."""

    def __init__(self, message: str, param: str) -> None:
        super().__init__(message)
        self.param = param


@dataclass(frozen=True)
class ToolResult:
    """One answered tool call: what was called, and what the model was told."""

    tool: str
    args: dict[str, Any]
    content: str


@dataclass(frozen=True)
class History:
    """A valid conversation. `turn` counts the times that the model has spoken, from 0."""

    turn: int
    results: tuple[ToolResult, ...]
    new_results: tuple[ToolResult, ...]


def read_history(messages: Any) -> History:
    """Check and read a request's messages; BadHistory says what a provider would say.

    Every tool call needs exactly one tool message, before anybody else speaks, and a tool
    message needs its call (E4).
    """
    if not isinstance(messages, list) or not messages:
        raise BadHistory("'messages' must be a list with at least one message.", "messages")
    open_calls: dict[str, dict[str, Any]] = {}
    results: list[ToolResult] = []
    turn = seen = 0
    for position, message in enumerate(messages):
        param = f"messages.[{position}]"
        role = message.get("role") if isinstance(message, dict) else None
        if role == "tool":
            results.append(_answer(message, open_calls, param))
            continue
        _refuse_unanswered(open_calls, param)
        if role == "assistant":
            turn, seen = turn + 1, len(results)
            open_calls = _calls(message, param)
        elif role not in ("system", "developer", "user"):
            raise BadHistory(f"Invalid value for 'role': {role!r}.", f"{param}.role")
    _refuse_unanswered(open_calls, "messages")
    return History(turn, tuple(results), tuple(results[seen:]))


def result_lines(results: tuple[ToolResult, ...]) -> str:
    """Plain prose from results: a Markdown list of its own, one line for each."""
    lines = "\n".join(f"- {_subject(result)}: {_shortened(result.content)}" for result in results)
    return f"\n\n{lines}\n\n"


def same_name(tool: str) -> str:
    """A form in which mail.search, mail_search and mail__search are one name."""
    return re.sub(r"[^A-Za-z0-9]+", "_", tool)


def _calls(message: dict[str, Any], param: str) -> dict[str, dict[str, Any]]:
    calls: dict[str, dict[str, Any]] = {}
    for call in message.get("tool_calls") or []:
        match call:
            case {"id": str(call_id), "function": {"name": str()} as function}:
                if call_id in calls:
                    raise BadHistory(f"Duplicate tool_call_id: {call_id}.", f"{param}.tool_calls")
                calls[call_id] = function
            case _:
                raise BadHistory(f"Invalid tool call: {call!r}.", f"{param}.tool_calls")
    return calls


def _answer(
    message: dict[str, Any], open_calls: dict[str, dict[str, Any]], param: str
) -> ToolResult:
    function = open_calls.pop(message.get("tool_call_id", ""), None)
    if function is None:
        raise BadHistory(
            "Invalid parameter: messages with role 'tool' must be a response to a preceding "
            "message with 'tool_calls', one for each call.",
            f"{param}.role",
        )
    content = _MARKED.sub(lambda found: found[2], _text(message.get("content")))
    return ToolResult(function["name"], _arguments(function), content)


def _refuse_unanswered(open_calls: dict[str, dict[str, Any]], param: str) -> None:
    if open_calls:
        raise BadHistory(
            "An assistant message with 'tool_calls' must be followed by tool messages responding "
            "to each 'tool_call_id'. The following tool_call_ids did not have response messages: "
            + ", ".join(open_calls),
            param,
        )


def _arguments(function: dict[str, Any]) -> dict[str, Any]:
    try:
        args = json.loads(function.get("arguments") or "{}")
    except ValueError:
        return {}
    return args if isinstance(args, dict) else {}


def _text(content: Any) -> str:
    if isinstance(content, list):
        return " ".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return str(content or "")


def _subject(result: ToolResult) -> str:
    """Which call this was, so that two of one tool can be told apart."""
    name = _NAMES.get(same_name(result.tool), result.tool)
    for key in ("subject", "title", "query", "channel", "path", "reference", "statement", "url"):
        if isinstance(value := result.args.get(key), str):
            return f"{name} “{value}”"
    return name


def _shortened(content: str) -> str:
    """One line of a result: a list of findings by its count, anything else by its beginning."""
    try:
        data = json.loads(content)
    except ValueError:
        data = None
    if isinstance(data, list):
        return f"{len(data)} found"
    line = content.strip().partition("\n")[0]
    return line if len(line) <= LONGEST_LINE else line[:LONGEST_LINE].rstrip() + " …"
