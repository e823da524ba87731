"""Whatever a model writes is shown as text, and harms nobody."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentruns.page.prose import CLOSE, OPEN, Chip, render


def chip(offset: int, label: str = "Send mail") -> Chip:
    return Chip(offset, label, "✓", "done", "call-1", "Mail to Bo: done")


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "[click](javascript:alert(1))",
        "[click](data:text/html,<script>alert(1)</script>)",
        "![pixel](https://evil.example/track.png)",
        '<a href="x" onclick="alert(1)">x</a>',
        "<style>*{display:none}</style>",
        "```\n</code></pre><script>alert(1)</script>\n```",
    ],
)
def test_markup_of_the_model_does_nothing(text: str) -> None:
    html = render(text)
    for forbidden in ("<script", "<img", "<style", 'href="javascript', 'href="data', "<a onclick"):
        assert forbidden not in html


def test_signs_that_cannot_be_seen_are_spelt_out() -> None:
    """A4: in the text, and in what stands where the model wrote a call."""
    html = render("gnp.\u202eexe", [chip(4, "send\u200b")])
    assert "\\u202eexe" in html
    assert "send\\u200b" in html


def test_markdown_is_drawn() -> None:
    assert render("**Yes**, on `main`") == "<p><strong>Yes</strong>, on <code>main</code></p>\n"


def test_headings_begin_below_those_of_the_page() -> None:
    assert render("# Plan") == "<h3>Plan</h3>\n"


def test_links_lead_outside_without_a_trace_of_us() -> None:
    html = render("[here](https://example.com)")
    assert 'rel="noopener noreferrer nofollow"' in html


def test_a_call_stands_where_the_model_wrote_it() -> None:
    html = render("I write to Bo. Then I rest.", [chip(14)])
    before, after = html.split("</a>")
    assert before.startswith("<p>I write to Bo.<a ")
    assert after.startswith(" Then I rest.")


def test_calls_at_the_same_place_keep_their_order() -> None:
    html = render("Now", [chip(3, "First"), chip(3, "Second")])
    assert html.index("First") < html.index("Second")


def test_a_call_inside_an_address_is_not_lost() -> None:
    html = render("[here](https://example.com/abc)", [chip(25)])
    assert html.count("Send mail") == 1


@given(
    st.text(alphabet=st.characters(codec="utf-8") | st.sampled_from([OPEN, CLOSE]), max_size=200),
    st.lists(st.integers(0, 220), max_size=4),
)
def test_every_call_is_shown_once_whatever_the_text(text: str, offsets: list[int]) -> None:
    html = render(text, [chip(offset) for offset in sorted(offsets)])
    assert html.count("Send mail") == len(offsets)
    assert "<script" not in html
    assert OPEN not in html
