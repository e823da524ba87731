"""The grid of results as one page of HTML that needs nothing beside it."""

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from html import escape

from tests.matrix.axes import (
    BOUNDARIES,
    DISTURBANCE_WORDS,
    MODE_WORDS,
    TIERS,
    Boundary,
    Disturbance,
    Mode,
)
from tests.matrix.cells import RULES, Cell, cells
from tests.matrix.grid import FAILED, LEFT_OUT, NOT_PLAYED, PASSED, Grid

CLASSES = {PASSED: "ok", FAILED: "bad", LEFT_OUT: "out", NOT_PLAYED: "none"}
TIER_WORDS = {tier: tier.replace("_", "-") for tier in TIERS}
GROUPS = {
    "The model speaks": ("think:1", "token", "call:1:proposed", "call:1:buffered"),
    "A call goes out": ("call:1", "think:2"),
    "A person holds it": ("pause",),
    "A person stops it": ("stop", "drain"),
    "A person takes it up again": ("resume",),
    "A person undoes it": ("undo",),
    "The sweeper finds what was left lying": ("sweep", "swept"),
}

STYLE = """
:root{color-scheme:light dark;--page:#fbfbf9;--ink:#1d2228;--soft:#5d6770;--line:#dcdfdd;
--card:#fff;--ok:#2f8f62;--bad:#c8323c;--none:#c9ced2;--out:#eceeec;--mark:#eef4f1}
@media (prefers-color-scheme:dark){:root{--page:#14171a;--ink:#e7eaec;--soft:#9aa4ac;
--line:#2d3338;--card:#1b1f23;--ok:#47b37f;--bad:#ff6b74;--none:#4a535b;--out:#24292e;
--mark:#1d2a25}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif}
main{max-width:1180px;margin:0 auto;padding:40px 20px 80px}
h1{font-size:28px;line-height:1.2;margin:0 0 6px;letter-spacing:-.01em}
h2{font-size:18px;margin:44px 0 10px}
p{margin:0 0 12px;max-width:70ch}.soft{color:var(--soft)}
.sum{display:flex;flex-wrap:wrap;gap:12px;margin:24px 0}
.sum div{background:var(--card);border:1px solid var(--line);border-radius:10px;
padding:12px 18px;min-width:120px}
.sum b{display:block;font-size:24px;font-variant-numeric:tabular-nums;line-height:1.2}
.sum .ok b{color:var(--ok)}.sum .bad b{color:var(--bad)}
.scroll{overflow-x:auto;background:var(--card);border:1px solid var(--line);border-radius:10px}
table{border-collapse:separate;border-spacing:0}.grid{width:100%}
.grid th,.grid td{padding:6px 8px;border-bottom:1px solid var(--line);text-align:left;
vertical-align:middle;white-space:nowrap}
.grid thead th{font-size:13px;vertical-align:bottom;background:var(--card)}
.grid tbody th{position:sticky;left:0;background:var(--card);font-weight:400}
.grid .head th{background:var(--mark);font-weight:600;font-size:13px}
.grid tr:last-child>*{border-bottom:0}
code{font:13px/1.4 ui-monospace,SFMono-Regular,Menlo,monospace}
.mini{display:grid;grid-template-columns:repeat(4,12px);gap:3px}
.mini i{width:12px;height:12px;border-radius:3px;background:var(--none)}
.mini .ok{background:var(--ok)}.mini .bad{background:var(--bad);border-radius:50%;
box-shadow:0 0 0 2px var(--card),0 0 0 3px var(--bad)}
.mini .out{background:var(--out)}.mini .none{background:none;border:1px dashed var(--none)}
.legend{display:flex;flex-wrap:wrap;gap:20px 64px;align-items:flex-end;margin:18px 0;
font-size:13px}
.legend .mini{display:inline-grid;grid-template-columns:12px}
.keys span{display:flex;align-items:center;gap:8px;margin:3px 0}
.axes td,.axes th{font-weight:400;padding:2px 0;text-align:center;line-height:1}
.axes thead th{padding:0 6px 6px;color:var(--soft)}
.axes tbody th{text-align:left;padding-right:14px;color:var(--soft)}
article{background:var(--card);border:1px solid var(--line);border-left:4px solid var(--bad);
border-radius:8px;padding:12px 16px;margin:10px 0}
article h3{margin:0;font-size:15px}article ul{margin:6px 0;padding-left:20px}
details summary{cursor:pointer;color:var(--soft)}
pre{overflow-x:auto;font:12px/1.45 ui-monospace,Menlo,monospace;margin:8px 0 0}
.rules td{padding:4px 16px 4px 0;vertical-align:top}
.rules td:first-child{text-align:right;font-variant-numeric:tabular-nums;color:var(--soft)}
"""


def page_of(grid: Grid) -> str:
    """The whole page."""
    return "".join(_page(grid))


def _page(grid: Grid) -> Iterator[str]:
    counts, when = grid.counts, datetime.now(UTC)
    title = "Stop matrix"
    yield (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<style>{STYLE}</style></head><body><main><h1>{title}</h1>"
        f'<p class="soft">agentruns · played {when:%Y-%m-%d %H:%M} UTC in '
        f"{grid.seconds / 60:.1f} minutes, on real workers against the demo world</p>"
        "<p>Every square is one run, led to a boundary, stopped there or not, while one thing goes "
        "wrong. Then the ledger, the world’s own record and the run’s end are held against the "
        "invariants I1 to I12.</p>"
    )
    yield from _summary(counts)
    yield from _legend()
    yield from _table(grid)
    yield from _failures(grid)
    yield from _rules()
    yield "</main></body></html>\n"


def _summary(counts: "Counter[str]") -> Iterator[str]:
    yield '<div class="sum">'
    for state, css in CLASSES.items():
        if counts[state] or state in (PASSED, FAILED):
            tone = css if counts[state] else CLASSES[LEFT_OUT]  # no failure is no alarm
            yield f'<div class="{tone}"><b>{counts[state]:,}</b>{state}</div>'
    yield "</div>"


def _legend() -> Iterator[str]:
    yield '<div class="legend"><table class="axes"><thead><tr><td></td>'
    yield "".join(f"<th>{escape(TIER_WORDS[tier])}</th>" for tier in TIERS)
    yield "</tr></thead><tbody>"
    for mode in Mode:
        squares = '<td><span class="mini"><i class="ok"></i></span></td>' * len(TIERS)
        yield f"<tr><th>{escape(MODE_WORDS[mode])}</th>{squares}</tr>"
    yield '</tbody></table><div class="keys">'
    words = {
        PASSED: "passed",
        FAILED: "failed: see below",
        LEFT_OUT: "makes no sense: see the rules below",
        NOT_PLAYED: "not played this time",
    }
    for state, css in CLASSES.items():
        yield f'<span><span class="mini"><i class="{css}"></i></span>{words[state]}</span>'
    yield "</div></div>"


def _table(grid: Grid) -> Iterator[str]:
    yield '<div class="scroll"><table class="grid"><thead><tr><th>Boundary</th>'
    for each in Disturbance:
        head, meaning = DISTURBANCE_WORDS[each]
        yield f'<th title="{escape(meaning)}">{escape(head)}</th>'
    yield "</tr></thead><tbody>"
    group = ""
    for boundary in BOUNDARIES:
        if (now := _group_of(boundary)) != group:
            group = now
            yield f'<tr class="head"><th colspan="{len(Disturbance) + 1}">{escape(group)}</th></tr>'
        yield f"<tr><th><code>{boundary.point}</code></th>"
        for each in Disturbance:
            yield f'<td><span class="mini">{"".join(_squares(grid, boundary, each))}</span></td>'
        yield "</tr>"
    yield "</tbody></table></div>"


def _group_of(boundary: Boundary) -> str:
    return next(title for title, starts in GROUPS.items() if boundary.point.startswith(starts))


def _squares(grid: Grid, boundary: Boundary, disturbance: Disturbance) -> Iterator[str]:
    for mode in Mode:
        for tier in TIERS:
            cell = Cell(boundary, disturbance, tier, mode)
            state = grid.state(cell)
            yield f'<i class="{CLASSES[state]}" title="{escape(_title(grid, cell, state))}"></i>'


def _title(grid: Grid, cell: Cell, state: str) -> str:
    what = f"{TIER_WORDS[cell.tier]}, {MODE_WORDS[cell.mode]}: {state}"
    if state == LEFT_OUT:
        return f"{what}: {cell.left_out}"
    result = grid.results.get(cell)
    return f"{what} after {result.seconds} s, {result.run_id}" if result else what


def _failures(grid: Grid) -> Iterator[str]:
    if not grid.failed:
        return
    yield "<h2>What failed</h2>"
    for result in sorted(grid.failed, key=lambda each: each.cell.id):
        wrong = "".join(f"<li>{escape(each)}</li>" for each in result.wrong)
        ledger = escape("\n".join(result.ledger))
        yield (
            f"<article><h3><code>{escape(result.cell.id)}</code></h3><ul>{wrong}</ul>"
            f'<p class="soft">{escape(result.run_id)}, {result.seconds} s</p>'
            f"<details><summary>Its ledger</summary><pre>{ledger}</pre></details></article>"
        )


def _rules() -> Iterator[str]:
    left_out = Counter(cell.left_out for cell in cells())
    yield "<h2>What is left out, and why</h2><table class='rules'>"
    for reason, _applies in RULES:
        yield f"<tr><td>{left_out[reason]:,}</td><td>{escape(reason)}</td></tr>"
    yield "</table>"
