"""The verdict: one sentence that counts, and words that never run ahead of the facts."""

from datetime import timedelta

import pytest
from django.utils import timezone

from agentruns.models import Run, ToolCall
from agentruns.page.verdict import count_sentences, headline
from agentruns.page.words import clock, number, period, span
from agentruns.states import GROUPS, WAITING


def groups(**counts: int) -> dict[str, list[ToolCall]]:
    return {name: [ToolCall()] * counts.get(name, 0) for name in (*GROUPS, WAITING)}


def said(**counts: int) -> str:
    return " ".join(count_sentences(groups(**counts)))


@pytest.mark.parametrize(
    ("counts", "sentence"),
    [
        (
            {"done": 2, "in_doubt": 1, "never_started": 3},
            "Two things happened. One is in doubt. Three never started.",
        ),
        ({"done": 1}, "One thing happened."),
        ({"never_started": 1}, "Nothing happened. One never started."),
        ({"failed": 2}, "Nothing happened. Two failed, without effect."),
        ({"in_doubt": 2}, "Two are in doubt."),
        ({"in_flight": 1}, "One is in flight."),
        ({"done": 11, "never_started": 12}, "11 things happened. 12 never started."),
        ({}, ""),
    ],
)
def test_each_group_that_has_any_is_counted(counts: dict[str, int], sentence: str) -> None:
    assert said(**counts) == sentence


def test_nothing_is_not_claimed_to_have_happened_or_not_while_in_doubt() -> None:
    assert "Nothing" not in said(in_doubt=1, failed=1)
    assert "Nothing" not in said(in_flight=1)


@pytest.mark.parametrize("status", ["cancel_requested", "draining"])
@pytest.mark.parametrize("holder", ["", "somebody"])
@pytest.mark.parametrize("flying", [0, 1, 2])
def test_a_run_that_still_stops_is_never_called_stopped(
    status: str, holder: str, flying: int
) -> None:
    run = Run(status=status, lease_holder=holder)
    words = headline(run, groups(done=1, in_flight=flying))
    assert words.startswith("Stopping")
    assert "Stopped" not in words


def test_a_run_that_finished_or_failed_says_so_first() -> None:
    assert headline(Run(status="completed"), groups(done=1)) == "It finished. One thing happened."
    failed = headline(Run(status="failed", failure="provider_silent"), groups())
    assert failed == "It failed. The model’s provider fell silent. Nothing happened."


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.0062, "6 ms"),
        (0.038, "38 ms"),
        (0.9, "0.9 s"),
        (4.14, "4.1 s"),
        (9.96, "10 s"),
        (59.4, "59 s"),
        (185, "3 min 5 s"),
        (7500, "2 h 5 min"),
        (-1, "0 ms"),
    ],
)
def test_lengths_of_time_are_told_in_the_unit_that_suits_them(seconds: float, words: str) -> None:
    assert span(timedelta(seconds=seconds)) == words


def test_numbers_are_words_up_to_ten() -> None:
    assert [number(n) for n in (0, 1, 10, 11)] == ["0", "one", "ten", "11"]


def test_a_period_is_told_to_the_second_with_its_day_unless_that_is_today() -> None:
    start, end = timezone.now(), timezone.now() + timedelta(seconds=3)
    assert period(start, end) == f"{clock(start)} – {clock(end)}"
    last_year = start - timedelta(days=366)
    assert period(last_year, end) == f"{last_year.day} {last_year:%b %Y}, {period(start, end)}"
