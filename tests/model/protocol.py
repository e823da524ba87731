"""The protocol's verbs on the model's rows: each method is one transaction of the code, or a
question that one asks. The breaks (breaks.py) override single methods, so each guard that is
worth breaking has a method of its own.

Left out is what only ever refuses more: grants, tools that are switched off, budgets, duplicates,
digests, and the triggers of the database. The model does without them and must hold all the same,
so the code, which has them too, holds behind a second door. Left out as well: child runs, the
items of a batch, and undo. What one run's calls do to each other is the same without them.
"""

from agentruns.states import ACTIVE_RUN, CALL, FINISHED_RUN, NOT_YET_IN_FLIGHT, STOPPING_RUN
from tests.model.rows import (
    APPROVAL,
    APPROVED,
    AWAITING,
    BUFFERED,
    CANCEL_REQUESTED,
    CLAIMED,
    COMPLETE,
    DEPENDENCY,
    DRAINING,
    DRIVING,
    FAILED,
    FREE,
    FROZEN,
    IDLE,
    IN_DOUBT,
    IN_FLIGHT,
    LANDED,
    LET_THROUGH,
    PAUSED,
    QUEUED,
    READY,
    RUNNING,
    SENT,
    STOPPED_CLEAN,
    STOPPED_DIRTY,
    STREAMING,
    SUSPENDED,
    Call,
    Transaction,
)
from tests.model.scopes import Scope

BEGUN = (IN_FLIGHT, IN_DOUBT, LANDED)


class Protocol:
    """The protocol as it is meant."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope

    # --- advance.py ---------------------------------------------------------------------------
    def open_calls(self, tx: Transaction) -> list[int]:
        return [n for n, call in enumerate(tx.calls) if call.state not in CALL.terminal]

    def is_next(self, tx: Transaction, n: int) -> bool:
        return tx.calls[n].is_read or not any(
            other < n and not tx.calls[other].is_read for other in self.open_calls(tx)
        )

    def advance(self, tx: Transaction) -> None:
        run = tx.run
        if run.status not in (RUNNING, SUSPENDED) or run.lease != FREE or run.reason == PAUSED:
            return
        candidates = {tx.calls[n].state for n in self.open_calls(tx) if self.is_next(tx, n)}
        if not candidates:
            self._next_turn(tx)
        elif candidates <= {IN_DOUBT, AWAITING}:
            self._suspend(tx, DEPENDENCY if IN_DOUBT in candidates else APPROVAL)
        else:
            self._wake(tx)

    def _next_turn(self, tx: Transaction) -> None:
        self._wake(tx)
        asked = any(call.turn == tx.run.turn for call in tx.calls)
        if tx.run.text == COMPLETE and not asked:
            tx.move_run("complete")

    def _suspend(self, tx: Transaction, reason: str) -> None:
        if tx.run.reason != reason:
            self._wake(tx)
            tx.move_run("suspend", reason=reason)

    def _wake(self, tx: Transaction) -> None:
        if tx.run.status == SUSPENDED:
            tx.move_run("unsuspend", reason="")

    # --- lease.py -----------------------------------------------------------------------------
    def holds_lease(self, tx: Transaction, i: int) -> bool:
        """A holder is fresh for each claim: in the model, a worker drives one turn at a time and
        forgets it when it dies, so its number will do.
        """
        return tx.run.lease == i

    def is_ours(self, tx: Transaction, i: int) -> bool:
        is_of_now = tx.run.epoch == tx.workers[i].epoch
        return tx.run.status in ACTIVE_RUN and is_of_now and self.holds_lease(tx, i)

    def may_take_lease(self, tx: Transaction) -> bool:
        run = tx.run
        is_due = run.status in (QUEUED, RUNNING) and run.lease == FREE
        return is_due and not self.open_calls(tx)

    def take_lease(self, tx: Transaction, i: int) -> None:
        if tx.run.turn >= self.scope.turns:
            tx.move_run("fail")
            return
        if tx.run.status == QUEUED:
            tx.move_run("begin")
        tx.save_run(turn=tx.run.turn + 1, lease=i, text=STREAMING)
        tx.becomes(i, DRIVING, epoch=tx.run.epoch)

    def give_back_lease(self, tx: Transaction, i: int) -> None:
        if self.holds_lease(tx, i):
            tx.move_text("cut")
            tx.save_run(lease=FREE)
            self.begin_drain(tx)
        tx.becomes(i, IDLE)

    def take_away_lease(self, tx: Transaction) -> None:
        for i, worker in enumerate(tx.workers):
            if worker.task == DRIVING and tx.run.lease == i:
                tx.workers[i] = worker._replace(is_fenced=True)
        tx.move_text("cut")
        tx.save_run(lease=FREE)
        if tx.run.status in STOPPING_RUN:
            self.begin_drain(tx)
        else:
            tx.save_run(epoch=tx.run.epoch + 1)
            self.drop_turn(tx)
            self.advance(tx)

    def drop_turn(self, tx: Transaction) -> None:
        for n, call in enumerate(tx.calls):
            if call.turn == tx.run.turn and call.state in NOT_YET_IN_FLIGHT:
                tx.move_call(n, "void")

    # --- turn.py ------------------------------------------------------------------------------
    def propose_call(self, tx: Transaction) -> None:
        tool = self.scope.tools[len(tx.calls)]
        tx.calls.append(Call(is_read=tool.is_read, epoch=tx.run.epoch, turn=tx.run.turn))
        tx.move_call(len(tx.calls) - 1, "approve" if tool.is_read else "buffer")

    def finish_turn(self, tx: Transaction, i: int) -> None:
        tx.move_text("finish")
        tx.save_run(lease=FREE)
        for n, call in enumerate(tx.calls):
            if call.state == BUFFERED:
                tx.move_call(n, "ask" if self.scope.tools[n].needs_consent else "approve")
        self.advance(tx)
        tx.becomes(i, IDLE)

    def break_turn(self, tx: Transaction, i: int) -> None:
        tx.move_text("cut")
        self.drop_turn(tx)
        tx.move_run("fail", lease=FREE, reason="")
        tx.becomes(i, IDLE)

    # --- gate.py ------------------------------------------------------------------------------
    def may_claim(self, tx: Transaction, n: int) -> bool:
        if tx.calls[n].state not in READY:
            return False
        return self.may_finish(tx, n) or (tx.run.status == RUNNING and self.is_next(tx, n))

    def claim_call(self, tx: Transaction, n: int, i: int) -> None:
        tx.save_call(n, claim=i)
        tx.becomes(i, CLAIMED, n)

    def is_running(self, tx: Transaction) -> bool:
        return tx.run.status == RUNNING

    def is_of_this_epoch(self, tx: Transaction, n: int) -> bool:
        return tx.calls[n].epoch == tx.run.epoch

    def is_claimed_by(self, tx: Transaction, n: int, i: int) -> bool:
        return tx.calls[n].claim == i and tx.calls[n].state in READY

    def keep_draft(self, tx: Transaction, i: int) -> None:
        n = tx.workers[i].call
        if not self.is_claimed_by(tx, n, i):
            tx.becomes(i, IDLE)
        else:
            tx.move_call(n, "prepare")

    def pass_gate(self, tx: Transaction, i: int) -> None:
        n = tx.workers[i].call
        is_ours, finishes = self.is_claimed_by(tx, n, i), self.may_finish(tx, n)
        has_authority = finishes or (self.is_running(tx) and self.is_of_this_epoch(tx, n))
        if is_ours and has_authority and self.is_whole(tx, n):
            tx.move_call(n, "pass_gate", is_overdue=False, is_past=False)
            tx.becomes(i, LET_THROUGH, n)
            return
        tx.becomes(i, IDLE)
        if is_ours and tx.run.reason == PAUSED:
            tx.save_call(n, claim=FREE)
        elif is_ours and (finishes or tx.run.status in ACTIVE_RUN):
            tx.move_call(n, "deny")
            self.break_up(tx, n)
            self._go_on(tx)

    # --- units.py: at most one unit, and its steps are all the calls there are ------------------
    def has_begun(self, tx: Transaction) -> bool:
        return self.scope.is_unit and any(call.state in BEGUN for call in tx.calls)

    def may_finish(self, tx: Transaction, n: int) -> bool:
        """The next step of a unit that had begun when the run was stopped."""
        is_of_then = tx.run.status in STOPPING_RUN and tx.calls[n].epoch == tx.run.epoch - 1
        return self.scope.is_unit and is_of_then and n > 0 and self.has_its_turn(tx, n)

    def has_its_turn(self, tx: Transaction, n: int) -> bool:
        return all(call.state == LANDED for call in tx.calls[:n])

    def is_whole(self, tx: Transaction, n: int) -> bool:
        if not self.scope.is_unit:
            return True
        if len({call.turn for call in tx.calls}) > 1 or len(tx.calls) < len(self.scope.tools):
            return False
        return self.has_its_turn(tx, n) and all(call.state in READY for call in tx.calls[n:])

    def break_up(self, tx: Transaction, n: int) -> None:
        for mate in range(n + 1, len(tx.calls) if self.scope.is_unit else 0):
            if tx.calls[mate].state in (*NOT_YET_IN_FLIGHT, FROZEN):
                tx.move_call(mate, "void")

    def freeze_unfinished(self, tx: Transaction) -> None:
        """The drain's deadline, which may be any moment after a stop."""
        self.drop_waiting(tx, "freeze")
        self.settle(tx)

    # --- execute.py ---------------------------------------------------------------------------
    def is_in_time(self, tx: Transaction, n: int) -> bool:
        """Send at once or not at all: the window is shorter than the call's own time."""
        return not tx.calls[n].is_overdue

    def send(self, tx: Transaction, i: int) -> None:
        n = tx.workers[i].call
        tx.save_call(n, under_way=tx.calls[n].under_way + 1)
        tx.becomes(i, SENT, n)

    # --- outcome.py ---------------------------------------------------------------------------
    def is_keyed(self, tx: Transaction, n: int, i: int) -> bool:
        """Outcomes are keyed by the claim, not by the epoch: truth may come late."""
        return tx.calls[n].claim == i

    def record_landed(self, tx: Transaction, i: int) -> None:
        n = tx.workers[i].call
        tx.becomes(i, IDLE)
        if self.is_keyed(tx, n, i):
            self.land(tx, n)

    def record_failed(self, tx: Transaction, i: int) -> None:
        n = tx.workers[i].call
        tx.becomes(i, IDLE)
        if self.is_keyed(tx, n, i):
            self.fail(tx, n)

    def record_postponed(self, tx: Transaction, i: int) -> None:
        n = tx.workers[i].call
        tx.becomes(i, IDLE)
        if not self.is_keyed(tx, n, i):
            return
        if tx.calls[n].state in (APPROVED, IN_FLIGHT) and self.may_try_again(tx, n):
            tx.move_call(n, "postpone", claim=FREE, attempts=tx.calls[n].attempts + 1)
            self.advance(tx)
        else:
            self.fail(tx, n)

    def may_try_again(self, tx: Transaction, n: int) -> bool:
        has_attempts = tx.calls[n].attempts + 1 < self.scope.attempts
        return has_attempts and (self.may_still_act(tx, n) or self.may_finish(tx, n))

    def may_still_act(self, tx: Transaction, n: int) -> bool:
        return tx.run.status in ACTIVE_RUN and tx.calls[n].epoch == tx.run.epoch

    def record_doubt(self, tx: Transaction, i: int) -> None:
        n = tx.workers[i].call
        tx.becomes(i, IDLE)
        if self.is_keyed(tx, n, i):
            self.doubt(tx, n)

    def land(self, tx: Transaction, n: int) -> None:
        state = tx.calls[n].state
        if state in (IN_FLIGHT, IN_DOUBT):
            tx.move_call(n, "land")
        elif state == FAILED and not tx.calls[n].is_read:
            tx.move_call(n, "contradict")
        self._go_on(tx)

    def fail(self, tx: Transaction, n: int) -> None:
        if tx.calls[n].state in (*READY, IN_FLIGHT, IN_DOUBT):
            tx.move_call(n, "fail")
            self.break_up(tx, n)
            self._go_on(tx)

    def doubt(self, tx: Transaction, n: int) -> None:
        if tx.calls[n].state == IN_FLIGHT:
            if tx.calls[n].is_read:
                self.fail(tx, n)
            else:
                tx.move_call(n, "doubt")
                self._go_on(tx)

    def _go_on(self, tx: Transaction) -> None:
        self.settle(tx)
        self.advance(tx)

    # --- doubt.py -----------------------------------------------------------------------------
    def is_final(self, call: Call) -> bool:
        """“It is not there” is an answer only once the outside is past acting on a request."""
        return call.is_past

    def record_lookup(self, tx: Transaction, i: int, *, is_found: bool) -> None:
        n = tx.workers[i].call
        tx.becomes(i, IDLE)
        if is_found:
            self.land(tx, n)
        elif tx.calls[n].state == IN_DOUBT:
            self.fail(tx, n)

    def answer(self, tx: Transaction, n: int, *, happened: bool) -> None:
        tx.save_call(n, is_answered=True)
        if happened:
            self.land(tx, n)
        else:
            self.fail(tx, n)

    def may_expire_call(self, tx: Transaction, n: int) -> bool:
        """At its own deadline, or at the drain's, which may be any moment after a stop."""
        call = tx.calls[n]
        is_cut_short = tx.run.status in STOPPING_RUN and not self.scope.is_unit
        return call.state == IN_FLIGHT and (call.is_read or call.is_overdue or is_cut_short)

    # --- drain.py -----------------------------------------------------------------------------
    def has_driver(self, tx: Transaction) -> bool:
        return tx.run.lease != FREE

    def begin_drain(self, tx: Transaction) -> None:
        if tx.run.status == CANCEL_REQUESTED and not self.has_driver(tx):
            tx.move_run("drain")
        self.settle(tx)

    def is_in_flight(self, tx: Transaction) -> bool:
        return any(call.state == IN_FLIGHT for call in tx.calls)

    def has_unfinished(self, tx: Transaction) -> bool:
        """Whether a begun unit has steps that are yet to go."""
        return self.has_begun(tx) and any(call.state in NOT_YET_IN_FLIGHT for call in tx.calls)

    def settle(self, tx: Transaction) -> None:
        has_doubt = any(call.state == IN_DOUBT for call in tx.calls)
        if tx.run.status == DRAINING and not self.is_in_flight(tx) and not self.has_unfinished(tx):
            tx.move_run("settle_dirty" if has_doubt else "settle_clean")
        elif tx.run.status == STOPPED_DIRTY and not has_doubt:
            tx.move_run("reconcile")

    # --- stop.py, pause.py, resume.py, consent.py -----------------------------------------------
    def is_stop_known(self, tx: Transaction) -> bool:
        return tx.run.epoch in tx.run.stops

    def request_stop(self, tx: Transaction, *, verb: str) -> None:
        """`verb`: what becomes of calls that have not started, void or freeze."""
        run = tx.run
        if self.is_stop_known(tx):
            return
        if run.status in FINISHED_RUN:
            tx.save_run(stops=(*run.stops, run.epoch))
            return
        epoch = run.epoch + 1
        tx.move_run("request_cancel", epoch=epoch, reason="", stops=(*run.stops, epoch))
        if not self.has_begun(tx):
            self.drop_waiting(tx, verb)
        self.begin_drain(tx)

    def drop_waiting(self, tx: Transaction, verb: str) -> None:
        for n, call in enumerate(tx.calls):
            if call.state in NOT_YET_IN_FLIGHT:
                tx.move_call(n, verb)

    def pause_run(self, tx: Transaction) -> None:
        tx.move_run("suspend", reason=PAUSED)

    def unpause_run(self, tx: Transaction) -> None:
        if tx.run.turn == 0:
            tx.move_run("wait_again", reason="")
        else:
            tx.move_run("unsuspend", reason="")
            self.advance(tx)

    def resume_run(self, tx: Transaction, *, verb: str) -> None:
        """`verb`: what becomes of frozen calls, approve (release) or void."""
        assert tx.run.status == STOPPED_CLEAN
        tx.move_run("requeue", epoch=tx.run.epoch + 1, is_resumed=True)
        frozen = [n for n, call in enumerate(tx.calls) if call.state == FROZEN]
        for n in frozen:
            is_released = verb == "approve" and self.was_whole(tx)
            if is_released and not self.scope.tools[n].needs_consent:
                tx.move_call(n, "approve", epoch=tx.run.epoch)
            else:
                tx.move_call(n, "void")
        if self.open_calls(tx):
            tx.move_run("begin")
            self.advance(tx)

    def was_whole(self, tx: Transaction) -> bool:
        """An answer that was cut off asks for nothing. What is frozen is of the latest turn."""
        return tx.run.text == COMPLETE

    def decide(self, tx: Transaction, n: int, *, verb: str) -> None:
        """`verb`: approve or reject by a person, or expire by the sweeper."""
        tx.move_call(n, verb)
        self.advance(tx)
