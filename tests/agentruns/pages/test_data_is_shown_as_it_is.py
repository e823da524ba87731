"""Arguments on the page: two that differ never look the same, and none can pose as another (A4)."""

import itertools
from typing import Any

import pytest
from django.conf import settings
from django.utils import translation
from hypothesis import given
from hypothesis import strategies as st

from agentruns.page.readable import LABELS, MOST_CHARACTERS, MOST_ITEMS, Field, drawn, fields_of
from tests.agentruns.pages.cards import Element, parsed, read
from tests.agentruns.pages.reading import words
from tests.counting import growth
from tools.digest import canonical_text

LOOK_ALIKE = [
    *(None, "", [], {}, True, False, 0, 5, 5.5, -1, 1e22, 10**30),
    *("yes", "no", "true", "null", "nothing", "5", "5.5", "-1", "1e+22", "–", "empty text"),
    *("empty list", "no entries", "text", "Nothing", " yes", "NaN", "0", "٥"),
    *(
        ["a, b"],
        ["a", "b"],
        ["a\nb"],
        ["a\n2. b"],
        [["a"], "b"],
        [["a", "b"]],
        "a, b",
        "1. a\n2. b",
    ),
    *([""], [None], [[]], [{}], [True], ["yes"], [5], ["5"]),
    *({"a": "b"}, "a: b", {"a": "b\nc: d"}, {"a": "b", "c": "d"}, [{"a": "b"}], {"a": ["b"]}),
    *({"": ""}, {" ": ""}, {"a ": ""}, {"a": ""}, {"A": ""}, {"a_b": ""}, {"a b": ""}, {"A b": ""}),
    *("a b", "a  b", "a b ", " a b", "a\tb", "a\u00a0b", "a\u3000b", "a\u2003b", "a···b", "a·b"),
    *(
        "a\nb",
        "a\n\nb",
        "a\n\n\nb",
        "a\n\n\n\nb",
        "a\n \nb",
        "a\r\nb",
        "a\rb",
        "a\u2028b",
        "a\x85b",
    ),
    *("\n", "\n\n", "\na", "a\n", "a\n\n", " \n", "\n ", "a\n2 empty lines\nb", "2 empty lines"),
    *("ab", "a\u200bb", "a\u200b\u200bb", "aU+200Bb", r"a\u200bb", "a\u202eb", "a\u00adb"),
    *("a\ufe0fb", "a\u3164b", "a\u2800b", "a\U000e0041b", "a\u034fb", "a\ue000b", "a\U0001f9ffb"),
    *("é", "e\u0301", "Å", "\u212b", "가", "\u1100\u1161", "a\u0300\u0301\u0302b", "a\u0300b"),
    *("https://paypal.com", "https://pаypal.com", "https://xn--pypal-4ve.com"),
    *("a@team.example", "a@teаm.example", "@somebody", "@някой"),
    *("<b>a</b>", "&lt;b&gt;", "&amp;", '<i class="aside">nothing</i>', "</div></dd><dt>To</dt>"),
]
SIGNS = st.characters(exclude_categories=["Cs"], exclude_characters="\x00")
NASTY = st.sampled_from(
    [*" \n\t\r·x:5@/.–", "\n\n\n", "  ", "://", "\u200b", "\u202e", "\ufe0f", "\u0301", "e", "а"]
    + [each for each in LOOK_ALIKE if isinstance(each, str)]
)
TEXTS = st.lists(NASTY | SIGNS, max_size=12).map("".join)
NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS | st.sampled_from(LOOK_ALIKE),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
NAMES = st.from_regex(r"[a-z][a-z0-9]{0,6}(_[a-z0-9]{1,4}){0,2}", fullmatch=True) | TEXTS


def card(args: dict[str, Any]) -> str:
    return drawn(fields_of(args))


@given(st.dictionaries(NAMES, VALUES, max_size=5))
def test_what_is_shown_can_only_be_this(args: dict[str, Any]) -> None:
    """So two cards that look the same are of the same arguments."""
    assert canonical_text(read(card(args))) == canonical_text(args)


def test_no_two_of_these_look_the_same() -> None:
    cards = {canonical_text(value): card({"value": value}) for value in LOOK_ALIKE}
    assert len(set(cards.values())) == len(cards)
    for value in LOOK_ALIKE:
        shown = read(card({"value": value}))["value"]
        assert canonical_text(shown) == canonical_text(value)


@given(TEXTS, st.sampled_from(["zh-hans", "en"]))
def test_no_text_makes_anything_but_its_own_value(text: str, language: str) -> None:
    """Whatever it says, there is one field for it, and in that only text, and boxes of ours."""
    with translation.override(language):
        root = parsed(card({"note": text, "deep": {"note": [text]}, "amount": 5000}))
    (fields,) = root.elements
    note, deep, amount = fields.elements
    assert amount.text.endswith("5000")
    assert len(root.all("dt")) == 4
    assert len(root.all("li")) == 1
    for value in (note.elements[1], deep.all("li")[0]):
        inside = {(each.tag, each.kind) for each in _below(value)}
        assert inside <= {
            *(("div", "value"), ("div", "value is-lines")),
            *(("i", "aside"), ("i", "aside is-blank")),
        }


def _below(element: Element) -> list[Element]:
    return [inner for each in element.elements for inner in (each, *_below(each))]


def test_six_thousand_empty_lines_are_named_and_hide_nothing() -> None:
    note = "ok\namount: 5\ncurrency: EUR" + "\n" * 6000
    said = words(card({"body": {"note": note, "amount": 5000}}))
    assert said == "Body note ok amount: 5 currency: EUR 6,000 empty lines amount 5000"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("https://pаypal.com/pay?a=1", "https://pаypal.com xn--pypal-4ve.com /pay?a=1"),
        ("Ask a@例え.jp.", "Ask a@例え.jp. xn--r8jz45g.jp."),
        ("@全体成员 hello", "@全体成员 hello"),
        ("http://a_b.é.com", "http://a_b.é.com no valid address"),
        ("\u202egnp.exe", "U+202E gnp.exe"),
        ("a" + "\u200b" * 400 + "b", "a U+200B × 400 b"),
        ("a" + " " * 1200 + "b", "a 1,200 blanks b"),
        ("5", "5 text"),
        ("yes", "yes text"),
        (True, "yes"),
        (None, "nothing"),
        ("", "empty text"),
    ],
)
def test_what_cannot_be_seen_or_told_apart_is_named(value: Any, said: str) -> None:
    assert words(card({"value": value})) == f"Value {said}"


def test_an_ordinary_mail_looks_like_one() -> None:
    body = "Hi Bo,\n\nTuesday at 10:00 suits us – see you there.\n\nBest,\nAna"
    args = {"to": ["bo@team.example"], "subject": "Q3 review on Tuesday", "body": body}
    html = card(args)
    assert "aside" not in html
    assert (
        words(html)
        == f"To bo@team.example Subject Q3 review on Tuesday Body {' '.join(body.split())}"
    )


def test_the_name_of_a_file_keeps_its_case() -> None:
    assert words(card({"files": {"numbers/q3.csv": "month"}})) == "Files numbers/q3.csv month"


def test_fields_come_in_the_order_of_the_tool() -> None:
    fields = fields_of({"body": "Hello", "x": 1, "to": "bo"}, order=["to", "body"])
    assert [field.name for field in fields] == ["to", "body", "x"]


def test_the_labels_of_a_mail_are_in_the_language_of_the_reader() -> None:
    with translation.override("zh-hans"):
        fields = fields_of({"body": "Hello", "to": "bo@team.example"}, order=["to", "body"])
    assert [field.label for field in fields] == ["收件人", "正文"]


@pytest.mark.parametrize("language", [code for code, _name in settings.LANGUAGES])
def test_no_two_labels_are_the_same(language: str) -> None:
    with translation.override(language):
        names = [*LABELS, "message_id", "attendee", "bodies"]
        labels = [field.label for field in fields_of(dict.fromkeys(names))]
        assert len(set(labels)) == len(names)
        assert [field.label for field in fields_of({"Body": 1, "message id": 2, "_to": 3})] == [
            "",
            "",
            "",
        ]


def test_a_label_that_nobody_knows_is_shown_by_its_own_name() -> None:
    [field] = fields_of({"message_id": "1"})
    assert field.label == "Message id"


def test_a_long_receipt_ends_in_how_much_more_there_is() -> None:
    many = {str(n): n for n in range(MOST_ITEMS + 3)}
    long = {"said": "x" * (MOST_CHARACTERS + 9), "list": [1] * (MOST_ITEMS + 7), "many": many}
    html = drawn(fields_of(long), is_whole=False)
    said = words(html)
    assert "… 9 more characters" in said
    assert "… 7 more" in said
    assert "… 3 more" in said
    assert len(html) < 60_000
    assert canonical_text(read(card(long))) == canonical_text(long), "what is approved is whole"


PIECES = [
    *(" ", "  ", "\n", "\n\n", "\n \n", "a  ", "a\n\n\n", "\u200b", "\u200b\u200c", "a\u200b"),
    *("@", "@é", "://é", "://é.a", "é.@", "a@b.é ", "e\u0301", "\u0301", "<", "文", "1"),
]


@pytest.mark.parametrize("piece", PIECES)
def test_a_text_of_twice_the_length_takes_twice_the_steps(piece: str) -> None:
    assert growth(lambda size: drawn([Field("a", piece * size)]), 2_000) < 2.3


def test_so_do_lists_and_fields() -> None:
    assert growth(lambda size: card({"a": [5] * size}), 500) < 2.3
    assert growth(lambda size: card({"a": {str(n): "5" for n in range(size)}}), 500) < 2.3


def test_two_cards_differ_wherever_their_arguments_do() -> None:
    """The same as the first, on pairs that differ in one place deep inside."""
    inside = [{"a": [{"b": value}, value]} for value in LOOK_ALIKE]
    for one, other in itertools.combinations(inside, 2):
        if canonical_text(one) != canonical_text(other):
            assert card(one) != card(other)
