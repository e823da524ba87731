"""manage.py verify_ledger: what it prints, what it exits with, what it cannot use."""

import json
from datetime import timedelta
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from agentruns.models import Run, StopRequest
from agentruns.verify import INVARIANTS
from tests.agentruns.verify.breaking import breaches
from tests.forging import rewrite

pytestmark = pytest.mark.breaks_ledger
CODES = [f"I{number}" for number in range(1, 13)]


def test_only_what_began_since_a_moment_is_looked_at(run: Run) -> None:
    rewrite(StopRequest.objects.all(), answer={})
    later = timezone.now() + timedelta(seconds=1)

    assert breaches(since=later) == {}
    assert "I5" in breaches(since=later - timedelta(hours=1))


def test_it_exits_1_and_names_the_breach(run: Run, tmp_path: Path) -> None:
    rewrite(StopRequest.objects.all(), answer={})
    text, data = StringIO(), StringIO()

    with pytest.raises(CommandError, match="2 found"):
        call_command("verify_ledger", "--world", str(tmp_path), stdout=text)
    with pytest.raises(CommandError):
        call_command("verify_ledger", "--json", "--world", str(tmp_path), stdout=data)

    assert f"{run.pk}: the stop of epoch 2 has no answer of its own" in text.getvalue()
    report = json.loads(data.getvalue())
    assert [(each["code"], each["broken"]) for each in report if each["breaches"]] == [
        ("I5", 1),
        ("I6", 1),
    ]


def test_it_prints_each_invariant_with_its_count(run: Run, tmp_path: Path) -> None:
    out = StringIO()
    call_command("verify_ledger", "--since", "2020-01-01", "--world", str(tmp_path), stdout=out)

    lines = out.getvalue().splitlines()
    assert [line.split()[1] for line in lines[1:]] == CODES
    rows = 1 + 3 + 1 + 1  # the run, its calls, its text, its stop
    assert f"{run.ledger_seq + 1 + rows} checked" in lines[6]


def test_it_counts_what_it_does_not_name(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that a ledger that is wrong throughout does not fill the memory."""
    monkeypatch.setattr("agentruns.verify.invariants.KEPT", 2)
    for number in range(5):
        StopRequest.objects.create(
            run=run, epoch=90 + number, requested_at=timezone.now(), no_new_effect_at=timezone.now()
        )
    out = StringIO()

    with pytest.raises(CommandError):
        call_command("verify_ledger", "--world", str(tmp_path), stdout=out)

    (of_stops,) = [part for part in out.getvalue().split("✕ ") if part.startswith("I5")]
    assert of_stops.splitlines()[3].strip() == "and 3 more"


class Terminal(StringIO):
    """Somebody looks on."""

    def isatty(self) -> bool:
        return True


def test_it_says_how_far_it_is_to_whoever_looks_on(run: Run, tmp_path: Path) -> None:
    for err, said in ((Terminal(), "\r1 of 1 runs\n"), (StringIO(), "")):
        call_command("verify_ledger", "--world", str(tmp_path), stdout=StringIO(), stderr=err)

        assert err.getvalue() == said


def test_every_invariant_has_its_code() -> None:
    assert [invariant.code for invariant in INVARIANTS] == CODES


@pytest.mark.django_db
@pytest.mark.parametrize("wrong", [("--since", "yesterday"), ("--world", "/nowhere/at/all")])
def test_it_says_what_it_cannot_use(wrong: tuple[str, str]) -> None:
    with pytest.raises(CommandError, match=wrong[0]):
        call_command("verify_ledger", *wrong)
