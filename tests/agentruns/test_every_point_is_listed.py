"""The points that the code reaches, and those that a drill lists, are the same."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from agentruns.drill.points import BEFORE_START, NEVER, PATTERNS
from agentruns.services.programs import BASE_DIR

LAYERS = ("agentruns", "compensation", "review")
# Where a whole step is filled in by the code: the states and kinds that it may be.
FILLED = {
    "sweep:*": r"sweep:(?!undo)\w+",
    "swept:*": r"swept:(?!undo)\w+",
    "call:*:*": r"call:N:(approved|rejected)",
}


def reached() -> Iterator[str]:
    """Each point that some code reaches, with a * for what it fills in."""
    for layer in LAYERS:
        for path in (BASE_DIR / layer).rglob("*.py"):
            yield from _points_in(path)


def _points_in(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and "reach" in ast.unparse(node):
            for argument in node.args:
                text = _text(argument)
                if re.match(r"(think|token|call|stop|drain|pause|resume|undo|sweep|swept):", text):
                    yield text


def _text(node: ast.expr) -> str:
    if isinstance(node, ast.JoinedStr):
        return "".join(
            str(part.value) if isinstance(part, ast.Constant) else "*" for part in node.values
        )
    return str(node.value) if isinstance(node, ast.Constant) else ""


def _form(point: str) -> str:
    return FILLED.get(point) or re.escape(point).replace(r"\*", "[TNK]")


def test_whatever_the_code_reaches_is_listed() -> None:
    forms = {point: re.compile(_form(point)) for point in reached()}
    unlisted = [p for p, form in forms.items() if not any(map(form.fullmatch, PATTERNS))]
    assert unlisted == []


def test_whatever_is_listed_is_reached_by_some_code() -> None:
    forms = [re.compile(_form(point)) for point in reached()]
    listed = [pattern for pattern in PATTERNS if pattern not in (NEVER, BEFORE_START)]
    assert [each for each in listed if not any(form.fullmatch(each) for form in forms)] == []
