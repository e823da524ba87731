"""The points of a run at which a drill can act, and how people write them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agentruns.drill.errors import DrillError

NEVER = "never"
BEFORE_START = "before-start"


@dataclass(frozen=True)
class Kind:
    """A kind of point. `of_person`: reached by whoever asks for it, not by a worker; `leads`: what
    leads a run there, if it does not come there by itself.
    """

    meaning: Any
    of_person: bool = False
    leads: str = ""


def _swept(kind: str, what: Any, leads: str) -> dict[str, Kind]:
    after = gettext_lazy("the same, done")
    return {f"sweep:{kind}": Kind(what, leads=leads), f"swept:{kind}": Kind(after, leads=leads)}


# As people write them, in the order in which a run comes to them.
PATTERNS: dict[str, Kind] = {
    NEVER: Kind(gettext_lazy("nowhere: the run goes on to its end")),
    BEFORE_START: Kind(gettext_lazy("before a worker has picked the run up")),
    "think:T:leased": Kind(gettext_lazy("turn T has its worker; the model has not been asked")),
    "token:N": Kind(gettext_lazy("the model has written N tokens of the run")),
    "call:N:proposed": Kind(gettext_lazy("call N is on record")),
    "call:N:buffered": Kind(gettext_lazy("call N waits for the end of the answer (not a read)")),
    "think:T:ended": Kind(gettext_lazy("the answer of turn T is over, its end not on record")),
    "think:T:finished": Kind(gettext_lazy("the end of turn T is on record")),
    "call:N:approved": Kind(
        gettext_lazy("a person has approved call N"), of_person=True, leads="an irreversible call"
    ),
    "call:N:rejected": Kind(
        gettext_lazy("a person has rejected call N"), of_person=True, leads="--answer rejected"
    ),
    "call:N:claimed": Kind(gettext_lazy("call N has its executor, nothing is prepared")),
    "call:N:prepared": Kind(
        gettext_lazy("the draft of call N is on record"), leads="a tool that drafts"
    ),
    "call:N:gate": Kind(gettext_lazy("call N is past the gate, and not yet sent")),
    "call:N:item:K": Kind(
        gettext_lazy("item K of call N is on record"), leads="--scenario announce"
    ),
    "call:N:sent": Kind(gettext_lazy("the world has answered call N, or not; no outcome yet")),
    "call:N:landed": Kind(gettext_lazy("the outcome of call N is on record")),
    "call:N:failed": Kind(
        gettext_lazy("that call N had no effect is on record"), leads="--fault TOOL=refuse"
    ),
    "call:N:postponed": Kind(
        gettext_lazy("that call N will be tried again is on record"), leads="--fault TOOL=busy"
    ),
    "call:N:doubted": Kind(
        gettext_lazy("that call N is in doubt is on record"), leads="--fault TOOL=drop"
    ),
    "call:N:lookup": Kind(
        gettext_lazy("call N is about to be looked up"), leads="--fault TOOL=drop"
    ),
    "call:N:looked_up": Kind(
        gettext_lazy("the world has said what became of call N"), leads="--fault TOOL=drop"
    ),
    "call:N:resolved": Kind(
        gettext_lazy("what a look-up of call N found is on record"), leads="--fault TOOL=drop"
    ),
    "pause:begin": Kind(
        gettext_lazy("somebody asked for a pause"), of_person=True, leads="--pause-at"
    ),
    "pause:committed": Kind(gettext_lazy("the run is held"), of_person=True, leads="--pause-at"),
    "pause:ended": Kind(gettext_lazy("the run may go on"), of_person=True, leads="--pause-at"),
    "stop:begin": Kind(gettext_lazy("somebody asked for Stop"), of_person=True, leads="--stop-at"),
    "stop:committed": Kind(gettext_lazy("the gate is shut"), of_person=True, leads="--stop-at"),
    "drain:lease": Kind(
        gettext_lazy("a driver that was told of Stop gives its lease back"), leads="--stop-at"
    ),
    "drain:settled": Kind(gettext_lazy("that the run has stopped is on record"), leads="--stop-at"),
    "resume:begin": Kind(
        gettext_lazy("somebody takes a stopped run up again"), of_person=True, leads="--resume"
    ),
    "resume:committed": Kind(gettext_lazy("it may act again"), of_person=True, leads="--resume"),
    "undo:begin": Kind(
        gettext_lazy("somebody asks for the undo of all that landed"),
        of_person=True,
        leads="--undo",
    ),
    "undo:planned": Kind(gettext_lazy("the undo is planned"), of_person=True, leads="--undo"),
    "undo:N:started": Kind(gettext_lazy("the undo of call N begins"), leads="--undo"),
    "undo:N:sent": Kind(gettext_lazy("the world has answered, no outcome yet"), leads="--undo"),
    "undo:N:settled": Kind(gettext_lazy("its outcome is on record"), leads="--undo"),
    "undo:stop": Kind(
        gettext_lazy("somebody asks to stop the undo"), of_person=True, leads="--stop-undo-at"
    ),
    "undo:stopped": Kind(
        gettext_lazy("no further step of the undo begins"),
        of_person=True,
        leads="--stop-undo-at",
    ),
    **_swept(
        "leases",
        gettext_lazy("the sweeper takes a lease that ran out"),
        "--kill-at token:N",
    ),
    **_swept(
        "deadlines",
        gettext_lazy("the sweeper finds a call that nobody reported"),
        "--kill-at call:N:sent",
    ),
    **_swept(
        "approvals",
        gettext_lazy("the sweeper closes a question that ran out"),
        "--answer none, and a short APPROVAL_TTL",
    ),
    **_swept(
        "stopping", gettext_lazy("the sweeper looks after a run that is stopping"), "--stop-at"
    ),
    **_swept(
        "orphans",
        gettext_lazy("the sweeper stops what a failed run has started"),
        "--parent cut-connection",
    ),
    **_swept(
        "budgets", gettext_lazy("the sweeper finds a run out of time"), "an agent with a time limit"
    ),
    **_swept(
        "retries",
        gettext_lazy("the sweeper rings for a call to retry"),
        "--fault TOOL=busy --lose-at call:N:sent",
    ),
    **_swept(
        "lookups",
        gettext_lazy("the sweeper rings for a look-up"),
        "--fault TOOL=drop --lose-at call:N:sent",
    ),
    **_swept(
        "silent",
        gettext_lazy("the sweeper rings for a run that has gone quiet"),
        "--lose-at call:N:sent",
    ),
    **_swept("undo", gettext_lazy("the sweeper rings for an undo"), "--undo --lose-at undo:begin"),
}
_NUMBER = r"([1-9]\d{0,5})"
_FORMS = {
    pattern: re.compile(re.sub(r"\b[TNK]\b", lambda _found: _NUMBER, pattern))
    for pattern in PATTERNS
}


@dataclass(frozen=True)
class Point:
    """One point. `text` is how people and agentruns.pausepoints write it."""

    text: str

    @property
    def is_reached(self) -> bool:
        """Whether anybody comes there, and can be held."""
        return self.text not in (NEVER, BEFORE_START)

    @property
    def of_person(self) -> bool:
        """Whether it is reached by whoever asks, not by a worker."""
        return PATTERNS[_pattern_of(self.text)].of_person

    @property
    def call(self) -> int | None:
        """The number of its call, if it is a point of one."""
        kind, *rest = self.text.split(":")
        return int(rest[0]) if kind == "call" else None


def point(text: str) -> Point:
    """The point that somebody wrote. Raises DrillError, which names the patterns."""
    if not _pattern_of(text):
        raise DrillError(
            _("There is no point “%(text)s”. Points: %(patterns)s (T, N, K from 1).")
            % {"text": text, "patterns": ", ".join(PATTERNS)}
        )
    return Point(text)


def listing() -> Iterator[str]:
    """Every kind of point with what it means, for people at a terminal."""
    width = max(map(len, PATTERNS)) + 2
    for pattern, kind in PATTERNS.items():
        leads = f"  [{kind.leads}]" if kind.leads else ""
        yield f"{pattern:<{width}}{kind.meaning}{leads}"


def _pattern_of(text: str) -> str:
    return next((pattern for pattern, form in _FORMS.items() if form.fullmatch(text)), "")
