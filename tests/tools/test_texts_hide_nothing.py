"""Texts of others, as people read them in one line: cut, and with nothing hidden in them."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, JsonValue, SecretStr

from tests.counting import growth
from tools import texts
from tools.contract import Context, Draft, Receipt, Tier
from tools.errors import BadArguments
from tools.registry import LARGEST_ARGUMENTS, MOST_SECRETS, MOST_VALUES, RegisteredTool


class Anything(BaseModel):
    value: JsonValue = None
    secrets: list[SecretStr] = []


class Said:
    title = "Say"

    def describe(self, args: Anything) -> str:
        return f"say {args.value}"

    def item_keys(self, args: Anything) -> list[str]:
        assert isinstance(args.value, list)
        return [str(item) for item in args.value]

    def commit(self, ctx: Context, args: Anything, draft: Draft | None) -> Receipt:
        raise NotImplementedError


tool = RegisteredTool("test.say", Tier.READ_ONLY, Anything, 10, "1", Said())


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("a\u202eb", r"a\u202eb"),
        ("a\u200bb", r"a\u200bb"),
        ("a\u00adb", r"a\u00adb"),
        ("a\u3164b\u2800", r"a\u3164b\u2800"),
        ("a\U000e0041", r"a\U000e0041"),
        ("a\ufe0f", r"a\ufe0f"),
        ("a\u200db", r"a\u200db"),
        ("\u26a0\ufe0f", "\u26a0\ufe0f"),
        ("\U0001f468\u200d\U0001f469", "\U0001f468\u200d\U0001f469"),
        ("a\n\tb", "a\n\tb"),
        ("Grüße, 你好, שלום", "Grüße, 你好, שלום"),
    ],
)
def test_what_cannot_be_seen_is_spelt_out(text: str, seen: str) -> None:
    assert texts.spelt_out(text) == seen


@given(st.text(), st.integers(min_value=2, max_value=300))
def test_a_line_is_one_line_cut_and_hides_nothing(text: str, most: int) -> None:
    line = texts.line(text, most)
    assert len(line) <= most
    assert not any(unicodedata.category(sign) in ("Cc", "Zl", "Zp") for sign in line)


def test_a_tool_says_no_more_than_its_column_holds() -> None:
    said = tool.describe(Anything(value="\u202e" + "x" * 100_000))
    assert said.startswith(r"say \u202exxx")
    assert len(said) == texts.LONGEST["summary"]


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        ('{"value": "' + "x" * LARGEST_ARGUMENTS + '"}', "characters"),
        ('{"value": [' + ",".join("1" * MOST_VALUES) + "]}", "values"),
        ('{"value": [[[' + ",".join(["[]"] * MOST_VALUES) + "]]]}", "values"),
        ('{"secrets": [' + ",".join(['"abcd"'] * (MOST_SECRETS + 1)) + "]}", "secrets"),
    ],
)
def test_a_model_asks_for_no_more_than_a_person_can_be_shown(raw: str, why: str) -> None:
    with pytest.raises(BadArguments, match=why):
        tool.take(raw)


def test_arguments_at_the_limit_are_taken() -> None:
    tool.take('{"value": "' + "x" * (LARGEST_ARGUMENTS - 40) + '"}')
    tool.take('{"value": [' + ",".join("1" * (MOST_VALUES - 4)) + "]}")


def test_why_arguments_do_not_fit_is_said_in_a_few_words() -> None:
    with pytest.raises(BadArguments) as refused:
        tool.take('{"secrets": [' + ",".join("1" * 4_000) + "]}")
    assert len(refused.value.reasons) == 21
    assert refused.value.reasons[-1] == "and 3980 more"


def test_items_that_are_there_twice_are_found_in_linear_time() -> None:
    def check(size: int) -> None:
        tool.item_keys(Anything(value=[*range(size)]))

    assert growth(check, 1_000) < 2.3
    with pytest.raises(BadArguments, match="7: is there twice"):
        tool.item_keys(Anything(value=[7, 8, 7]))
