"""The driver: streams one turn of a run's model, under a lease, and obeys Stop at once.

Three things go on beside the stream: a doorbell that tells of Stop, a heartbeat that renews the
lease (and learns of Stop if the doorbell was lost), and a publisher that shows text to pages.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any, TypeVar

import structlog
from channels.db import database_sync_to_async
from channels.layers import get_channel_layer
from django.conf import settings
from pydantic_ai.exceptions import AgentRunError, UserError

from agentruns import pausepoints
from agentruns.cancellation import end_all
from agentruns.doorbell import driver_group, run_group
from agentruns.models import Run
from agentruns.planner.history import messages_of, tool_name, tools_of
from agentruns.planner.providers import model_of
from agentruns.planner.stream import Answer, AnswerEnded, CallDelta, CallWritten, TextDelta
from agentruns.protocol.lease import Fragment, Lease, give_back_lease, is_ours, renew_lease
from agentruns.protocol.turn import Proposal, break_turn, finish_turn, propose_call
from agentruns.queries import tokens_of

PUBLISH_EVERY = 0.05  # seconds
KEEP_EVERY = 0.3  # seconds: how much text a killed worker can lose
SILENCE_LIMIT = 60.0  # seconds without a word from the provider

T = TypeVar("T")
log = structlog.get_logger(__name__)


class Driver:
    """One turn of one run. Lives in one event loop. `earlier`: the run's tokens before it."""

    def __init__(self, lease: Lease, answer: Answer, *, earlier: int) -> None:
        self.lease = lease
        self.answer = answer
        self.earlier = earlier
        self.fragment = Fragment()
        self.kept = 0  # characters that the database has
        self.heard_at = 0.0
        self.is_stopped = False
        self.is_silent = False
        self.has_lost_call = False  # Stop came before a call of the answer was on record

    async def drive(self) -> None:
        """Stream the answer to its end, whichever it is, and write that end down."""
        self.heard_at = asyncio.get_running_loop().time()
        helpers = [self._hear_doorbell(), self._heartbeat(), self._publish()]
        tasks = [asyncio.create_task(helper) for helper in helpers]
        try:
            ended = await self._consume()
        except (AgentRunError, UserError, OSError) as error:
            await _reach(self.lease, f"think:{self.lease.turn}:ended")
            await _break_off(self.lease, self.fragment, "provider_failed", str(error))
            return
        finally:
            # What went wrong in a helper has done no harm: the heartbeat or the sweeper does it.
            await end_all(tasks)
            await self._send_tail()
        await _reach(self.lease, f"think:{self.lease.turn}:ended")
        await self._end(ended)

    async def stop(self) -> None:
        """The run is no longer ours to drive: cut the model off."""
        if not self.is_stopped:
            self.is_stopped = True
            await self.answer.stop()

    async def _consume(self) -> AnswerEnded:
        """Take in the answer, and propose its calls; returns its end."""
        async for event in self.answer.events():
            self.heard_at = asyncio.get_running_loop().time()
            match event:
                case TextDelta(text):
                    await self._take_token(text)
                case CallDelta():
                    await self._take_token("")
                case CallWritten():
                    await self._propose(event)
                case AnswerEnded() as ended:
                    # What we counted ourselves stands in for a provider that does not say.
                    tokens_out = ended.tokens_out or self.fragment.tokens_out
                    self.fragment = replace(
                        self.fragment, tokens_in=ended.tokens_in, tokens_out=tokens_out
                    )
                    return ended
        raise AssertionError("an answer has an end")

    async def _end(self, ended: AnswerEnded) -> None:
        # What came to its end in the moment of a Stop, or of our losing patience, is not cut off.
        if ended.is_clean and not self.has_lost_call:
            reason = ended.finish_reason
            if self.is_stopped or not await _in_thread(
                finish_turn, self.lease, self.fragment, reason
            ):
                await _give_back(self.lease, self.fragment, reason)
        elif self.is_stopped:
            await _give_back(self.lease, self.fragment)
        elif self.is_silent:
            await _break_off(self.lease, self.fragment, "provider_silent", "")
        else:
            code = f"answer_{ended.finish_reason or 'broken'}"
            await _break_off(self.lease, self.fragment, code, ended.detail)

    async def _propose(self, written: CallWritten) -> None:
        proposal = Proposal(
            tool=tool_name(written.tool),
            raw_args=written.raw_args,
            provider_call_id=written.provider_call_id,
            offset=written.offset,
        )
        if self.is_stopped or await _in_thread(propose_call, self.lease, proposal) is None:
            self.has_lost_call = True
            await self.stop()

    async def _take_token(self, text: str) -> None:
        """A token of prose, or (no text) of a call."""
        written = self.fragment.tokens_out + 1
        self.fragment = replace(self.fragment, text=self.fragment.text + text, tokens_out=written)
        await _reach(self.lease, f"token:{self.earlier + written}")

    async def _hear_doorbell(self) -> None:
        """Listen for Stop; then ask the database whether it is true."""
        async with _group(driver_group(self.lease.run_id)) as receive:
            # Stop may have been rung before we listened.
            while await _in_thread(_is_still_ours, self.lease):
                await receive()
            await self.stop()

    async def _heartbeat(self) -> None:
        """Renew the lease and keep the text, until the run is no longer ours."""
        loop = asyncio.get_running_loop()
        while not self.is_stopped:
            fragment = self.fragment
            if not await _in_thread(renew_lease, self.lease, fragment):
                await self.stop()
                return
            self.kept = len(fragment.text)
            if loop.time() - self.heard_at > SILENCE_LIMIT:
                self.is_silent = True
                await self.answer.stop()
                return
            await asyncio.sleep(min(KEEP_EVERY, settings.LEASE_TTL / 3))

    async def _publish(self) -> None:
        """Show new text to every open page, a few times a second."""
        shown = 0
        while True:
            if len(self.fragment.text) > shown:
                shown = len(self.fragment.text)
                await self._send_tail()
            await asyncio.sleep(PUBLISH_EVERY)

    async def _send_tail(self) -> None:
        """The text since what the database has: whoever read that can put the two together."""
        message = {
            "type": "run.text",
            "output": self.lease.output_id,
            "offset": self.kept,
            "text": self.fragment.text[self.kept :],
        }
        with contextlib.suppress(Exception):  # pages look into the database by themselves
            await asyncio.wait_for(_layer().group_send(run_group(self.lease.run_id), message), 1)


async def drive_turn(lease: Lease) -> None:
    """Stream the leased turn. Every end of it is on record when this returns."""
    run, messages, tools, earlier = await _in_thread(_brief, lease.run_id)
    try:
        model = model_of(run.agent.model)
    except (UserError, ValueError, ImportError) as error:
        await _break_off(lease, Fragment(), "model_unknown", str(error))
        return
    async with model:
        answer = Answer(model, messages, tools, lease.run_id)
        await Driver(lease, answer, earlier=earlier).drive()


def _brief(run_id: str) -> tuple[Run, list[Any], list[Any], int]:
    run = Run.objects.select_related("agent").get(pk=run_id)
    return run, messages_of(run), tools_of(run), tokens_of(run)


def _is_still_ours(lease: Lease) -> bool:
    return is_ours(Run.objects.get(pk=lease.run_id), lease)


async def _break_off(lease: Lease, fragment: Fragment, code: str, detail: str) -> None:
    """The answer did not end cleanly. If Stop came first, the turn has ended by that."""
    if not await _in_thread(break_turn, lease, fragment, code, detail):
        await _give_back(lease, fragment)


async def _give_back(lease: Lease, fragment: Fragment, finish_reason: str = "") -> None:
    """Stop came first: the driver says that nothing streams any more."""
    await _reach(lease, "drain:lease")
    await _in_thread(give_back_lease, lease, fragment, finish_reason)


async def _reach(lease: Lease, point: str) -> None:
    if pausepoints.is_on():
        await asyncio.to_thread(pausepoints.reach, lease.run_id, point)


async def _in_thread(function: Callable[..., T], *args: Any) -> T:
    result: T = await database_sync_to_async(function, thread_sensitive=False)(*args)
    return result


def _layer() -> Any:
    return get_channel_layer()


@contextlib.asynccontextmanager
async def _group(name: str) -> AsyncIterator[Callable[[], Any]]:
    """Join a channel group; yields a `receive` that outlives a Redis that is away."""
    layer = _layer()
    channel = await layer.new_channel()
    try:
        await layer.group_add(name, channel)
        yield lambda: layer.receive(channel)
    finally:
        with contextlib.suppress(Exception):
            await layer.group_discard(name, channel)
