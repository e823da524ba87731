"""What must never be seen: in a state, or in a step from one to the next (protocol §12).

Each check returns a sentence that says what is wrong, or "". I10 is about all states together:
see liveness.py. I6, I8, I9, I11 and I12 are about what the model leaves out (hashes, texts, undo,
histories, consent); verify_ledger checks all twelve on real ledgers.
"""

from collections.abc import Callable

from agentruns.states import (
    CALL,
    FINISHED_RUN,
    NOT_YET_IN_FLIGHT,
    STOPPED_RUN,
    STOPPING_RUN,
    WAITING,
)
from tests.model.rows import (
    COMPLETE,
    DRAINING,
    DRIVING,
    FAILED,
    IN_DOUBT,
    IN_FLIGHT,
    LANDED,
    LET_THROUGH,
    RUNNING,
    SENT,
    STOPPED_CLEAN,
    Call,
    State,
)
from tests.model.steps import Step

BEGUN = (IN_FLIGHT, IN_DOUBT, LANDED)  # it has happened, or may have


# --- of a step ------------------------------------------------------------------------------------
def nothing_passes_a_shut_gate(step: Step) -> str:
    """No call is let through unless its run is running in the call's own epoch, or it finishes
    an atomic unit; and nothing is sent that was not let through right before.
    """
    run = step.before.run
    if step.passes_gate:
        if run.status != RUNNING and not _finishes_a_unit(step):
            return f"call {step.n + 1} passed the gate of a run that is {run.status}"
        if step.before.calls[step.n].epoch != run.epoch and not _finishes_a_unit(step):
            return f"call {step.n + 1} passed the gate in an epoch that is not its own"
    for was, worker in zip(step.before.workers, step.tx.workers, strict=True):
        if worker.task == SENT and was.task not in (SENT, LET_THROUGH):
            return f"call {step.n + 1} was sent without having passed the gate"
    return ""


def _finishes_a_unit(step: Step) -> bool:
    """The one exception: it had begun, and goes on in order, under the stop that it met."""
    run, calls = step.before.run, step.before.calls
    is_next = step.n > 0 and all(call.state == LANDED for call in calls[: step.n])
    is_of_then = run.status in STOPPING_RUN and calls[step.n].epoch == run.epoch - 1
    return step.is_of_unit and is_next and is_of_then


def a_cut_answer_asks_for_nothing(step: Step) -> str:
    """An effect goes out only after the clean end of the answer that asked for it."""
    if not step.passes_gate or step.before.calls[step.n].is_read:
        return ""
    run, call = step.before.run, step.before.calls[step.n]
    is_whole = run.text == COMPLETE or call.turn < run.turn
    return "" if is_whole else f"call {step.n + 1} goes out, and the answer is {run.text}"


def a_begun_unit_is_not_cut(step: Step) -> str:
    """Stop drops nothing of an atomic unit that has begun."""
    before, after = step.before, step.tx
    has_begun = step.is_of_unit and any(call.state in BEGUN for call in before.calls)
    if not has_begun or not step.deed.startswith("stop"):
        return ""
    for n, (was, call) in enumerate(zip(before.calls, after.calls, strict=True)):
        if was.state in NOT_YET_IN_FLIGHT and call.state != was.state:
            return f"step {n + 1} of the unit is {call.state}, and the unit had begun"
    return ""


def stops_are_one_stop(step: Step) -> str:
    """The first Stop of an epoch makes one request and one epoch step; every other, nothing."""
    before, after = step.before.run, step.tx.run
    if not step.deed.startswith("stop"):
        return "" if after.stops == before.stops else "a StopRequest that nobody made"
    if before.epoch in before.stops:
        return "" if step.after == step.before else "a second Stop changed something"
    grown = after.epoch - before.epoch
    if grown != (0 if before.status in FINISHED_RUN else 1):
        return f"the epoch grew by {grown}"
    return "" if after.stops == (*before.stops, after.epoch) else "not exactly one StopRequest"


def every_transition_is_legal(step: Step) -> str:
    """Every transition is a declared one, and a terminal state is final; nobody is ever
    contradicted but a person who said that it did not happen, so never a look-up.
    """
    for move in step.tx.moves:
        if move.source not in move.machine.verbs[move.verb].sources:
            return f"“{move.verb}” may not start from {move.source}"
        is_contradicted = (move.source, move.target) == (FAILED, LANDED)
        if is_contradicted and not step.before.calls[step.n].is_answered:
            return f"call {step.n + 1} was known to have failed, by a look-up, and landed"
    return "" if step.tx.run.epoch >= step.before.run.epoch else "the epoch shrank"


# --- of a state -----------------------------------------------------------------------------------
def each_effect_has_its_row(state: State) -> str:
    """No effect happens twice, and none without a row that says that it did, or may have."""
    for n, call in enumerate(state.calls):
        if call.effects > 1 and not call.is_read:
            return f"call {n + 1} happened {call.effects} times"
        if call.effects and not call.is_read and not _is_accounted_for(call):
            return f"call {n + 1} happened, and its row says {call.state}"
    return ""


def _is_accounted_for(call: Call) -> bool:
    return call.state in BEGUN or (call.state == FAILED and call.is_answered)


def each_landed_row_has_its_effect(state: State) -> str:
    """What is on record as landed has happened, or a person has said so."""
    for n, call in enumerate(state.calls):
        is_shown = call.effects or call.is_answered or call.is_read
        if call.state == LANDED and not is_shown:
            return f"call {n + 1} is landed, and never happened"
    return ""


def a_stopped_run_is_at_rest(state: State) -> str:
    """In a run that is called stopped, nothing waits and nothing is in flight; in one that is
    called clean, nothing is in doubt.
    """
    if state.run.status not in STOPPED_RUN:
        return ""
    for n, call in enumerate(state.calls):
        is_open = call.state == IN_FLIGHT or CALL.states[call.state].group == WAITING
        if is_open or (call.state == IN_DOUBT and state.run.status == STOPPED_CLEAN):
            return f"the run is {state.run.status}, and call {n + 1} is {call.state}"
    return ""


def nobody_drives_a_run_that_drains(state: State) -> str:
    """At most one driver streams a run, and none one that drains, except under a lost lease."""
    drivers = sum(w.task == DRIVING and not w.is_fenced for w in state.workers)
    is_over = state.run.status in (DRAINING, *STOPPED_RUN, *FINISHED_RUN)
    if drivers > (0 if is_over else 1):
        return f"the run is {state.run.status}, and {drivers} drive it"
    return ""


OF_A_STEP: dict[str, Callable[[Step], str]] = {
    "I1": nothing_passes_a_shut_gate,
    "I5": stops_are_one_stop,
    "§6": a_cut_answer_asks_for_nothing,
    "I7": every_transition_is_legal,
    "§9": a_begun_unit_is_not_cut,
}
OF_A_STATE: dict[str, Callable[[State], str]] = {
    "I2": each_effect_has_its_row,
    "I3": each_landed_row_has_its_effect,
    "I4": a_stopped_run_is_at_rest,
    "§4": nobody_drives_a_run_that_drains,
}
