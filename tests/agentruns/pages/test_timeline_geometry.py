"""The timeline picture: everything inside, in order, and crossed by the one line of Stop."""

import itertools
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentruns.timeline import NARROW, SHORTEST, WIDE, Lane, Layout, Stretch, Timeline, draw

START = datetime(2031, 3, 4, 14, 1, 52, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def clock(moment: datetime) -> str:
    return f"{moment:%H:%M:%S}"


def drawn(
    *lanes: Lane, until: float = 20, stop: float | None = None, layout: Layout = WIDE
) -> Timeline:
    return draw(
        lanes,
        start=START,
        end=at(until),
        clock=clock,
        stop=None if stop is None else at(stop),
        stop_words="Stop",
        layout=layout,
    )


def test_half_of_the_time_is_half_of_the_plot() -> None:
    picture = drawn(Lane("Mail", [Stretch(at(0), at(10))]))
    (bar,) = picture.rows[0].bars
    assert bar.x == picture.left
    assert bar.width == pytest.approx((picture.right - picture.left) / 2, abs=0.1)


def test_a_bar_that_crosses_stop_is_crossed_by_its_line() -> None:
    picture = drawn(Lane("Mail", [Stretch(at(5), at(10), "done")]), stop=7.5)
    (bar,) = picture.rows[0].bars
    assert picture.stop_x == pytest.approx(bar.x + bar.width / 2, abs=0.1)
    assert picture.top < picture.rows[0].bars[0].y < picture.bottom


def test_what_took_no_time_is_still_seen() -> None:
    (bar,) = drawn(Lane("Mail", [Stretch(at(20), at(20), "done")])).rows[0].bars
    assert bar.width == SHORTEST


def test_no_wait_is_not_drawn_as_one() -> None:
    lane = Lane("Mail", [Stretch(at(3), at(3), is_solid=False), Stretch(at(3), at(4), "done")])
    assert [bar.is_solid for bar in drawn(lane).rows[0].bars] == [True]


def test_a_name_that_is_too_long_ends_in_an_ellipsis_and_is_kept_in_full() -> None:
    name = "Message to the whole team about everything that happened " * 3
    row = drawn(Lane(name, [])).rows[0]
    assert row.name.words.endswith("…")
    assert row.title == name


def test_the_words_of_stop_turn_round_at_the_right_edge() -> None:
    late, early = drawn(stop=20, layout=NARROW), drawn(stop=0, layout=NARROW)
    assert late.stop_label and late.stop_label.anchor == "end"  # noqa: PT018
    assert early.stop_label and early.stop_label.anchor == "start"  # noqa: PT018


def test_times_are_round_and_apart() -> None:
    ticks = drawn(until=20).ticks
    assert [tick.words for tick in ticks][:2] == ["14:01:52", "14:01:54"]
    assert all(b.x - a.x >= 90 for a, b in itertools.pairwise(ticks))


moments = st.floats(min_value=-1e3, max_value=1e6).map(at)
lanes = st.lists(
    st.builds(
        lambda name, a, b, solid, note: Lane(
            name, [Stretch(min(a, b), max(a, b), "done", solid)], note
        ),
        st.text(max_size=80),
        moments,
        moments,
        st.booleans(),
        st.text(max_size=60),
    ),
    max_size=6,
)


@given(
    lanes,
    st.floats(min_value=0, max_value=1e6),
    st.none() | moments,
    st.sampled_from([WIDE, NARROW]),
)
def test_nothing_is_ever_drawn_outside(
    some: list[Lane], until: float, stop: datetime | None, layout: Layout
) -> None:
    picture = draw(
        some, start=START, end=at(until), clock=clock, stop=stop, stop_words="Stop", layout=layout
    )
    for row in picture.rows:
        for bar in row.bars:
            assert picture.left <= bar.x
            assert bar.x + bar.width <= picture.right + 0.2
            assert 0 < bar.y < picture.bottom
    assert picture.stop_x is None or picture.left <= picture.stop_x <= picture.right
    assert len(picture.ticks) <= 14
    assert picture.height > picture.bottom
