"""What stands in a subject, a title or an address may not begin another line, in any tool."""

from typing import Any

import pytest
from pydantic import BaseModel

from tests.tools.builtin.calls import EFFECTS, arguments, tool
from tools.errors import BadArguments

# Every control character, and what Unicode calls a separator of lines or paragraphs.
SIGNS = [chr(n) for n in (*range(1, 32), *range(127, 160), 0x2028, 0x2029)]
# The arguments that are a text of several lines, or no text at all.
LONG = {"body", "message", "text"}


def lines_of(name: str) -> list[str]:
    """The arguments of the example that are one line."""
    given = arguments(name).model_dump()
    return [key for key, value in given.items() if isinstance(value, str) and key not in LONG]


ONE_LINE = [(name, key) for name in (*EFFECTS, "files.write") for key in lines_of(name)]


def test_there_are_such_arguments() -> None:
    assert ("email.send", "subject") in ONE_LINE
    assert ("files.write", "path") in ONE_LINE
    assert len(ONE_LINE) > 12


@pytest.mark.parametrize(("name", "key"), ONE_LINE)
def test_a_sign_that_breaks_a_line_is_refused_when_it_is_proposed(name: str, key: str) -> None:
    for sign in SIGNS:
        with pytest.raises(BadArguments):
            arguments(name, **{key: f"a{sign}b"})


@pytest.mark.parametrize(
    ("name", "raw"),
    [
        ("mail.search", {"query": "a%sb"}),
        ("email.send_later", {"to": ["a@b.example"], "subject": "a%sb", "body": "x"}),
        ("email.send", {"to": ['"a%sb"@host.example'], "subject": "a", "body": "x"}),
        ("calendar.cancel_event", {"title": "a", "start": "2031-03-05T13:00Z", "uid": "a%sb"}),
        ("git.open_draft", {"branch": "b", "title": "a%sb", "files": {"a": ""}, "message": "x"}),
        ("git.open_draft", {"branch": "b", "title": "a", "files": {"a%sb": ""}, "message": "x"}),
        ("files.move", {"path": "a", "to": "a%sb"}),
        ("http.get", {"url": "https://host/a%sb"}),
    ],
)
def test_so_it_is_where_the_line_is_deeper(name: str, raw: dict[str, Any]) -> None:
    assert isinstance(tool(name).parse(_filled(raw, "-")), BaseModel)
    for sign in SIGNS:
        with pytest.raises(BadArguments):
            tool(name).parse(_filled(raw, sign))


def _filled(raw: Any, sign: str) -> Any:
    match raw:
        case str():
            return raw.replace("%s", sign)
        case dict():
            return {_filled(key, sign): _filled(value, sign) for key, value in raw.items()}
        case list():
            return [_filled(value, sign) for value in raw]
    return raw
