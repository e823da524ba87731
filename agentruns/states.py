"""The state machines, as data. django-fsm, the database triggers, labels, badges and the API
derive from this module, and a test asserts that they agree (protocol §3).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_lazy as _


@dataclass(frozen=True)
class State:
    """One state: its value in the database, its word for people, its tone and its icon.

    `group` is where people find a call in this state (protocol I4); runs have none.
    """

    value: str
    label: Any
    tone: str
    icon: str
    group: str = ""


@dataclass(frozen=True)
class Verb:
    """One transition: the method's name, where it may start, where it ends, and the event that
    the ledger records with it.
    """

    name: str
    sources: tuple[str, ...]
    target: str
    event: str


@dataclass(frozen=True)
class Machine:
    """States, verbs and what is terminal, of one field of one model."""

    field: str
    initial: str
    states: dict[str, State]
    verbs: dict[str, Verb]
    terminal: frozenset[str] = frozenset()

    def pairs(self) -> list[tuple[str, str]]:
        """Every legal change (from, to), for the database's trigger."""
        pairs = {(s, v.target) for v in self.verbs.values() for s in v.sources}
        return sorted((source, target) for source, target in pairs if source != target)

    def choices(self) -> list[tuple[str, Any]]:
        return [(s.value, s.label) for s in self.states.values()]


# Why a call counts as failed that was in doubt: it was not found when nothing could be under way
# any more, or a person said so. Either may be wrong, which is found out late.
NOT_LANDED = "not_landed"
ANSWERED_NOT_LANDED = "answered_not_landed"
MAY_TURN_UP = (NOT_LANDED, ANSWERED_NOT_LANDED)


def _machine(
    fieldname: str,
    initial: str,
    states: Iterable[State],
    verbs: dict[str, tuple[tuple[str, ...], str, str]],
    terminal: Iterable[str],
) -> Machine:
    return Machine(
        field=fieldname,
        initial=initial,
        states={s.value: s for s in states},
        verbs={name: Verb(name, *rest) for name, rest in verbs.items()},
        terminal=frozenset(terminal),
    )


# --- Run -------------------------------------------------------------------------------------
ACTIVE_RUN = ("queued", "running", "suspended")
STOPPING_RUN = ("cancel_requested", "draining")
STOPPED_RUN = ("stopped_clean", "stopped_dirty")
FINISHED_RUN = ("completed", "failed")

RUN = _machine(
    "status",
    "queued",
    [
        State("queued", _("Waiting to start"), "plain", "○"),
        State("running", _("Running"), "running", "●"),
        State("suspended", _("Waiting"), "stopping", "‖"),
        State("cancel_requested", _("Stop requested"), "stopping", "■"),
        State("draining", _("Stopping"), "stopping", "■"),
        State("stopped_clean", _("Stopped"), "stopped", "■"),
        State("stopped_dirty", _("Stopped, not everything is known"), "doubt", "?"),
        State("completed", _("Finished"), "done", "✓"),
        State("failed", _("Failed"), "failed", "✕"),
    ],
    {
        "begin": (("queued",), "running", "run.started"),
        # From suspended too: what it waits for may change.
        "suspend": (("queued", "running", "suspended"), "suspended", "run.suspended"),
        "unsuspend": (("suspended",), "running", "run.resumed"),
        # Held before a worker had picked it up.
        "wait_again": (("suspended",), "queued", "run.resumed"),
        "complete": (("running",), "completed", "run.completed"),
        "fail": (ACTIVE_RUN, "failed", "run.failed"),
        "request_cancel": (ACTIVE_RUN, "cancel_requested", "stop.requested"),
        "drain": (("cancel_requested",), "draining", "run.draining"),
        "settle_clean": (("draining",), "stopped_clean", "run.stopped"),
        "settle_dirty": (("draining",), "stopped_dirty", "run.stopped"),
        "reconcile": (("stopped_dirty",), "stopped_clean", "run.reconciled"),
        "requeue": (("stopped_clean",), "queued", "run.requeued"),
    },
    terminal=(*FINISHED_RUN,),
)

SUSPENDED_REASONS = [
    ("approval", _("waits for an approval")),
    ("paused", _("paused")),
    ("dependency", _("waits for something else")),
    ("budget", _("its budget is used up")),
]

# --- ToolCall: the ledger row ------------------------------------------------------------------
GROUPS = {
    "done": _("Done"),
    "in_doubt": _("In doubt"),
    "never_started": _("Never started"),
    "failed": _("Failed"),
    "in_flight": _("In flight"),
}
WAITING = "waiting"
NOT_YET_IN_FLIGHT = ("proposed", "buffered", "awaiting_approval", "approved", "prepared")
READY = ("approved", "prepared")  # for the gate

CALL = _machine(
    "state",
    "proposed",
    [
        State("proposed", _("about to start"), "plain", "·", WAITING),
        State("buffered", _("waits for the end of the answer"), "plain", "·", WAITING),
        State("awaiting_approval", _("needs approval"), "stopping", "?", WAITING),
        State("approved", _("about to start"), "plain", "·", WAITING),
        State("prepared", _("drafted, not sent"), "plain", "·", WAITING),
        State("in_flight", _("under way"), "running", "→", "in_flight"),
        State("landed", _("done"), "done", "✓", "done"),
        State("failed", _("failed, no effect"), "failed", "✕", "failed"),
        State("in_doubt", _("in doubt"), "doubt", "?", "in_doubt"),
        State("voided", _("dropped"), "plain", "–", "never_started"),
        State("frozen", _("held back"), "plain", "–", "never_started"),
        State("rejected", _("rejected"), "plain", "–", "never_started"),
        State("expired", _("approval ran out"), "plain", "–", "never_started"),
        State("denied", _("not allowed"), "plain", "–", "never_started"),
    ],
    {
        "buffer": (("proposed",), "buffered", "call.buffered"),
        "ask": (("proposed", "buffered"), "awaiting_approval", "call.approval_requested"),
        "approve": (
            ("proposed", "buffered", "awaiting_approval", "frozen"),
            "approved",
            "call.approved",
        ),
        "prepare": (("approved",), "prepared", "call.prepared"),
        "pass_gate": (("approved", "prepared"), "in_flight", "call.commit_allowed"),
        "land": (("in_flight", "in_doubt"), "landed", "call.landed"),
        "fail": (
            ("proposed", "buffered", "approved", "prepared", "in_flight", "in_doubt"),
            "failed",
            "call.failed",
        ),
        "doubt": (("in_flight",), "in_doubt", "call.in_doubt"),
        # Nothing of this attempt is unknown: it will be tried again, through the gate again.
        "postpone": (("approved", "in_flight"), "approved", "call.postponed"),
        # Some of its items are out, and no more will follow: the database demands a receipt.
        "conclude": (("approved", "prepared"), "landed", "call.landed"),
        "void": ((*NOT_YET_IN_FLIGHT, "frozen"), "voided", "call.voided"),
        "freeze": (NOT_YET_IN_FLIGHT, "frozen", "call.frozen"),
        "reject": (("awaiting_approval",), "rejected", "call.rejected"),
        "expire": (("awaiting_approval",), "expired", "call.expired"),
        "deny": (NOT_YET_IN_FLIGHT, "denied", "call.denied"),
        # The only way out of a terminal state: the database also demands `contradicted_at` (I7).
        "contradict": (("failed",), "landed", "call.contradicted"),
    },
    terminal=("landed", "failed", "voided", "rejected", "expired", "denied"),
)

# --- Output: a piece of model text ---------------------------------------------------------------
OUTPUT = _machine(
    "status",
    "streaming",
    [
        State("streaming", _("being written"), "running", "●"),
        State("complete", _("complete"), "done", "✓"),
        State("incomplete", _("incomplete"), "stopping", "…"),
    ],
    {
        "finish": (("streaming",), "complete", "output.completed"),
        "cut": (("streaming",), "incomplete", "output.cut"),
    },
    terminal=("complete", "incomplete"),
)
