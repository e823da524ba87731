"""One streamed answer of a model, as a few kinds of events, and a way to cut it off.

Guarantees that `stop` closes the provider's connection at once, also before the first token, and
that a call is only reported whole if the model went on after it or the answer ended cleanly.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass

from pydantic_ai.direct import model_request_stream
from pydantic_ai.exceptions import AgentRunError, ModelAPIError, UserError
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartEndEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ToolCallPart,
    ToolCallPartDelta,
)
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from tools.storable import storable

# Why an answer ended that is whole. Any other reason means that something of it is missing.
CLEAN_REASONS = ("stop", "tool_call")


@dataclass(frozen=True)
class TextDelta:
    text: str


@dataclass(frozen=True)
class CallDelta:
    """A piece of a call that is being written. Nothing to act on: half a call is none."""


@dataclass(frozen=True)
class CallWritten:
    """A call as written. `is_whole`: the model went on to something else after it. The last one
    of an answer is whole only if the answer ended cleanly: a cut leaves half a call here.
    """

    tool: str
    raw_args: str
    provider_call_id: str
    is_whole: bool


@dataclass(frozen=True)
class AnswerEnded:
    """`state` is pydantic-ai's word: complete, interrupted (by us) or incomplete (broken)."""

    finish_reason: str
    state: str
    tokens_in: int
    tokens_out: int

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
        try:
            async for event in stream:
                if translated := _translate(event):
                    yield translated
        except ModelAPIError:
            # Our own cancel surfaces as a connection error while a chunk is being waited for.
            if not stream.cancelled:
                raise
        except Exception as error:
            if not stream.cancelled:
                raise self._failed(error) from error
        finally:
            await self._request.__aexit__(None, None, None)
        yield _end_of(stream)

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
    settings = {
        "extra_headers": {"X-Agentruns-Run": run_id},
        # Usage in every chunk: exact after a stop, too. Other providers ignore it.
        "openai_continuous_usage_stats": True,
    }
    return ModelSettings(**settings)  # type: ignore[typeddict-item]


def _translate(event: ModelResponseStreamEvent) -> Event | None:
    match event:
        case PartStartEvent(part=TextPart(content=text)) if text:
            return TextDelta(storable(text))
        case PartDeltaEvent(delta=TextPartDelta(content_delta=text)) if text:
            return TextDelta(storable(text))
        case PartStartEvent(part=ToolCallPart()) | PartDeltaEvent(delta=ToolCallPartDelta()):
            return CallDelta()
        case PartEndEvent(part=ToolCallPart() as part, next_part_kind=following):
            # The raw text: the parsing helpers turn broken JSON into a valid object.
            raw = part.args if isinstance(part.args, str) else json.dumps(part.args or {})
            tool, raw, call_id = storable([part.tool_name, raw, part.tool_call_id])
            return CallWritten(tool, raw, call_id, following is not None)
    return None


def _end_of(stream: StreamedResponse) -> AnswerEnded:
    response = stream.get()
    return AnswerEnded(
        finish_reason=response.finish_reason or "",
        state=response.state,
        tokens_in=response.usage.input_tokens,
        tokens_out=response.usage.output_tokens,
    )
