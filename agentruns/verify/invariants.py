"""The invariants of the stop protocol (§12), checked over the database and the world's record.

Each check takes one thing after the other and says what is wrong with it, if anything is. Memory
does not grow with the ledger: it is read in batches of runs, the world's record in parts.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from django.core.exceptions import ObjectDoesNotExist

from agentruns.verify.answers import history_has_every_result, nothing_incomplete_is_served
from agentruns.verify.chain import ledger_is_whole
from agentruns.verify.consent import consent_is_exact
from agentruns.verify.facts import Breach, Facts, Finding, Scope
from agentruns.verify.heads import heads_are_kept
from agentruns.verify.reading import batches
from agentruns.verify.states import groups_add_up, transitions_are_legal
from agentruns.verify.stops import each_stop_settles, nothing_starts_after_stop, one_stop_per_epoch
from agentruns.verify.undo import undo_is_right
from agentruns.verify.world import (
    every_effect_has_its_row,
    every_landed_row_has_its_effect,
    what_is_undone_is_gone,
)

KEPT = 1000  # breaches of one invariant that are told one by one; the rest are counted


@dataclass(frozen=True)
class Invariant:
    """A rule with its checks: over each run, over the whole, or both."""

    code: str
    title: str
    of_run: Callable[[Facts], Iterator[Finding]] | None = None
    of_all: Callable[[Scope], Iterator[Finding]] | None = None


@dataclass
class Result:
    """How many things were looked at for an invariant, how many were wrong, and the first ones."""

    invariant: Invariant
    checked: int = 0
    broken: int = 0
    breaches: list[Breach] = field(default_factory=list)

    def take(self, findings: Iterable[Finding]) -> None:
        for finding in findings:
            self.checked += 1
            if finding is not None:
                self.broken += 1
                if len(self.breaches) < KEPT:
                    self.breaches.append(finding)


INVARIANTS = [
    Invariant("I1", "nothing starts after a stop", nothing_starts_after_stop),
    Invariant("I2", "every effect in the world has its row", None, every_effect_has_its_row),
    Invariant("I3", "every landed row has its effect", None, every_landed_row_has_its_effect),
    Invariant("I4", "the groups add up", groups_add_up),
    Invariant("I5", "one stop per epoch, with one answer", one_stop_per_epoch),
    Invariant("I6", "the ledger is whole, and its chain verifies", ledger_is_whole, heads_are_kept),
    Invariant("I7", "every transition is legal, every status proven", transitions_are_legal),
    Invariant("I8", "nothing incomplete is given out as complete", nothing_incomplete_is_served),
    Invariant("I9", "each undo once, in reverse order", undo_is_right, what_is_undone_is_gone),
    Invariant("I10", "every stop comes to rest in time", each_stop_settles),
    Invariant("I11", "every call in a history has its result", history_has_every_result),
    Invariant("I12", "an approval lets through what it was for", consent_is_exact),
]


def verify(scope: Scope, progress: Callable[[int], None] | None = None) -> list[Result]:
    """Check every invariant over `scope`; the results in the order of INVARIANTS.

    `progress` is told now and then how many runs have been looked at.
    """
    results = [Result(invariant) for invariant in INVARIANTS]
    for result in results:
        if result.invariant.of_all is not None:
            result.take(result.invariant.of_all(scope))
    count = 0
    for batch in batches(scope):
        for facts in batch:
            for result in results:
                if result.invariant.of_run is not None:
                    result.take(_readable(result.invariant.of_run, facts))
        count += len(batch)
        if progress is not None:
            progress(count)
    return results


def _readable(check: Callable[[Facts], Iterator[Finding]], facts: Facts) -> Iterator[Finding]:
    """What a check says; a ledger that is too wrong to be read is a breach, and no crash."""
    try:
        yield from check(facts)
    except (AttributeError, LookupError, ObjectDoesNotExist, TypeError, ValueError) as error:
        yield facts.breach(f"cannot be read: {error!r}")
