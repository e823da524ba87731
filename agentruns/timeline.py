"""The timeline's geometry: what happened when, as numbers that an SVG template draws.

Pure: knows moments and words, nothing of runs. One time axis for all lanes, each mark (a stop, or
where it went on) as a line through all of them, and next to each bar the few words that it needs.
A long time in which nothing happened is cut short, and shown as a cut.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import accumulate

STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400]
LETTER, WIDE_LETTER = 6.8, 12.0  # px: a letter at 12 px, at most; a Chinese character
BAR = 12
SPACING = 96.0  # px from one time to the next
SHORTEST = 4.0  # px: nothing that happened is too short to be seen
LINE = 14  # px: one line of marks' words above the other
CUT_TO = 0.06  # of the rest: how long a cut looks
WORTH_A_CUT = timedelta(seconds=10)


@dataclass(frozen=True)
class Stretch:
    """A time during which something waited (`is_solid` false) or was under way."""

    start: datetime
    end: datetime
    tone: str = "plain"
    is_solid: bool = True


@dataclass(frozen=True)
class Lane:
    """One row: its name, its stretches in order, and what is said beside them."""

    name: str
    stretches: Sequence[Stretch]
    note: str = ""


@dataclass(frozen=True)
class Mark:
    """A moment that concerns every lane, with its words; `kind` is how it is drawn."""

    at: datetime
    words: str
    kind: str = "stop"


@dataclass(frozen=True)
class Layout:
    """Where things go. `is_stacked`: names and notes stand above and below the bars; else the
    room beside the plot is as wide as they need, up to `most_name` and `most_note`.
    """

    width: int
    is_stacked: bool = False
    most_name: int = 0
    most_note: int = 0


WIDE = Layout(width=1080, most_name=340, most_note=320)
NARROW = Layout(width=326, is_stacked=True)
MOST_LETTERS = round(WIDE.width / LETTER) + 1  # in one line of any picture


@dataclass(frozen=True)
class Frame:
    """The plot's place in the picture, its time, and what was cut out of that."""

    width: int
    left: int
    right: int
    is_stacked: bool
    start: datetime
    end: datetime
    cuts: tuple["Cut", ...] = ()

    def at(self, moment: datetime) -> float:
        """The x of a moment; one outside is drawn at the edge."""
        inside = self.shown(min(max(moment, self.start), self.end))
        share = inside / self.shown(self.end)
        return round(self.left + share * (self.right - self.left), 1)

    def shown(self, moment: datetime) -> timedelta:
        """How much time is drawn up to a moment."""
        return moment - self.start - sum((cut.gone(moment) for cut in self.cuts), timedelta())


@dataclass(frozen=True)
class Cut:
    """A time that is drawn as if it had been only `length` long."""

    start: datetime
    end: datetime
    length: timedelta

    def gone(self, moment: datetime) -> timedelta:
        """How much of it is left out up to a moment."""
        passed = min(max(moment, self.start), self.end) - self.start
        return passed * (1 - self.length / (self.end - self.start))


@dataclass(frozen=True)
class Bar:
    x: float
    y: float
    width: float
    tone: str
    is_solid: bool

    @property
    def radius(self) -> float:
        return min(BAR / 2, self.width / 2)


@dataclass(frozen=True)
class Text:
    x: float
    y: float
    words: str
    anchor: str = "start"


@dataclass(frozen=True)
class Row:
    name: Text
    title: str
    bars: list[Bar]
    note: Text | None


@dataclass(frozen=True)
class Line:
    """A mark through all lanes, with its words above."""

    x: float
    kind: str
    label: Text


@dataclass(frozen=True)
class Band:
    """Where time was cut out."""

    x: float
    width: float


@dataclass(frozen=True)
class Timeline:
    """Everything that is drawn, in px of a box `width` × `height`."""

    width: int
    height: int
    left: int
    right: int
    top: int
    bottom: int
    rows: list[Row]
    ticks: list[Text]
    lines: list[Line]
    bands: list[Band]

    @property
    def span(self) -> int:
        """From top to bottom."""
        return self.bottom - self.top


def draw(
    lanes: Sequence[Lane],
    *,
    start: datetime,
    end: datetime,
    clock: Callable[[datetime], str],
    marks: Sequence[Mark] = (),
    idle: Sequence[tuple[datetime, datetime]] = (),
    layout: Layout = WIDE,
) -> Timeline:
    """Lay out `lanes` between `start` and `end`; times outside are drawn at the edge.

    `clock` writes a moment as people read it; `idle` are times, apart from each other, that may
    be cut short. Needs no particular order of anything.
    """
    frame = _frame(lanes, start, max(end, start + timedelta(seconds=1)), idle, layout)
    lines, levels = _lines(marks, frame)
    top = levels * LINE + 12 if levels else 0
    y, rows = top + 10.0, []
    for lane in lanes:
        row, height = _row(lane, y, frame)
        rows.append(row)
        y += height
    bottom = round(y)
    return Timeline(
        width=frame.width,
        height=bottom + 24,
        left=frame.left,
        right=frame.right,
        top=top,
        bottom=bottom,
        rows=rows,
        ticks=_ticks(frame, clock, bottom + 18),
        lines=lines,
        bands=[Band(x := frame.at(c.start), round(frame.at(c.end) - x, 1)) for c in frame.cuts],
    )


def _frame(
    lanes: Sequence[Lane],
    start: datetime,
    end: datetime,
    idle: Sequence[tuple[datetime, datetime]],
    layout: Layout,
) -> Frame:
    cuts = _cuts(start, end, idle)
    if layout.is_stacked:
        return Frame(layout.width, 2, layout.width - 4, True, start, end, cuts)
    names = max((_length(lane.name) for lane in lanes), default=0)
    notes = max((_length(lane.note) for lane in lanes), default=0)
    left = round(min(names, layout.most_name)) + 16
    right = layout.width - round(min(max(notes, 40), layout.most_note)) - 12
    return Frame(layout.width, left, right, False, start, end, cuts)


def _cuts(
    start: datetime, end: datetime, idle: Sequence[tuple[datetime, datetime]]
) -> tuple[Cut, ...]:
    """Those of the idle times that would take room from what happened."""
    inside = [(max(a, start), min(b, end)) for a, b in sorted(idle)]
    inside = [(a, b) for a, b in inside if a < b]
    rest = end - start - sum((b - a for a, b in inside), timedelta())
    length = max(rest, timedelta(seconds=1)) * CUT_TO
    return tuple(Cut(a, b, length) for a, b in inside if b - a > max(length, WORTH_A_CUT))


def _row(lane: Lane, y: float, frame: Frame) -> tuple[Row, float]:
    bar_y = y + 18 if frame.is_stacked else y
    bars = [_bar(stretch, bar_y, frame) for stretch in lane.stretches]
    bars = [bar for bar in bars if bar.is_solid or bar.width > 1]
    name = Text(0, y + 10, _fit(lane.name, frame.width if frame.is_stacked else frame.left - 14))
    if frame.is_stacked:
        note = Text(0, bar_y + BAR + 13, _fit(lane.note, frame.width)) if lane.note else None
        return Row(name, lane.name, bars, note), 66 if note else 48
    return Row(name, lane.name, bars, _beside(lane.note, bars, bar_y + 10, frame)), 30


def _bar(stretch: Stretch, y: float, frame: Frame) -> Bar:
    x, end = frame.at(stretch.start), frame.at(stretch.end)
    width = round(end - x, 1)
    if stretch.is_solid and width < SHORTEST:
        width = SHORTEST
        x = min(x, frame.right - SHORTEST)
    return Bar(x, y, width, stretch.tone, stretch.is_solid)


def _beside(note: str, bars: Sequence[Bar], y: float, frame: Frame) -> Text | None:
    """Right of the last bar, or left of the first where the picture would end before the words."""
    if not note:
        return None
    after = max((bar.x + bar.width for bar in bars), default=frame.left) + 10
    before = min((bar.x for bar in bars), default=frame.left) - 10
    length = _length(note)
    if after + length > frame.width and before - length > frame.left:
        return Text(before, y, note, "end")
    return Text(after, y, _fit(note, frame.width - after))


def _length(words: str) -> float:
    """How wide `words` are drawn, in px; rather too much than too little. What no picture has room
    for is not measured.
    """
    return sum(_widths(words[:MOST_LETTERS]))


def _widths(words: str) -> Iterator[float]:
    return (WIDE_LETTER if letter > "\u2e80" else LETTER for letter in words)


def _fit(words: str, room: float) -> str:
    if len(words) <= MOST_LETTERS and _length(words) <= room:
        return words
    ends = list(accumulate(_widths(words[:MOST_LETTERS])))
    return words[: bisect_right(ends, room - LETTER)].rstrip() + "…"


def _ticks(frame: Frame, clock: Callable[[datetime], str], y: float) -> list[Text]:
    """Round times, far enough from each other to be read."""
    seconds = frame.shown(frame.end).total_seconds()
    room = frame.right - frame.left
    step = next((s for s in STEPS if room * s / seconds >= SPACING), STEPS[-1])
    ticks: list[Text] = []
    last = frame.left - SPACING
    for begin, end in _seen(frame):
        moment = -(-begin.timestamp() // step) * step
        while moment <= end.timestamp() and len(ticks) < room / SPACING + 1:
            x = frame.at(at := datetime.fromtimestamp(moment, frame.start.tzinfo))
            if x - last >= SPACING - 1:
                ticks.append(_tick(x, y, clock(at), frame))
                last = x
            moment += step
    return ticks


def _seen(frame: Frame) -> list[tuple[datetime, datetime]]:
    """The times between the cuts."""
    edges = [frame.start, *(edge for cut in frame.cuts for edge in (cut.start, cut.end)), frame.end]
    return list(zip(edges[::2], edges[1::2], strict=True))


def _tick(x: float, y: float, words: str, frame: Frame) -> Text:
    half = _length(words) / 2
    if x + half > frame.width:
        return Text(x, y, words, "end")
    if x < half:
        return Text(x, y, words, "start")
    return Text(x, y, words, "middle")


def _lines(marks: Sequence[Mark], frame: Frame) -> tuple[list[Line], int]:
    """A line for each mark, its words where they meet no others'; and how many lines of words."""
    lines: list[Line] = []
    ends: list[float] = []  # how far to the right each level is taken
    for mark in sorted(marks, key=lambda each: each.at):
        x, length = frame.at(mark.at), _length(mark.words)
        is_turned = x + 8 + length > frame.width
        begin = x - 8 - length if is_turned else x + 8
        level = next((n for n, taken in enumerate(ends) if taken < begin), len(ends))
        ends[level : level + 1] = [begin + length + 8]
        anchor = "end" if is_turned else "start"
        label = Text(x - 8 if is_turned else x + 8, (level + 1) * LINE, mark.words, anchor)
        lines.append(Line(x, mark.kind, label))
    return lines, len(ends)
