"""The states of one undo step, as data (protocol §10); see agentruns/states.py."""

from django.utils.translation import gettext_lazy as _

from agentruns.states import Machine, State, Verb

LIVING = ("planned", "running", "retrying")
WITHOUT_EFFECT = ("changed", "cannot", "failed")

_STATES = [
    State("planned", _("waits its turn"), "plain", "·"),
    State("running", _("being undone"), "running", "→"),
    State("retrying", _("did not work yet, will be tried again"), "stopping", "↻"),
    State("undone", _("undone"), "done", "✓"),
    State("changed", _("left alone: somebody changed it since"), "stopping", "!"),
    State("cannot", _("cannot be undone"), "failed", "✕"),
    State("failed", _("given up: look at it yourself"), "failed", "✕"),
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
    "changed": _("Somebody changed it since."),
    "impossible": _("It cannot be undone."),
    "trouble": _("It did not work yet."),
    "no_report": _("Nobody reported whether it worked."),
    "too_many_attempts": _("It did not work, however often it was tried."),
    "run_acts": _("The run went on, so this was left as it is."),
    "not_allowed": _("Whoever asked for this may no longer undo it."),
    "nothing_to_undo": _("There was nothing left to undo."),
}
