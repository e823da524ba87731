"""The lights of a meeting room: a tool that can be undone and looked up.

The room is a folder, with a file for each lamp that says who switched it last, and how it was.
"""

import json
import os
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from tools.contract import (
    Changed,
    Context,
    Draft,
    LookupResult,
    NotLanded,
    Receipt,
    Tier,
    UndoReceipt,
    UndoResult,
)
from tools.errors import NoEffect
from tools.registry import tool

OTHER = {"on": "off", "off": "on"}


class SwitchLight(BaseModel):
    """Switch a lamp of the meeting room on or off."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"lamp": "desk", "to": "on"}]})

    lamp: Literal["desk", "ceiling", "door"]
    to: Literal["on", "off"]


@tool("acme.switch_light", tier=Tier.REVERSIBLE, args=SwitchLight, horizon=10.0)
class SwitchTheLight:
    title = "Switch a light"
    explains = "Switches a lamp of the meeting room. It can be switched back."
    undo_note = "The lamp is switched back, unless somebody switched it since."

    def describe(self, args: SwitchLight) -> str:
        return f"Switch the {args.lamp} lamp {args.to}"

    def commit(self, ctx: Context, args: SwitchLight, draft: Draft | None) -> Receipt:
        lamp = _room() / args.lamp
        if _state(lamp).get("by") == ctx.request_id:
            return _receipt(args.lamp, args.to)  # by an earlier attempt
        if not lamp.parent.is_dir():
            raise NoEffect("no_room", "There is no meeting room here, so nothing was switched.")
        ctx.sending()
        lamp.write_text(json.dumps({"by": ctx.request_id, "is": args.to}))
        return _receipt(args.lamp, args.to)

    def lookup(self, ctx: Context) -> LookupResult:
        """Ask every lamp who switched it last."""
        for lamp in sorted(_room().iterdir()):
            state = _state(lamp)
            if state.get("by") == ctx.request_id:
                return _receipt(lamp.name, state["is"])
        return NotLanded()

    def compensate(self, ctx: Context, receipt: Receipt) -> UndoResult:
        lamp, to = _room() / receipt.data["lamp"], receipt.data["to"]
        undone = f"{ctx.request_id}:undo"
        by = _state(lamp).get("by")
        if by not in (ctx.request_id, undone):
            return Changed(f"Somebody switched the {lamp.name} lamp since.")
        lamp.write_text(json.dumps({"by": undone, "is": OTHER[to]}))
        return UndoReceipt({"lamp": lamp.name}, f"The {lamp.name} lamp is {OTHER[to]} again.")


def _room() -> Path:
    return Path(os.environ["ACME_ROOM"])


def _state(lamp: Path) -> dict[str, str]:
    return dict(json.loads(lamp.read_text())) if lamp.exists() else {}


def _receipt(lamp: str, to: str) -> Receipt:
    return Receipt({"lamp": lamp, "to": to}, f"The {lamp} lamp is {to}.")
