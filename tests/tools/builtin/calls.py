"""One proper call of every built-in tool that has an effect."""

from typing import Any
from uuid import uuid4

from django.conf import settings
from pydantic import BaseModel

from tools import registry
from tools.contract import Context, Draft, Receipt
from tools.registry import RegisteredTool

EFFECTS = (
    "calendar.cancel_event",
    "calendar.create_event",
    "calendar.move_event",
    "chat.announce",
    "chat.post_message",
    "email.send",
    "git.open_draft",
    "payments.authorize_capture",
    "http.hooks",
    "http.request",
    "tickets.create",
)
# Those that change one thing that is there: two calls cannot both do it.
OF_ONE_THING = ("calendar.cancel_event", "calendar.move_event")
REPEATABLE = tuple(name for name in EFFECTS if name not in OF_ONE_THING)
WITH_LOOKUP = tuple(name for name in EFFECTS if name not in ("email.send", "http.request"))


def arguments(name: str, **changes: Any) -> BaseModel:
    """Valid arguments, with a branch name that nobody used before."""
    lunch = {"title": "Team lunch", "start": "2031-03-05T13:00:00+01:00"}
    raw: dict[str, dict[str, Any]] = {
        "calendar.cancel_event": lunch,
        "calendar.move_event": lunch | {"new_start": "2031-03-06T13:30:00+01:00"},
        "calendar.create_event": {
            "title": "Q3 review",
            "start": "2031-03-04T10:00:00+01:00",
            "end": "2031-03-04T11:00:00+01:00",
            "attendees": ["ana@team.example", "bo@team.example"],
        },
        "chat.announce": {"channels": ["#team"], "text": "The review is on Tuesday."},
        "chat.post_message": {"channel": "#team", "text": "The review is on Tuesday."},
        "email.send": {
            "to": ["ana@team.example", "bo@team.example"],
            "subject": "Q3 review on Tuesday – 季度",
            "body": "Hello,\n.\nTuesday at ten. Grüße\n",
        },
        "git.open_draft": {
            "branch": f"q3-{uuid4().hex[:8]}",
            "base": "release/q3",
            "title": "Q3 numbers",
            "files": {"numbers/q3.csv": "month,revenue\nJul,455\n", "neu/zäh len.txt": "ü\n"},
            "message": "Fill in July",
        },
        "payments.authorize_capture": {
            "amount": 124_000,
            "currency": "EUR",
            "customer": "Acme Ltd",
            "reference": "Invoice 2026-114",
        },
        "http.hooks": {"body": {"event": "numbers.ready"}},
        "http.request": {
            "method": "POST",
            "url": f"{settings.HOOKS_URL}/deliveries",
            "body": {"event": "numbers.ready"},
        },
        "files.write": {"path": "notes/q3.md", "text": "Tuesday, ten o’clock."},
        "tickets.create": {"title": "Printer", "body": "It is broken again."},
    }
    return tool(name).parse(raw[name] | changes)


def tool(name: str) -> RegisteredTool:
    found = registry.get(name)
    assert found is not None
    return found


def prepare(name: str, ctx: Context, args: BaseModel) -> Draft | None:
    impl: Any = tool(name).impl
    return impl.prepare(ctx, args) if tool(name).has_prepare else None


def act(name: str, ctx: Context, **changes: Any) -> Receipt:
    """Prepare and commit."""
    args = arguments(name, **changes)
    return tool(name).impl.commit(ctx, args, prepare(name, ctx, args))


def lookup(name: str, ctx: Context) -> Any:
    impl: Any = tool(name).impl
    return impl.lookup(ctx)


def undo(name: str, ctx: Context, receipt: Receipt) -> Any:
    impl: Any = tool(name).impl
    return impl.compensate(ctx, receipt)
