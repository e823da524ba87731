"""The timeline picture: everything inside, in order, and crossed by the line of each stop."""

import itertools
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentruns.timeline import NARROW, SHORTEST, WIDE, Lane, Layout, Mark, Stretch, Timeline, draw

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
        marks=[] if stop is None else [Mark(at(stop), "Stop")],
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
    assert picture.lines[0].x == pytest.approx(bar.x + bar.width / 2, abs=0.1)
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
    assert [line.label.anchor for line in (*late.lines, *early.lines)] == ["end", "start"]


def test_the_words_of_marks_that_are_close_stand_above_each_other() -> None:
    marks = [Mark(at(10), "Stop 14:02:02"), Mark(at(10.5), "continued 14:02:02", "again")]
    picture = draw([], start=START, end=at(100), clock=clock, marks=marks)
    assert [line.kind for line in picture.lines] == ["stop", "again"]
    assert len({line.label.y for line in picture.lines}) == 2
    assert all(line.label.y < picture.top for line in picture.lines)


def test_a_long_time_without_anything_takes_little_room() -> None:
    lane = Lane("Mail", [Stretch(at(0), at(10), "done"), Stretch(at(7210), at(7220), "done")])
    idle = [(at(10), at(7210))]
    picture = draw([lane], start=START, end=at(7220), clock=clock, idle=idle)
    before, after = picture.rows[0].bars
    (band,) = picture.bands
    assert before.width == pytest.approx(after.width, abs=0.2)
    assert band.x == pytest.approx(before.x + before.width, abs=0.2)
    assert band.width < before.width / 4
    assert {tick.words[:5] for tick in picture.ticks} == {"14:01", "14:02", "16:02"}


def test_a_short_one_is_not_cut() -> None:
    picture = draw([], start=START, end=at(100), clock=clock, idle=[(at(50), at(52))])
    assert picture.bands == []


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
    st.lists(st.builds(Mark, moments, st.text(max_size=20)), max_size=4),
    st.lists(moments, max_size=4, unique=True),
    st.sampled_from([WIDE, NARROW]),
)
def test_nothing_is_ever_drawn_outside(
    some: list[Lane], until: float, marks: list[Mark], edges: list[datetime], layout: Layout
) -> None:
    edges.sort()
    picture = draw(
        some,
        start=START,
        end=at(until),
        clock=clock,
        marks=marks,
        idle=list(zip(edges[::2], edges[1::2], strict=False)),
        layout=layout,
    )
    for row in picture.rows:
        for bar in row.bars:
            assert picture.left <= bar.x
            assert bar.x + bar.width <= picture.right + 0.2
            assert 0 < bar.y < picture.bottom
    for line in picture.lines:
        assert picture.left <= line.x <= picture.right
        assert 0 < line.label.y < picture.top
    for band in picture.bands:
        assert picture.left <= band.x <= band.x + band.width <= picture.right + 0.2
    assert len(picture.ticks) <= 14
    assert picture.height > picture.bottom
