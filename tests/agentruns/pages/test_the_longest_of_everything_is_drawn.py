"""A page with the longest of everything costs what any page costs (A1)."""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.test import Client

from agentruns.models import Run, ToolCall
from agentruns.protocol.gate import Claim, pass_gate
from agentruns.protocol.outcome import record_doubt, record_failed, record_landed
from agentruns.protocol.turn import Proposal, propose_call
from agentruns.timeline import NARROW, WIDE, Lane, draw
from tests.agentruns.pages.conftest import Browser
from tests.agentruns.pages.test_timeline_geometry import at, clock
from tests.agentruns.steps import Steps
from tests.counting import growth, steps_of
from tools import texts
from tools.contract import Receipt

pytestmark = pytest.mark.django_db(transaction=True)

LONGEST = 2_000_000  # characters of a name that a model made up


def run_of(steps: Steps, size: int) -> Run:
    """A stopped run, one call in each way to end, `size` characters in all that others wrote."""
    run = steps.start()
    lease = steps.think(run)
    for name in ("n" * size, "no tool " * (size // 8), "\u202e" * size):
        assert propose_call(lease, Proposal(name, f'{{"a": "{"x" * size}"', name, 0))
    steps.propose(lease, "test.book", 4 * [size * "y"])  # type: ignore[arg-type]  (does not fit)
    calls = [steps.propose(lease, "test.book", f"{n} {size * 'z'}"[:20_000]) for n in range(5)]
    steps.finish(lease)
    record_landed(let_out(steps, calls[0]), Receipt({"said": "r" * size}, "s" * size))
    record_failed(let_out(steps, calls[1]), "refused", "why " * size)
    record_doubt(let_out(steps, calls[2]), "what " * size)
    steps.stop(run, reason="because " * 60)
    return run


def let_out(steps: Steps, call: ToolCall) -> Claim:
    claim = steps.claim(call)
    assert pass_gate(claim)
    return claim


def reading(client: Client, path: str) -> Callable[[], None]:
    def read() -> None:
        assert client.get(path).status_code == 200

    return read


def test_the_page_of_a_run_takes_no_more_steps_for_longer_texts(
    steps: Steps, browser: Browser, owner: User
) -> None:
    client = browser(owner)
    read_short = reading(client, f"/runs/{run_of(steps, 8).pk}/")
    run = run_of(steps, LONGEST)
    read_long = reading(client, f"/runs/{run.pk}/")
    read_short()  # what is only read once is read
    assert steps_of(read_long) < 1.5 * steps_of(read_short)
    assert len(client.get(f"/runs/{run.pk}/").content) < 500_000


def test_each_text_is_cut_where_it_is_kept(steps: Steps) -> None:
    run = run_of(steps, LONGEST)
    for call in ToolCall.objects.filter(run=run):
        assert len(call.tool) <= texts.LONGEST_NAME
        for column in ("summary", "detail", "response"):
            assert len(getattr(call, column)) <= texts.LONGEST[column], column
        assert len(call.in_words) <= texts.LONGEST["summary"]
    unknown = ToolCall.objects.filter(run=run, reason="unknown_tool").first()
    assert unknown
    assert len(unknown.args["text"]) == texts.LONGEST_UNREAD


@pytest.mark.parametrize("column", ["summary", "detail", "response"])
def test_the_database_keeps_no_text_that_nobody_cut(steps: Steps, column: str) -> None:
    _run, (call,) = steps.running("test.book")

    def another(text: str) -> None:
        twin = {"number": 2, "position": 1, "state": "proposed", "request_id": "another"}
        kept = {each.attname: getattr(call, each.attname) for each in ToolCall._meta.fields}
        with transaction.atomic():
            ToolCall.objects.create(**(kept | twin | {"id": "call_another", column: text}))
            transaction.set_rollback(True)

    longest = "x" * texts.LONGEST[column]
    another(longest)
    with pytest.raises(IntegrityError, match=f"{column}_is_cut"):
        another(longest + "x")


@pytest.mark.parametrize("layout", [WIDE, NARROW])
@pytest.mark.parametrize("sign", ["n", "文", " ", "\u200b"])
def test_a_name_of_any_length_is_fitted_in_the_same_steps(layout: object, sign: str) -> None:
    def picture(size: int) -> None:
        lane = Lane(sign * size, [], sign * size)
        draw([lane], start=at(0), end=at(9), clock=clock, layout=layout)  # type: ignore[arg-type]

    assert growth(picture, 5_000) < 1.1
    assert steps_of(lambda: picture(LONGEST)) < 10_000
