"""Which call each piece of an answer belongs to, and from when on a call is whole.

Providers and gateways number the calls of one answer in many ways: by an index, by an id on every
piece or on the first alone, by neither, or all of them alike. Guarantees that a call has the name
and the arguments that the model wrote for it: what cannot be told apart for certain is refused.
"""

import json
from collections.abc import AsyncIterator, Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from pydantic_ai.models import StreamedResponse


class Malformed(Exception):
    """The provider broke its own format: what the model asked for cannot be told for certain."""


@dataclass(eq=False)
class Call:
    """A call as far as it is written. `slot`: what the provider numbers it by; others may have the
    same. `key`: what pydantic-ai is told to number it by. `offset`: its place in the answer's text.
    `final`: its arguments, if the provider spelt them out again when it closed the call; "" if it
    only closed it, None if it has not.
    """

    slot: Hashable
    key: Hashable
    number: int
    call_id: str
    name: str
    offset: int
    final: str | None = None
    is_named_twice: bool = False  # before its arguments
    is_said_again: bool = False  # its name came once more, after its arguments
    is_whole: bool = False  # its text is a JSON object, to which nothing can be added
    _pieces: list[str] = field(default_factory=list)
    _depth: int = 0
    _is_quoted: bool = False
    _is_escaped: bool = False
    _is_odd: bool = False  # no JSON object can come of its text

    @property
    def text(self) -> str:
        return "".join(self._pieces)

    @property
    def is_blank(self) -> bool:
        return not self.text.strip()

    def add(self, text: str) -> None:
        """A further piece of its arguments."""
        self._pieces.append(text)
        for sign in text:
            self._read(sign)

    def _read(self, sign: str) -> None:
        # Braces are counted, so that a long text is parsed once and not for each of its pieces.
        if self._is_quoted:
            self._is_quoted = self._is_escaped or sign != '"'
            self._is_escaped = sign == "\\" and not self._is_escaped
        elif not self._depth and not sign.isspace():
            self._is_odd = self._is_odd or self.is_whole or sign != "{"
            self._depth = 0 if self._is_odd else 1
        elif sign == '"':
            self._is_quoted = True
        elif sign in "{}":
            self._depth += 1 if sign == "{" else -1
            self.is_whole = not self._depth and _is_object(self.text)
            self._is_odd = not self._depth and not self.is_whole
        if self._is_odd:
            self.is_whole = False


class Calls:
    """The calls of one answer. `offered`: the names of the tools that the model was told of."""

    def __init__(self, offered: Iterable[str]) -> None:
        self.size = 0  # characters of all names and arguments
        self._offered = frozenset(offered)
        self._calls: list[Call] = []
        self._handed_out = 0
        self._text_size = 0
        self._is_followed = False  # prose came after the last call
        self._says_closed = False  # its format has a sign for the end of each call
        self._finals: dict[Hashable, str] = {}

    def __len__(self) -> int:
        return len(self._calls)

    def watch(self, stream: StreamedResponse) -> None:
        """See each piece before pydantic-ai puts the pieces together, which it does by the
        provider's numbers alone; and each event of the wire that closes a call.
        """
        manager = stream._parts_manager
        go_on, begin = manager.handle_tool_call_delta, manager.handle_tool_call_part

        def delta(
            *,
            vendor_part_id: Hashable,
            tool_name: str | None = None,
            args: Any = None,
            tool_call_id: str | None = None,
            **more: Any,
        ) -> Any:
            known = len(self._calls)
            call = self._take(vendor_part_id, tool_name or "", _text(args), tool_call_id or "")
            if call is None:
                return None
            if len(self._calls) > known:
                more |= {"tool_name": call.name, "tool_call_id": tool_call_id}
            return go_on(vendor_part_id=call.key, args=args, **more)

        def part(*, vendor_part_id: Hashable, tool_name: str, args: Any, **more: Any) -> Any:
            if vendor_part_id is None or self._in(vendor_part_id):
                raise Malformed("two calls under one id")
            self._says_closed = True
            self._take(vendor_part_id, tool_name, _text(args), more.get("tool_call_id") or "")
            self._calls[-1].key = vendor_part_id  # the one that it will be asked for by
            return begin(vendor_part_id=vendor_part_id, tool_name=tool_name, args=args, **more)

        manager.handle_tool_call_delta = delta  # type: ignore[method-assign]
        manager.handle_tool_call_part = part  # type: ignore[method-assign]
        if (source := getattr(stream, "_response", None)) is not None:
            stream._response = _Shown(source, self._note)  # type: ignore[attr-defined]

    def go_on_to(self, text: str) -> None:
        """The model goes on to something else than a call: to this text, if any is shown."""
        self._text_size += len(text)
        self._is_followed = True

    def ready(self) -> Iterator[Call]:
        """The calls that are whole by now, each once, in the order in which they were begun.

        Where the format says that a call is closed, that decides. Where it does not: a JSON object
        that is complete can have no more pieces, and the model has gone on to something else.
        """
        while self._handed_out < len(self._calls):
            call = self._calls[self._handed_out]
            has_gone_on = self._is_followed or call is not self._calls[-1]
            if self._says_closed:
                is_ready = call.final is not None and (call.is_whole or call.is_blank)
            else:
                is_ready = call.is_whole and has_gone_on
            if not is_ready:
                return
            _must_agree(call)
            self._handed_out += 1
            yield call

    def rest(self) -> list[Call]:
        """The other calls of an answer that ended cleanly. Arguments of which nothing was written
        are none, if it is certain that they were not taken for another call's.
        """
        for call in self._calls:
            is_alone = len(self._in(call.slot)) == 1 and not (self._says_closed and call.is_blank)
            if not (call.is_whole or call.final is not None or is_alone):
                raise Malformed(f"it is not certain which arguments “{call.name[:60]}” has")
            _must_agree(call)
        return self._calls[self._handed_out :]

    def _take(self, slot: Hashable, name: str, text: str, call_id: str) -> Call | None:
        """Add a piece to its call, or begin one; None for a piece that says nothing."""
        self.size += len(name) + len(text)
        call = self._call_of(slot, name, text, call_id)
        if call is None:
            if not name:
                return None
            call = self._begun(slot, name, call_id)
        elif self._is_another(call, name, text, call_id):
            call = self._begun(slot, name or call.name, call_id)
        elif name and not call.is_whole:
            self._name_again(call, name)
        elif text and call.is_named_twice and not call.call_id:
            raise Malformed("arguments of one of two calls with the same name")
        call.add(text)
        if call.number < self._handed_out and text.strip():
            raise Malformed(f"more arguments of “{call.name[:60]}”, which were complete")
        return call

    def _call_of(self, slot: Hashable, name: str, text: str, call_id: str) -> Call | None:
        """The call that a piece is of by its numbers; None if they are new."""
        own = self._in(slot)
        named = [call for call in own or self._calls if call_id and call.call_id == call_id]
        if name and not own:
            if any(not call.is_whole for call in named):
                raise Malformed("two calls under one id")
            return None
        candidates = named or own
        if not candidates:
            if text:
                raise Malformed("a piece of no call")
            return None
        is_beginning = name and call_id and not named
        if not is_beginning and any(not call.is_whole for call in candidates[:-1]):
            raise Malformed("a piece that may be of several calls")
        return candidates[-1]

    def _is_another(self, call: Call, name: str, text: str, call_id: str) -> bool:
        """Whether a piece with the same numbers begins another call all the same."""
        if name and call_id and call.call_id and call_id != call.call_id:
            return True
        if not call.is_whole:
            return False
        has_text = bool(text.strip())
        if name == call.name and not has_text:
            # Its name once more, or the beginning of another one's: what follows tells.
            call.is_said_again = True
            return False
        return bool(name) or (has_text and call.is_said_again)

    def _name_again(self, call: Call, name: str) -> None:
        """A name that comes again is repeated, or comes in pieces."""
        whole = call.name + name
        goes_on = call.is_blank and any(each.startswith(whole) for each in self._offered)
        if goes_on and {call.name, name} <= self._offered:
            raise Malformed("a name, or two calls under one number")
        if goes_on:
            call.name = whole
        elif name != call.name:
            raise Malformed("two names of one call")
        call.is_named_twice = call.is_blank and not goes_on

    def _begun(self, slot: Hashable, name: str, call_id: str) -> Call:
        number = len(self._calls)
        call = Call(slot, ("call", number), number, call_id, name, self._text_size)
        call.final = self._finals.get(slot)
        self._calls.append(call)
        self._is_followed = False
        return call

    def _in(self, slot: Hashable) -> list[Call]:
        return [call for call in self._calls if call.slot == slot]

    def _note(self, event: Any) -> None:
        """Of an event of the wire, whether it closes a call."""
        match getattr(event, "type", None):
            case "message_start" | "content_block_start" | "response.created":
                self._says_closed = True
            case "content_block_stop":
                for call in self._in(event.index)[-1:]:  # or it is a block of prose
                    call.final = ""
            case "response.output_item.done" if event.item.type == "function_call":
                self._finals[event.item.id] = final = event.item.arguments or ""
                for call in self._in(event.item.id):
                    call.final = final


class _Shown:
    """A provider's events, each of which is shown to `note` before it is read."""

    def __init__(self, source: Any, note: Callable[[Any], None]) -> None:
        self._source = source
        self._events = aiter(source)
        self._note = note

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        event = await anext(self._events)
        self._note(event)
        return event

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)


def _text(args: Any) -> str:
    """Arguments as JSON text: some providers send the object itself."""
    return args if isinstance(args, str) else "" if args is None else json.dumps(args)


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _must_agree(call: Call) -> None:
    """What a provider streams and what it then says that it has streamed are the same."""
    if not call.final or call.final == call.text:
        return
    if not (
        call.is_whole and _is_object(call.final) and json.loads(call.final) == json.loads(call.text)
    ):
        raise Malformed(f"the arguments of “{call.name[:60]}” twice, and different")
