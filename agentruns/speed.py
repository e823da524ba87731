"""How long a tool takes from the gate until it sends: one that dawdles is a leak in waiting."""

from dataclasses import dataclass

from agentruns.models import LedgerEvent, ToolCall

TIMED = 500  # calls, the newest that landed


@dataclass(frozen=True)
class Speed:
    """Milliseconds, of the newest `calls` for which it was measured."""

    calls: int
    p50: float
    p95: float
    worst: float


def speed_of(tool: str) -> Speed | None:
    """None for a tool that has not been measured: none of its calls landed, or it does not say
    when it sends.
    """
    landed = ToolCall.objects.filter(tool=tool, state="landed").order_by("-ended_at")
    newest = list(landed.values_list("pk", flat=True)[:TIMED])
    events = LedgerEvent.objects.filter(call__in=newest, kind="call.landed")
    measured = events.values_list("data__gate_to_send_ms", flat=True)
    taken = sorted(float(ms) for ms in measured if isinstance(ms, int | float))
    if not taken:
        return None
    return Speed(len(taken), _percentile(taken, 50), _percentile(taken, 95), taken[-1])


def _percentile(ordered: list[float], percent: int) -> float:
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]
