"""A walk through the model, played on the real protocol and the real database.

Each deed is the function that it stands for (deeds.py). Time passes where the model says so: the
deadline in question is moved into the past, since the clock that decides is the database's.
"""

from datetime import timedelta
from typing import Any

from django.db import transaction

from agentruns.models import Output, Run, StopRequest, ToolCall
from agentruns.protocol import consent, doubt, gate, outcome
from agentruns.protocol.drain import begin_drain
from agentruns.protocol.lease import renew_lease, take_away_lease, take_lease
from agentruns.protocol.ledger import clock, lock_run
from agentruns.protocol.turn import break_turn
from tests.agentruns.steps import TEXT, Steps, now
from tests.forging import rewrite
from tests.model.rows import FREE, MISSING, State
from tests.model.steps import Step
from tools.contract import Draft, NotLanded, Receipt
from tools.errors import NoEffect

RECEIPT = Receipt({"id": "1"}, "Done.")
BUSY = NoEffect("busy", "Later.", is_passing=True)


class Player:
    """Plays one run. `tools`: what the model's calls are, in order; `held`: what each worker has
    in its memory, a lease or a claim.
    """

    def __init__(self, steps: Steps, tools: tuple[str, ...], *, is_unit: bool) -> None:
        self.steps = steps
        self.tools = tools
        self.is_unit = is_unit
        self.held: dict[int | str, Any] = {}
        self.run = steps.start()

    def play(self, step: Step) -> None:
        """Do what the step stands for; what is only outside leaves no trace in the database."""
        act = getattr(self, f"_{step.deed}", None)
        if act is not None:
            act(step)

    # --- a worker that streams ----------------------------------------------------------------
    def _take_lease(self, step: Step) -> None:
        self.held[step.who] = take_lease(self.run.pk, epoch=now(self.run).epoch)

    def _propose(self, step: Step) -> None:
        what = "the unit" if self.is_unit else f"thing {step.n}"
        self.steps.propose(self.held[step.who], self.tools[step.n], what)

    def _finish(self, step: Step) -> None:
        assert self.steps.finish(self.held[step.who])

    def _break(self, step: Step) -> None:
        assert break_turn(self.held[step.who], TEXT, "answer_broken", "")

    def _give_back(self, step: Step) -> None:
        assert not renew_lease(self.held[step.who], TEXT)
        self.steps.give_back(self.held[step.who])

    # --- a worker that does a call --------------------------------------------------------------
    def _claim(self, step: Step) -> None:
        call, run = self._call(step), now(self.run)
        self._is_past(call, "claim_expires_at", "next_attempt_at")
        epoch = run.epoch if run.status == "running" else call.epoch
        self.held[step.who] = gate.claim_call(call.pk, epoch=epoch)
        assert self.held[step.who] is not None

    def _draft(self, step: Step) -> None:
        gate.keep_draft(self.held[step.who], Draft({"id": "1"}))

    def _gate(self, step: Step) -> None:
        assert gate.pass_gate(self.held[step.who]) is step.passes_gate

    def _landed(self, step: Step) -> None:
        outcome.record_landed(self.held[step.who], RECEIPT)

    def _failed(self, step: Step) -> None:
        outcome.record_failed(self.held[step.who], "refused", "")

    _too_late = _failed

    def _postponed(self, step: Step) -> None:
        outcome.record_no_effect(self.held[step.who], BUSY)

    def _doubted(self, step: Step) -> None:
        outcome.record_doubt(self.held[step.who], "no answer")

    def _look_up(self, step: Step) -> None:
        call = self._call(step)
        if call.state == "in_doubt":
            doubt.ask_again(call.pk)
        else:
            self._is_past(call, "next_lookup_at")
        if step.before.calls[step.n].is_past:
            self._is_past(call, "horizon_at")
        assert doubt.begin_lookup(call.pk) is not None

    def _looked_up(self, step: Step) -> None:
        task = step.before.workers[int(step.who)].task
        call = self._call(step)
        found = NotLanded() if task == MISSING else RECEIPT
        assert call.looked_up_at is not None
        doubt.record_lookup(call.pk, found, begun_at=call.looked_up_at)

    # --- the sweeper ----------------------------------------------------------------------------
    def _sweep_lease(self, step: Step) -> None:
        self._is_past(now(self.run), "lease_expires_at")
        assert take_away_lease(self.run.pk)

    def _sweep_call(self, step: Step) -> None:
        call = step.before.calls[step.n]
        if call.is_overdue or call.is_read:
            self._is_past(self._call(step), "deadline_at")
        else:
            self._is_past(now(self.run), "drain_deadline")
        assert doubt.expire_call(self._call(step).pk)

    def _sweep_consent(self, step: Step) -> None:
        self._is_past(self._call(step), "consent_expires_at")
        assert consent.expire_consent(self._call(step).pk)

    def _sweep_unit(self, step: Step) -> None:
        self._is_past(now(self.run), "drain_deadline")
        self._sweep_drain(step)

    def _sweep_drain(self, step: Step) -> None:
        with transaction.atomic(durable=True):
            begin_drain(lock_run(self.run.pk))

    def _sweep_silent(self, step: Step) -> None:
        self.steps.ring_again(self.run)

    # --- people -----------------------------------------------------------------------------------
    def _stop(self, step: Step) -> None:
        self.steps.stop(self.run)

    def _stop_freeze(self, step: Step) -> None:
        self.steps.stop(self.run, pending="freeze")

    def _pause(self, step: Step) -> None:
        self.steps.pause(self.run)

    def _unpause(self, step: Step) -> None:
        self.steps.unpause(self.run)

    def _resume_release(self, step: Step) -> None:
        self.steps.resume(self.run, frozen="release")

    def _resume_void(self, step: Step) -> None:
        self.steps.resume(self.run, frozen="void")

    def _approve(self, step: Step) -> None:
        self.steps.approve(self._call(step))

    def _reject(self, step: Step) -> None:
        self.steps.reject(self._call(step))

    def _happened(self, step: Step) -> None:
        doubt.answer(self._call(step).pk, by=self.steps.owner, answer="happened", evidence="")

    def _did_not(self, step: Step) -> None:
        doubt.answer(self._call(step).pk, by=self.steps.owner, answer="did_not_happen", evidence="")

    # --- rows -------------------------------------------------------------------------------------
    def _call(self, step: Step) -> ToolCall:
        return ToolCall.objects.get(run=self.run, number=step.n + 1)

    @staticmethod
    def _is_past(row: Run | ToolCall, *names: str) -> None:
        """These deadlines of the row, as far as it has them, are over."""
        past = clock().now - timedelta(hours=1)
        due = {name: past for name in names if getattr(row, name) is not None}
        if due:
            rewrite(type(row).objects.filter(pk=row.pk), **due)


def in_database(run: Run) -> dict[str, Any]:
    """What the database has of a run, in the model's words."""
    row = now(run)
    text = Output.objects.filter(run=run, turn=row.turn).values_list("status", flat=True).first()
    calls = ToolCall.objects.filter(run=run).order_by("number")
    stops = StopRequest.objects.filter(run=run).order_by("epoch")
    return {
        "status": row.status,
        "reason": row.suspended_reason,
        "epoch": row.epoch,
        "turn": row.turn,
        "is_leased": row.lease_holder != "",
        "text": text or "",
        "stops": tuple(stops.values_list("epoch", flat=True)),
        "calls": [(call.state, call.epoch, call.turn) for call in calls],
    }


def in_model(state: State) -> dict[str, Any]:
    """The same of a state of the model."""
    run = state.run
    return {
        "status": run.status,
        "reason": run.reason,
        "epoch": run.epoch,
        "turn": run.turn,
        "is_leased": run.lease != FREE,
        "text": run.text,
        "stops": run.stops,
        "calls": [(call.state, call.epoch, call.turn) for call in state.calls],
    }
