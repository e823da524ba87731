"""The states of one undo step, as data (protocol §10); see agentruns/states.py."""

from django.utils.translation import gettext_lazy as _

from agentruns.states import Machine, State, Verb

LIVING = ("planned", "running", "retrying")
# Ended without an effect, and nobody has said yet what becomes of it.
UNSETTLED = ("changed", "cannot", "failed")
WITHOUT_EFFECT = (*UNSETTLED, "dropped", "left")

_STATES = [
    State("planned", _("waits its turn"), "plain", "·"),
    State("running", _("being undone"), "running", "→"),
    State("retrying", _("did not work yet, will be tried again"), "stopping", "↻"),
    State("undone", _("undone"), "done", "✓"),
    State("changed", _("left alone: it was changed since"), "stopping", "!"),
    State("cannot", _("cannot be undone"), "failed", "✕"),
    State("failed", _("given up: look at it yourself"), "failed", "✕"),
    State("dropped", _("not undone: the undo was stopped"), "stopped", "■"),
    State("left", _("left as it is"), "plain", "–"),
]
_VERBS = [
    Verb("start", ("planned", "retrying"), "running", "undo.started"),
    Verb("postpone", ("running",), "retrying", "undo.postponed"),
    Verb("lapse", ("running",), "retrying", "undo.lapsed"),
    # However late and after whatever else: that it is undone is the truth about the world.
    Verb("land", (*LIVING, *WITHOUT_EFFECT), "undone", "undo.landed"),
    Verb("find_changed", ("running",), "changed", "undo.found_changed"),
    Verb("find_impossible", ("running",), "cannot", "undo.found_impossible"),
    Verb("give_up", LIVING, "failed", "undo.failed"),
    # The undo was stopped: what had not begun, and what had begun and did not work.
    Verb("drop", LIVING, "dropped", "undo.dropped"),
    # A person's word, with a reason: they have undone it themselves, or it stays as it is.
    Verb("undo_by_hand", UNSETTLED, "undone", "undo.done_by_hand"),
    Verb("leave", UNSETTLED, "left", "undo.left"),
]

COMPENSATION = Machine(
    field="state",
    initial="planned",
    states={state.value: state for state in _STATES},
    verbs={verb.name: verb for verb in _VERBS},
    terminal=frozenset({"undone"}),
)

# Why a step did not go as planned, for people.
REASONS = {
    "changed": _("It was changed since."),
    "impossible": _("It cannot be undone."),
    "trouble": _("It did not work yet."),
    "no_report": _("Nobody reported whether it worked."),
    "too_many_attempts": _("It did not work, however often it was tried."),
    "ledger_cut_back": _(
        "Records of this run are missing, so nothing more is done: an admin has to look at it."
    ),
    "run_acts": _("The run went on, so this was left as it is."),
    "not_allowed": _("Whoever asked for this may no longer undo it."),
    "nothing_to_undo": _("There was nothing left to undo."),
    "stopped": _("The undo was stopped before this began."),
    "stopped_after_trouble": _("It did not work, and the undo was stopped before another try."),
    "unknown_when_stopped": _("The undo was stopped, and nobody reported whether this worked."),
}
