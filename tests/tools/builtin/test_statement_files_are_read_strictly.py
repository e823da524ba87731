from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_django.fixtures import Settings

from tests.tools.builtin.calls import tool
from tests.tools.builtin.shop import PRICES, Shop, opened
from tests.tools.conftest import NewContext
from tools.builtin import statements
from tools.builtin.statements import StatementError
from tools.errors import NoEffect

SOUND = """\
statements:
  - name: prices.lower
    title: {en: "Lower {item}", zh-hans: "下调 {item}"}
    params:
      item: {type: string, maxLength: 20, enum: [chair, desk]}
      percent: {type: number, minimum: 0.5, maximum: 10}
    sql: UPDATE prices SET price = price * %(percent)s WHERE item = %(item)s AND item LIKE '%%r'
    rows: 1
    undo: UPDATE prices SET price = price / %(percent)s WHERE item = %(item)s
    unless: SELECT 1 FROM jsonb_array_elements(%(rows)s)
"""
UNDO = "    undo: UPDATE prices SET price = price / %(percent)s WHERE item = %(item)s\n"


@pytest.fixture
def file(tmp_path: Path, settings: Settings) -> Path:
    path = tmp_path / "shop.yaml"
    settings.SQL_STATEMENTS = str(path)
    return path


def test_a_sound_file_is_read(file: Path) -> None:
    file.write_text(SOUND)
    (found,) = statements.load().values()
    assert (found.name, found.rows) == ("prices.lower", 1)
    assert found.title({"item": "chair", "percent": 1}) == "Lower chair"
    assert found.params["percent"].schema == {"type": "number", "minimum": 0.5, "maximum": 10}
    assert found.problems({"item": "lamp", "percent": 10.5}) == [
        "item must be one of chair, desk",
        "percent must be from 0.5 to 10",
    ]


@pytest.mark.parametrize(
    ("old", "new", "line", "problem"),
    [
        ("    undo: ", "    redo: ", 9, "unknown key “redo”"),
        (UNDO, "", 2, "“undo” is missing"),
        ("prices.lower", "Prices", 2, "small letters"),
        ("{item}", "{thing}", 3, "“thing” is no parameter"),
        ("Lower {item}", "Lower {item", 3, "a brace"),
        ('en: "Lower {item}", ', "", 3, "“en” is missing"),
        ("zh-hans", "tlh", 3, "unknown key “tlh”"),
        ("      item:", "      rows:", 5, "is not “rows”"),
        ("type: string", "type: date", 5, "unknown value “date”"),
        ("type: string, ", "", 5, "“type” is missing"),
        ("type: number", "type: boolean", 6, "unknown key “minimum”"),
        ("minimum: 0.5", "minimum: none", 6, "must be a number"),
        ("= %(item)s AND", "= %(thing)s AND", 7, "“%(thing)s” is no parameter"),
        ("'%%r'", "'%r'", 7, "a percent sign is written twice"),
        ("sql: UPDATE", "sql: COMMIT; UPDATE", 7, "does not end it"),
        ("'%%r'", "%(rows)s", 7, "“%(rows)s” is no parameter"),
        ("rows: 1", "rows: many", 8, "must be a number"),
    ],
)
def test_a_mistake_is_refused_with_its_file_and_line(
    old: str, new: str, line: int, problem: str, file: Path
) -> None:
    assert old in SOUND
    file.write_text(SOUND.replace(old, new, 1))
    with pytest.raises(StatementError) as caught:
        statements.load()
    assert str(caught.value).startswith(f"shop.yaml, line {line}: ")
    assert problem in str(caught.value)
    assert caught.value.data == {"file": "shop.yaml", "line": line}


def test_a_name_stands_there_once(file: Path) -> None:
    file.write_text(SOUND + SOUND.partition("\n")[2])
    with pytest.raises(StatementError, match=r"“prices\.lower” stands here twice"):
        statements.load()


def test_a_file_that_is_not_there_is_named(file: Path) -> None:
    with pytest.raises(StatementError, match=r"shop\.yaml"):
        statements.load()


def test_a_change_of_the_file_counts_at_once(file: Path) -> None:
    file.write_text(SOUND)
    statements.load()
    file.write_text(SOUND.replace("prices.lower", "prices.lower_again"))
    assert list(statements.load()) == ["prices.lower_again"]


def test_without_a_file_there_are_no_statements(settings: Settings) -> None:
    settings.SQL_STATEMENTS = ""
    assert statements.load() == {}


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    with opened(tmp_path) as shop:
        yield shop


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("UPDATE prices SET price = 1; COMMIT", "multiple commands"),
        ("SELECT nobody_wrote_this()", "does not exist"),
        ("SELECT generate_series(1, 1001)", "change 1001 rows"),
        ("LISTEN something", "cannot PREPARE"),
    ],
)
def test_what_cannot_be_taken_back_is_refused_by_the_server(
    statement: str, words: str, file: Path, shop: Shop, new_context: NewContext
) -> None:
    file.write_text(
        f"statements:\n- {{name: x, title: {{en: X}}, sql: '{statement}', undo: SELECT 1}}\n"
    )
    item, ctx = tool("sql.execute"), new_context()
    with pytest.raises(NoEffect, match=words):
        item.impl.commit(ctx, item.parse({"statement": "x"}), None)
    assert shop.prices() == PRICES
