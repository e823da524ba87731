"""Calls of imported tools as an executor makes them, with what they tell, in memory."""

from dataclasses import dataclass, field, replace
from typing import Any

from tools import registry
from tools.contract import Context, Receipt


@dataclass
class Caller:
    """Makes calls, and keeps what was told about them. `is_stopped`: as if a person had. Without
    `prepares`, as an executor does that takes over a call which another one has prepared.
    """

    ctx: Context
    is_stopped: bool = False
    prepares: bool = True
    told: list[tuple[str, str]] = field(default_factory=list)
    sent: list[bool] = field(default_factory=list)

    def call(self, name: str, timeout: float = 20.0, **arguments: Any) -> Receipt:
        item = registry.get(name)
        assert item is not None
        ctx = replace(
            self.ctx,
            timeout=timeout,
            sending=lambda: self.sent.append(True),
            is_stopped=lambda: self.is_stopped,
            tell=lambda kind, **data: self.told.append((kind, data["status"])),
        )
        impl: Any = item.impl
        args = item.parse(arguments)
        draft = impl.prepare(self.ctx, args) if self.prepares and item.has_prepare else None
        receipt: Receipt = impl.commit(ctx, args, draft)
        return receipt
