"""I1 to I7, I11 and I12 hold after every step, in whatever order workers, people and time act.

Hypothesis plays them all: drivers that die and come back as zombies, executors that crash before
or after they sent, answers that get lost, attempts that are made again, units that are finished
or not begun, late reports, persons, pauses, Stop, and the sweeper. Each step
is the real verb on the real database; the world outside keeps its own record of what happened.
"""

import contextlib
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django import conf
from django.contrib.auth.models import User
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
    run_state_machine_as_test,
)

from agentruns.errors import WrongState
from agentruns.models import Agent, LedgerEvent, ToolCall
from agentruns.protocol import ledger
from agentruns.protocol.advance import open_calls
from agentruns.protocol.doubt import answer, ask_again
from agentruns.protocol.execute import look_up_call
from agentruns.protocol.gate import Claim, claim_call, pass_gate
from agentruns.protocol.lease import Lease, give_back_lease, renew_lease, take_lease
from agentruns.protocol.outcome import (
    record_doubt,
    record_failed,
    record_landed,
    record_no_effect,
)
from agentruns.protocol.turn import Proposal, break_turn, finish_turn, propose_call
from agentruns.states import FINISHED_RUN, NOT_YET_IN_FLIGHT, STOPPED_RUN
from agentruns.verify import Scope, verify
from tests.agentruns.orders import ORDER
from tests.agentruns.outside import PLAIN, Outside, registered
from tests.agentruns.steps import TEXT, Steps, now, pass_time
from tests.forging import forge
from tools import policy
from tools.contract import Receipt, Tier
from tools.errors import NoEffect
from tools.journal import Journal
from tools.world.journal import CHAT

EXAMPLES, STEPS = 30, 25
LONG = 1800.0  # seconds; an hour passes where a rule says so
NAMES = [*sorted(set(PLAIN) - {"test.draft"}), "a whole order"]
TABLES = (
    "agentruns_ledgerevent, agentruns_stoprequest, agentruns_output, agentruns_grant, "
    "agentruns_toolcall, agentruns_run, agentruns_thread"
)
# What becomes of a call that passed the gate: it reports, or its executor dies, or takes long.
FATES = ("lands", "lost", "refused", "busy", "dies unsent", "dies after sending", "takes long")
TIMED = ("approved", "awaiting_approval", "in_flight")
DEEDS = ("propose", "propose", "finish", "break off", "renew")
PLACES = st.sampled_from([0, 0, 1, 2])
A_FEW_TOOLS = st.lists(st.sampled_from(NAMES), min_size=1, max_size=3)


class Protocol(RuleBasedStateMachine):
    """One run with its calls. `outside` is what really happened."""

    steps: Steps
    outside: Outside
    folder: Path

    claims = Bundle("claims")
    reports = Bundle("reports")

    def __init__(self) -> None:
        super().__init__()
        self.outside.effects.clear()
        self.run = self.steps.start()
        self.seen: set[str] = set()  # what the preconditions go by
        self.leases: list[Lease] = []
        self.answers: list[dict[str, Any]] = []
        self.world = self.folder / self.run.pk
        self.world.mkdir()
        self.journal = Journal(self.world / CHAT)

    # --- the story goes on, as it mostly does -----------------------------------------------
    @rule(target=reports, fate=st.sampled_from(FATES), tools=A_FEW_TOOLS)
    def go_on(self, fate: str, tools: list[str]) -> Any:
        """Whatever is due next is done; `fate` is that of the call that goes out, if one does."""
        return self._go_on(tools, fate, is_approved=True)

    @rule(target=reports, tools=A_FEW_TOOLS, is_approved=st.booleans())
    def go_on_well(self, tools: list[str], is_approved: bool) -> Any:
        return self._go_on(tools, "lands", is_approved=is_approved)

    # --- the driver -------------------------------------------------------------------------
    @initialize(tools=A_FEW_TOOLS, is_finished=st.booleans())
    def first_turn(self, tools: list[str], is_finished: bool) -> None:
        self._turn(tools, is_finished=is_finished)

    @precondition(lambda self: "a turn is due" in self.seen)
    @rule(tools=A_FEW_TOOLS)
    def begin_turn(self, tools: list[str]) -> None:
        """Pick the run up, and stream on."""
        self._turn(tools, is_finished=False)

    @precondition(lambda self: self.leases)
    @rule(place=PLACES, deed=st.sampled_from(DEEDS), tool=st.sampled_from(NAMES))
    def drive(self, place: int, deed: str, tool: str) -> None:
        """Whatever a driver does next, be it the run's own (place 0) or one that lost it."""
        lease = self.leases[::-1][place % len(self.leases)]
        if deed == "propose":
            self._propose(lease, tool)
        elif deed == "finish":
            finish_turn(lease, TEXT, "stop")
        elif deed == "break off":
            break_turn(lease, TEXT, "answer_length", "")
        elif not renew_lease(lease, TEXT):  # so it gives the lease back
            give_back_lease(lease, TEXT)

    @precondition(lambda self: len(self.leases) > 1)
    @rule(tool=st.sampled_from(NAMES))
    def a_zombie_comes_back(self, tool: str) -> None:
        """Its lease is over, whatever it tries."""
        zombie = self.leases[-2]
        assert renew_lease(zombie, TEXT) is False
        assert give_back_lease(zombie, TEXT) is False
        assert self._propose(zombie, tool) is None
        assert finish_turn(zombie, TEXT, "stop") is False
        assert break_turn(zombie, TEXT, "answer_length", "") is False

    # --- the executors ----------------------------------------------------------------------
    @precondition(lambda self: "approved" in self.seen)
    @rule(target=reports, place=PLACES, fate=st.sampled_from(FATES))
    def act(self, place: int, fate: str) -> Any:
        """Claim, gate, send and report without a pause, as most executors do."""
        claim = self._claim(place, 0)
        return self._through(claim, fate) if claim else multiple()

    @precondition(lambda self: "approved" in self.seen)
    @rule(target=claims, place=PLACES, epoch=st.integers(0, 1))
    def claim(self, place: int, epoch: int) -> Any:
        return self._claim(place, epoch) or multiple()

    @rule(target=reports, claim=claims, fate=st.sampled_from(FATES))
    def pass_the_gate(self, claim: Claim, fate: str) -> Any:
        return self._through(claim, fate)

    @rule(claim=reports, is_known=st.booleans())
    def report_late(self, claim: Claim, is_known: bool) -> None:
        if is_known:
            record_landed(claim, Receipt({"late": True}, "Done."))
        else:
            record_doubt(claim, "connection reset")

    @precondition(lambda self: "in_doubt" in self.seen)
    @rule(place=PLACES, is_dark=st.booleans())
    def look_up(self, place: int, is_dark: bool) -> None:
        call = self._some(place, "in_doubt")
        self.outside.is_dark = is_dark
        with contextlib.suppress(WrongState):
            ask_again(call.pk)
        look_up_call(call.pk)

    # --- people -----------------------------------------------------------------------------
    @precondition(lambda self: "awaiting_approval" in self.seen)
    @rule(place=PLACES, is_approved=st.booleans())
    def decide(self, place: int, is_approved: bool) -> None:
        call = self._some(place, "awaiting_approval")
        with contextlib.suppress(WrongState):
            self.steps.approve(call) if is_approved else self.steps.reject(call)

    @precondition(lambda self: "in_doubt" in self.seen)
    @rule(place=PLACES, is_sure=st.booleans())
    def answer_a_doubt(self, place: int, is_sure: bool) -> None:
        """People say what is true, or that they cannot tell."""
        call = self._some(place, "in_doubt")
        happened = call.request_id in self._keys()
        said = ("happened" if happened else "did_not_happen") if is_sure else "cannot_tell"
        with contextlib.suppress(WrongState):
            answer(call.pk, by=self.steps.owner, answer=said, evidence="seen")

    @rule(pending=st.sampled_from(["discard", "freeze"]), presses=st.integers(-4, 2))
    def stop(self, pending: str, presses: int) -> None:
        """Rarely, or a run would not get far."""
        for _ in range(presses):
            self.answers.append(self.steps.stop(self.run, pending=pending).answer)

    @rule(is_on=st.sampled_from([True, False, False]))
    def hold(self, is_on: bool) -> None:
        """Pause it, or let it go on."""
        with contextlib.suppress(WrongState):
            self.steps.pause(self.run) if is_on else self.steps.unpause(self.run)

    # --- time, and the sweeper --------------------------------------------------------------
    @precondition(lambda self: self.seen & {*TIMED})
    @rule(place=PLACES, is_swept=st.booleans())
    def time_of_a_call_passes(self, place: int, is_swept: bool) -> None:
        pass_time(self._some(place, *TIMED))
        if is_swept:
            self._sweep()

    @precondition(lambda self: "a deadline" in self.seen)
    @rule(is_swept=st.booleans())
    def time_of_the_run_passes(self, is_swept: bool) -> None:
        pass_time(self.run)
        if is_swept:
            self._sweep()

    @rule(deed=st.sampled_from(["sweep", "decide", "answer", "look up", "claim", "think"]))
    def somebody_comes_at_the_wrong_time(self, deed: str) -> None:
        """A message that outlived its reason, a click on a stale page, a sweep for nothing."""
        call = self._some(len(deed), "voided", "landed")
        epoch = now(self.run).epoch
        match deed:
            case "sweep":
                self._sweep()
            case "look up":
                look_up_call(call.pk)
            case "claim":
                assert call.state == "approved" or claim_call(call.pk, epoch=epoch) is None
            case "think":
                assert take_lease(self.run.pk, epoch=epoch - 1) is None
            case "decide" if call.state != "awaiting_approval":
                with pytest.raises(WrongState):
                    self.steps.approve(call)
            case "answer" if call.state != "in_doubt":
                with pytest.raises(WrongState):
                    answer(call.pk, by=self.steps.owner, answer="happened", evidence="")

    # --- what always holds ------------------------------------------------------------------
    @invariant()
    def the_ledger_is_true(self) -> None:
        scope = Scope(world_dir=self.world, run_ids=(self.run.pk,))
        assert [each for result in verify(scope) for each in result.breaches] == []
        self._look()

    @invariant()
    def every_stop_got_the_same_answer(self) -> None:
        assert self.answers == self.answers[:1] * len(self.answers)

    @invariant()
    def what_landed_is_in_the_world(self) -> None:
        """I3, for tools of the tests' own."""
        landed = ToolCall.objects.filter(run=self.run, state="landed")
        keys = landed.exclude(tier=Tier.READ_ONLY).values_list("request_id", flat=True)
        assert set(keys) <= self._keys()

    def teardown(self) -> None:
        """I10: with every worker dead, Stop and the sweeper alone settle the run."""
        self.steps.stop(self.run)
        for _ in range(2):
            pass_time(self.run)
            for call in ToolCall.objects.filter(run=self.run):
                pass_time(call)
            self.steps.sweep()
        assert now(self.run).status in (*STOPPED_RUN, *FINISHED_RUN)
        unsettled = ToolCall.objects.filter(
            run=self.run, state__in=(*NOT_YET_IN_FLIGHT, "in_flight")
        )
        assert not unsettled.exists() or now(self.run).status in FINISHED_RUN
        self.the_ledger_is_true()
        forge(f"TRUNCATE {TABLES} CASCADE")

    def _look(self) -> None:
        run = now(self.run)
        self.seen = set(ToolCall.objects.filter(run=run).values_list("state", flat=True))
        if run.lease_expires_at or run.drain_deadline:
            self.seen.add("a deadline")
        if run.status == "running" and run.lease_holder:
            self.seen.add("somebody streams")
        is_free = run.status in ("queued", "running") and not run.lease_holder
        if is_free and not open_calls(run):
            self.seen.add("a turn is due")

    def _go_on(self, tools: list[str], fate: str, *, is_approved: bool) -> Any:
        if now(self.run).suspended_reason == "paused":
            self.hold(False)
        if "somebody streams" in self.seen:
            finish_turn(self.leases[-1], TEXT, "stop")
        elif "a turn is due" in self.seen:
            self._turn(tools, is_finished=len(tools) < 3)
        while self._is_waiting("awaiting_approval"):
            self.decide(0, is_approved)
        if self._is_waiting("in_doubt"):
            self.answer_a_doubt(0, is_approved)
        return self.act(0, fate) if self._is_waiting("approved") else multiple()

    def _is_waiting(self, state: str) -> bool:
        return ToolCall.objects.filter(run=self.run, state=state).exists()

    def _sweep(self) -> None:
        self.steps.sweep()
        self.steps.ring_again(self.run)

    def _some(self, place: int, *states: str) -> ToolCall:
        """One of the calls in these states; if there is none, any call, for which it is wrong."""
        calls = ToolCall.objects.filter(run=self.run).order_by("number")
        found = list(calls.filter(state__in=states)) or list(calls)
        return found[place % len(found)]

    def _claim(self, place: int, epoch: int) -> Claim | None:
        call = self._some(place, "approved")
        return claim_call(call.pk, epoch=call.epoch - epoch)

    def _turn(self, tools: list[str], *, is_finished: bool = True) -> None:
        lease = take_lease(self.run.pk, epoch=now(self.run).epoch)
        if lease is None:
            return
        self.leases.append(lease)
        for tool in tools:
            self._propose(lease, tool)
        if is_finished:
            finish_turn(lease, TEXT, "stop")

    def _propose(self, lease: Lease, tool: str) -> ToolCall | None:
        """Some calls repeat what was asked for before."""
        number = LedgerEvent.objects.filter(run=self.run).count()
        raw = json.dumps({"what": str(number % 7)})
        for place, step in enumerate(ORDER if tool == NAMES[-1] else (tool,)):
            written = propose_call(lease, Proposal(step, raw, f"p{number}.{place}", 0))
        return written

    def _through(self, claim: Claim, fate: str) -> Any:
        """Through the gate and, at once, out into the world."""
        if not pass_gate(claim):
            return multiple()
        call = ToolCall.objects.get(pk=claim.call_id)
        self._was_right_to_pass(call, claim)
        if fate == "dies unsent":
            return multiple()
        if fate == "refused":
            record_failed(claim, "refused", "no")
            return multiple()
        if fate == "busy":
            record_no_effect(claim, NoEffect("busy", "later", is_passing=True))
            return multiple()
        if call.tier != Tier.READ_ONLY:
            self._happens(call)
        if fate == "lands":
            record_landed(claim, Receipt({"key": call.request_id}, "Done."))
        elif fate == "lost":
            record_doubt(claim, "connection reset")
        return claim if fate == "takes long" else multiple()

    def _was_right_to_pass(self, call: ToolCall, claim: Claim) -> None:
        """The claim was good, and what cannot be undone had its consent (I12)."""
        assert call.claim_token == claim.token
        if call.tool == "test.send":
            assert call.consent_by == self.steps.owner
            assert call.consent_digest == call.args_digest
            assert call.consent_used_at == call.gate_passed_at
            assert call.consent_expires_at is not None
            assert call.gate_passed_at is not None
            assert call.consent_expires_at > call.gate_passed_at

    def _happens(self, call: ToolCall) -> None:
        self.outside.effects.append((call.tool, call.request_id))
        self.journal.append(
            "posted", ts=call.pk, client_msg_id=call.request_id, channel="x", text="x"
        )

    def _keys(self) -> set[str]:
        return {key for _tool, key in self.outside.effects}


@pytest.fixture
def _only_told_time_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is due depends on no clock, and on no machine's speed: the same rules, the same run."""
    for name in ("LEASE_TTL", "CLAIM_TTL", "DRAIN_DEADLINE", "RETRY_BACKOFF"):
        monkeypatch.setattr(conf.settings, name, LONG)
    monkeypatch.setattr(conf.settings, "LOOKUP_HORIZON_SCALE", 0.0)
    monkeypatch.setattr(ledger, "REPORT_GRACE", timedelta(seconds=LONG))


@pytest.mark.timeout(900)
@pytest.mark.usefixtures("transactional_db", "_only_told_time_passes")
def test_the_protocol_holds_in_any_order(owner: User, tmp_path: Path) -> None:
    with registered() as outside:
        policy.sync()
        agent = Agent.objects.create(
            slug="tester", name="T", model="demo:none", tools=[*PLAIN, *ORDER]
        )
        Protocol.steps, Protocol.outside, Protocol.folder = Steps(agent, owner), outside, tmp_path
        run_state_machine_as_test(
            Protocol,
            settings=settings(
                max_examples=EXAMPLES,
                stateful_step_count=STEPS,
                deadline=None,
                database=None,
                derandomize=True,
                phases=[Phase.generate],  # 25 steps can be read; making them fewer takes minutes
                suppress_health_check=list(HealthCheck),
            ),
        )
