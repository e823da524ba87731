"""What is read by many is kept short, and the protocol's modules say what they guarantee."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

BASE = Path(__file__).resolve().parent.parent
APPS = ("agentruns", "tools", "compensation", "review")
LONGEST_FUNCTION = 40  # lines
LONGEST_MODULE = 500
LONGEST_TEMPLATE = 150


def modules() -> Iterator[Path]:
    for app in APPS:
        yield from (path for path in (BASE / app).rglob("*.py") if "migrations" not in path.parts)


def too_long(path: Path) -> list[str]:
    tree = ast.parse(path.read_text())
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    functions = [node for node in ast.walk(tree) if isinstance(node, kinds)]
    return [
        f"{node.name} has {length} lines"
        for node in functions
        if (length := (node.end_lineno or node.lineno) - node.lineno + 1) > LONGEST_FUNCTION
    ]


def test_no_function_is_longer_than_a_screen() -> None:
    found = {str(path.relative_to(BASE)): too_long(path) for path in modules()}
    assert {path: long for path, long in found.items() if long} == {}


def test_no_module_and_no_template_is_too_long() -> None:
    limits = [(path, LONGEST_MODULE) for path in modules()]
    limits += [(path, LONGEST_TEMPLATE) for path in (BASE / "templates").rglob("*.html")]
    lines = {path: len(path.read_text().splitlines()) for path, _limit in limits}
    assert {str(path): lines[path] for path, limit in limits if lines[path] > limit} == {}


@pytest.mark.parametrize(
    "path",
    [p for p in sorted((BASE / "agentruns" / "protocol").glob("*.py")) if p.stem != "__init__"],
    ids=lambda path: path.stem,
)
def test_each_module_of_the_protocol_opens_with_what_it_guarantees(path: Path) -> None:
    opening = ast.get_docstring(ast.parse(path.read_text())) or ""
    assert "Guarantees" in opening
