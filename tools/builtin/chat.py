"""Chat messages, over an HTTP API of Slack's shape."""

from typing import Annotated, Any

import httpx2
from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from pydantic import BaseModel, StringConstraints

from tools.builtin import http
from tools.contract import (
    CannotUndo,
    Changed,
    Context,
    Draft,
    LookupResult,
    NotLanded,
    Receipt,
    Tier,
    UndoReceipt,
    UndoResult,
    Unknown,
)
from tools.errors import NoEffect
from tools.registry import tool


class PostMessage(BaseModel):
    """Write a message into a channel of the team's chat."""

    channel: Annotated[str, StringConstraints(pattern=r"^#[a-z0-9][a-z0-9_-]{0,78}$")]
    text: Annotated[str, StringConstraints(min_length=1, max_length=4000)]


@tool("chat.post_message", tier=Tier.COMPENSABLE, args=PostMessage)
class ChatPostMessage:
    title = gettext_lazy("Post a chat message")
    explains = gettext_lazy(
        "Writes into a chat channel. It can be deleted, but people may have read it."
    )
    undo_note = gettext_lazy("Deletes the message. People may have read it.")

    def describe(self, args: PostMessage) -> str:
        text = " ".join(args.text.split())
        shown = text if len(text) <= 60 else text[:59].rstrip() + "…"
        return _("Message to %(channel)s: “%(text)s”") % {"channel": args.channel, "text": shown}

    def commit(self, ctx: Context, args: PostMessage, draft: Draft | None) -> Receipt:
        """Post it. The chat refuses with status 200 and `ok: false`, as Slack does."""
        answer = http.send(
            ctx,
            "POST",
            f"{settings.CHAT_URL}/chat.postMessage",
            json={
                "channel": args.channel,
                "text": args.text,
                "client_msg_id": ctx.request_id,
            },
        ).json()
        if not answer["ok"]:
            raise NoEffect(
                str(answer.get("error", "refused")),
                _("The chat refused the message: %(reason)s") % {"reason": answer.get("error")},
            )
        return _receipt(answer["message"])

    def lookup(self, ctx: Context) -> LookupResult:
        """Ask for the message that carries our id."""
        try:
            message = _find(ctx)
        except (httpx2.HTTPError, ValueError, KeyError) as error:
            return Unknown(http.why(error))
        return _receipt(message) if message else NotLanded()

    def compensate(self, ctx: Context, receipt: Receipt) -> UndoResult:
        """Delete the message, unless its text was changed since."""
        channel, ts = receipt.data.get("channel"), receipt.data.get("ts")
        if not channel or not ts:
            return CannotUndo(_("The receipt does not say which message it was."))
        message = _find(ctx)
        if message and message["text"] != receipt.data["text"]:
            return Changed(
                _("The message was changed since: it now says “%(text)s”.")
                % {"text": message["text"]}
            )
        answer = http.request(
            ctx, "POST", f"{settings.CHAT_URL}/chat.delete", json={"channel": channel, "ts": ts}
        )
        answer.raise_for_status()
        result = answer.json()
        if not result["ok"] and result.get("error") != "message_not_found":
            return CannotUndo(
                _("The chat refused to delete it: %(reason)s") % {"reason": result.get("error")}
            )
        return UndoReceipt(
            {"channel": channel, "ts": ts},
            _("The message was deleted. People may have read it.")
            if result["ok"]
            else _("The message was already gone. People may have read it."),
        )


def _find(ctx: Context) -> dict[str, Any] | None:
    answer = http.request(
        ctx,
        "GET",
        f"{settings.CHAT_URL}/conversations.history",
        params={"client_msg_id": ctx.request_id},
    )
    answer.raise_for_status()
    messages = answer.json()["messages"]
    return messages[0] if messages else None


def _receipt(message: dict[str, Any]) -> Receipt:
    return Receipt(
        {"channel": message["channel"], "ts": message["ts"], "text": message["text"]},
        f"The message was posted to {message['channel']}.",
    )
