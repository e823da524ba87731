"""One streamed answer of a model, as a few kinds of events, and a way to cut it off.

Guarantees that `stop` closes the provider's connection at once, also before the first token; that
a call is reported once all of it is there, and none of an answer that broke off; that an answer
counts as clean only if its provider said so; and that none is longer than the setting allows.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass

from django.conf import settings
from pydantic_ai.direct import model_request_stream
from pydantic_ai.exceptions import AgentRunError, ModelAPIError, UserError
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPart,
    ToolCallPartDelta,
)
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from agentruns.planner.calls import Call, Calls, Malformed
from tools import texts
from tools.storable import storable

# Why an answer ended that is whole. Any other reason means that something of it is missing.
CLEAN_REASONS = ("stop", "tool_call")
TOO_LONG, MALFORMED = "length", "malformed"  # by our own judgement

MOST_CALLS = 200  # of one answer


@dataclass(frozen=True)
class TextDelta:
    text: str


@dataclass(frozen=True)
class CallDelta:
    """A piece of a call that is being written. Nothing to act on: half a call is none."""


@dataclass(frozen=True)
class CallWritten:
    """A call as the model wrote it, all of it. `offset`: its place in the answer's text."""

    tool: str
    raw_args: str
    provider_call_id: str
    offset: int


@dataclass(frozen=True)
class AnswerEnded:
    """`state` is pydantic-ai's word: complete, interrupted (by us) or incomplete (broken).
    `finish_reason` is the provider's, "" if it gave none, or our own for what we cut off.
    """

    finish_reason: str
    state: str
    tokens_in: int
    tokens_out: int
    detail: str = ""

    @property
    def is_clean(self) -> bool:
        return self.state == "complete" and self.finish_reason in CLEAN_REASONS


Event = TextDelta | CallDelta | CallWritten | AnswerEnded


class Answer:
    """One answer. `stop()` may be called from any task of the same event loop, at any moment."""

    def __init__(
        self, model: Model, messages: list[ModelMessage], tools: list[ToolDefinition], run_id: str
    ) -> None:
        self._task: asyncio.Task[object] | None = None
        self._stream: StreamedResponse | None = None
        self._is_stopped = False
        self._model = model.model_name
        self._calls = Calls(tool.name for tool in tools)
        self._size = 0  # characters of prose and thought
        self._request = model_request_stream(
            model,
            messages,
            model_settings=_settings(run_id),
            model_request_parameters=ModelRequestParameters(function_tools=tools),
        )

    async def stop(self) -> None:
        """Close the provider's connection; `events` then ends."""
        self._is_stopped = True
        if self._stream is not None:
            await self._stream.cancel()
        elif self._task is not None:
            # Before the first token there is no stream yet, only the wait for one.
            self._task.cancel()

    async def events(self) -> AsyncIterator[Event]:
        """Text, calls, and one end. Raises ModelAPIError if the provider fails, breaks off, or
        sends what nobody can read.
        """
        stream = await self._opened()
        if stream is None:
            yield AnswerEnded("", "interrupted", 0, 0)
            return
        ended: AnswerEnded | None = None
        rest: list[Call] = []
        self._calls.watch(stream)
        try:
            async for event in stream:
                for each in self._translated(event):
                    yield each
                if self._is_too_long:
                    await stream.cancel()
                    ended = _end_of(stream, TOO_LONG)
                    break
            ended = ended or _end_of(stream)
            rest = self._calls.rest() if ended.is_clean else []
        except Malformed as error:
            ended = _end_of(stream, MALFORMED, str(error))
        except ModelAPIError:
            # Our own cancel surfaces as a connection error while a chunk is being waited for.
            if not stream.cancelled:
                raise
        except Exception as error:
            if not stream.cancelled:
                raise self._failed(error) from error
        finally:
            await self._request.__aexit__(None, None, None)
        for call in rest:
            yield _written(call)
        yield ended or _end_of(stream)

    def _translated(self, event: ModelResponseStreamEvent) -> Iterator[Event]:
        """The event in our words, and whatever calls are whole by it."""
        match event:
            case PartStartEvent(part=TextPart(content=text)) if text:
                yield self._prose(text)
            case PartDeltaEvent(delta=TextPartDelta(content_delta=text)) if text:
                yield self._prose(text)
            case PartStartEvent(part=ThinkingPart(content=thought)):
                self._thought(thought)
            case PartDeltaEvent(delta=ThinkingPartDelta(content_delta=thought)):
                self._thought(thought or "")
            case PartStartEvent(part=ToolCallPart()) | PartDeltaEvent(delta=ToolCallPartDelta()):
                yield CallDelta()
        for call in self._calls.ready():
            yield _written(call)

    def _prose(self, text: str) -> TextDelta:
        """The text as far as there is room for it."""
        room = max(0, settings.ANSWER_MAX_CHARACTERS - self._size - self._calls.size)
        self._size += len(text)
        kept = storable(text[:room])
        self._calls.go_on_to(kept)
        return TextDelta(kept)

    def _thought(self, text: str) -> None:
        self._size += len(text)
        self._calls.go_on_to("")

    @property
    def _is_too_long(self) -> bool:
        size = self._size + self._calls.size
        return size > settings.ANSWER_MAX_CHARACTERS or len(self._calls) > MOST_CALLS

    async def _opened(self) -> StreamedResponse | None:
        """The stream once its first chunk is there; None if it was stopped before that."""
        if self._is_stopped:
            return None
        task = self._task = asyncio.current_task()
        try:
            self._stream = await self._request.__aenter__()
        except asyncio.CancelledError:
            if not self._is_stopped or task is None:
                raise  # somebody else's cancellation, such as the worker's shutdown
            task.uncancel()
            return None
        except Exception as error:
            raise self._failed(error) from error
        finally:
            # The wait is over. Who stops now must not cancel what comes after it: a helper may take
            # the end that is just being written down for a Stop.
            self._task = None
        return self._stream

    def _failed(self, error: Exception) -> Exception:
        """The error in pydantic-ai's words; it translates what an HTTP client raises, and leaves
        what its parsers raise as it is.
        """
        if isinstance(error, AgentRunError | UserError):
            return error
        return ModelAPIError(self._model, f"{type(error).__name__}: {error}")


def _settings(run_id: str) -> ModelSettings:
    wanted = {
        "extra_headers": {"X-Agentruns-Run": run_id},
        # Usage in every chunk: exact after a stop, too. Other providers ignore it.
        "openai_continuous_usage_stats": True,
    }
    return ModelSettings(**wanted)  # type: ignore[typeddict-item]


def _written(call: Call) -> CallWritten:
    """The call with its raw text: parsing helpers turn broken JSON into a valid object."""
    name = texts.cut(call.name, texts.LONGEST_NAME)
    raw = "" if call.is_blank else call.text
    tool, raw, call_id = storable([name, raw, call.call_id])
    return CallWritten(tool, raw, call_id, call.offset)


def _end_of(stream: StreamedResponse, cut: str = "", detail: str = "") -> AnswerEnded:
    """How it ended. pydantic-ai makes up a reason for some providers that give none, and keeps
    the word of those that do: without that one, the answer just broke off.
    """
    response = stream.get()
    has_said_so = bool((response.provider_details or {}).get("finish_reason"))
    return AnswerEnded(
        finish_reason=cut or (response.finish_reason or "" if has_said_so else ""),
        state=response.state,
        tokens_in=response.usage.input_tokens,
        tokens_out=response.usage.output_tokens,
        detail=detail,
    )
