"""The deeds in words, and the function of the code that each stands for; and a trace to read.

A test looks up every name, so that a function which is renamed or gone is missed here.
"""

from typing import NamedTuple

from tests.model.explore import Breach
from tests.model.rows import FREE, Call, Run
from tests.model.steps import Step


class Deed(NamedTuple):
    """What a step does; `code` is a function in agentruns.protocol, "" for what happens outside."""

    words: str
    code: str = ""


DEEDS = {
    # a worker that streams the model
    "take_lease": Deed("begins a turn of the model", "lease.take_lease"),
    "propose": Deed("writes down call {n}, which the model asks for", "turn.propose_call"),
    "finish": Deed("ends the turn: the answer is complete", "turn.finish_turn"),
    "break": Deed("ends the turn: the answer was cut off", "turn.break_turn"),
    "give_back": Deed("sees that the run is not its own any more", "lease.give_back_lease"),
    # a worker that does a call
    "claim": Deed("claims call {n}", "gate.claim_call"),
    "draft": Deed("keeps the draft of call {n}", "gate.keep_draft"),
    "gate": Deed("asks the gate for call {n}", "gate.pass_gate"),
    "send": Deed("sends call {n}", "execute.execute_call"),
    "too_late": Deed("was held up after the gate: does not send call {n}", "outcome.record_failed"),
    "landed": Deed("records that call {n} landed", "outcome.record_landed"),
    "failed": Deed("records that call {n} had no effect", "outcome.record_failed"),
    "postponed": Deed("records passing trouble with call {n}", "outcome.record_no_effect"),
    "doubted": Deed("got no answer to call {n}", "outcome.record_doubt"),
    "look_up": Deed("asks the outside about call {n}", "doubt.begin_lookup"),
    "looked_up": Deed("records what the outside said of call {n}", "doubt.record_lookup"),
    "dies": Deed("dies"),
    # what no worker does
    "arrives": Deed("does what call {n} asks for"),
    "refuses": Deed("refuses call {n}, and says so"),
    "vanishes": Deed("never gets call {n}, and nobody hears of it"),
    "overdue": Deed("is past the time of call {n}: nobody sends it any more"),
    "horizon": Deed("is past the horizon of call {n}: nothing of it is under way any more"),
    "sweep_lease": Deed("takes the lease away", "lease.take_away_lease"),
    "sweep_call": Deed("finds no report on call {n} in time", "doubt.expire_call"),
    "sweep_consent": Deed("closes the question about call {n}", "consent.expire_consent"),
    "sweep_drain": Deed("drains, if nobody drives", "drain.begin_drain"),
    "sweep_unit": Deed("holds back what is left of the unit", "units.freeze_unfinished"),
    "sweep_silent": Deed("has the run go on", "sweep.ring_again"),
    "stop": Deed("presses Stop", "stop.request_stop"),
    "stop_freeze": Deed("presses Stop, and keeps what has not started", "stop.request_stop"),
    "pause": Deed("pauses the run", "pause.pause_run"),
    "unpause": Deed("lets the paused run go on", "pause.unpause_run"),
    "resume_release": Deed("resumes, with what was kept", "resume.resume_run"),
    "resume_void": Deed("resumes, without what was kept", "resume.resume_run"),
    "approve": Deed("approves call {n}", "consent.approve"),
    "reject": Deed("rejects call {n}", "consent.reject"),
    "happened": Deed("says that call {n} happened", "doubt.answer"),
    "did_not": Deed("says that call {n} did not happen", "doubt.answer"),
}


def told(breach: Breach) -> str:
    """The breach and the way there: who did what, and what changed by it."""
    lines = [f"{breach.invariant} does not hold: {breach.why}."]
    for number, step in enumerate(breach.trace, 1):
        deed = DEEDS[step.deed]
        who = f"worker {step.who + 1}" if isinstance(step.who, int) else step.who
        words = deed.words.format(n=step.n + 1)
        lines.append(f"{number:>4}  {who:<11} {words:<58} {deed.code}".rstrip())
        lines += [f"{'':>19}{change}" for change in _changes(step)]
    return "\n".join(lines)


def _changes(step: Step) -> list[str]:
    """What the step left different, a line for each row."""
    before, after = step.before, step.after
    lines = [_difference("the run", before.run, after.run)]
    for n, call in enumerate(after.calls):
        was = before.calls[n] if n < len(before.calls) else call._replace(state="none")
        lines.append(_difference(f"call {n + 1}", was, call))
    return [line for line in lines if line]


def _difference(name: str, before: Run | Call, after: Run | Call) -> str:
    pairs = zip(after._fields, before, after, strict=True)
    changed = [f"{field} {_said(field, a)} → {_said(field, b)}" for field, a, b in pairs if a != b]
    return f"{name}: {', '.join(changed)}" if changed else ""


def _said(field: str, value: object) -> str:
    if field in ("lease", "claim"):
        return "free" if value == FREE else f"worker {int(str(value)) + 1}"
    if value in ("", ()):
        return "none"
    return str(value)
