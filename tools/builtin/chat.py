"""Chat messages, over an HTTP API of Slack's shape."""

from typing import Annotated

import httpx2
from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from tools.builtin import http, lists
from tools.builtin.fields import each_once
from tools.builtin.words import listed, shortened
from tools.contract import (
    CannotUndo,
    Changed,
    Context,
    Data,
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

MOST_CHANNELS = 20


Channel = Annotated[str, StringConstraints(pattern=r"^#[a-z0-9][a-z0-9_-]{0,78}$")]
Text = Annotated[str, StringConstraints(pattern=r"\S", min_length=1, max_length=4000)]
Channels = Annotated[
    list[Channel], Field(min_length=1, max_length=MOST_CHANNELS), AfterValidator(each_once)
]


class PostMessage(BaseModel):
    """Write a message into a channel of the team's chat."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"channel": "#team", "text": "The review is on Tuesday at ten."}]
        }
    )

    channel: Channel
    text: Text


class Announce(BaseModel):
    """Write the same message into several channels of the team's chat, one after the other."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"channels": ["#general", "#team"], "text": "The review is on Tuesday at ten."}
            ]
        }
    )

    channels: Channels
    text: Text


@tool("chat.post_message", tier=Tier.COMPENSABLE, args=PostMessage, horizon=http.SERVED_WITHIN)
class ChatPostMessage:
    title = gettext_lazy("Post a chat message")
    explains = gettext_lazy(
        "Writes into a chat channel. It can be deleted, but people may have read it."
    )
    undo_note = gettext_lazy("Deletes the message. People may have read it.")

    def describe(self, args: PostMessage) -> str:
        return _described(args.channel, args.text)

    def commit(self, ctx: Context, args: PostMessage, draft: Draft | None) -> Receipt:
        return _receipt(_post(ctx, ctx.request_id, args.channel, args.text))

    def lookup(self, ctx: Context) -> LookupResult:
        """Ask for the message that carries our id."""
        try:
            message = _find(ctx, ctx.request_id)
        except (httpx2.HTTPError, ValueError, KeyError) as error:
            return Unknown(http.why(error))
        return _receipt(message) if message else NotLanded()

    def compensate(self, ctx: Context, receipt: Receipt) -> UndoResult:
        """Delete the message, unless its text was changed since."""
        return _delete(ctx, ctx.request_id, receipt.data)


@tool("chat.announce", tier=Tier.COMPENSABLE, args=Announce, horizon=http.SERVED_WITHIN)
class ChatAnnounce:
    """A message in each channel is an item, called by the channel's name."""

    title = gettext_lazy("Announce in several channels")
    explains = gettext_lazy(
        "Writes the same message into several chat channels, one after the other. "
        "The messages can be deleted, but people may have read them."
    )
    undo_note = gettext_lazy("Deletes the messages. People may have read them.")

    def describe(self, args: Announce) -> str:
        return _described(listed(args.channels), args.text)

    def item_keys(self, args: Announce) -> list[str]:
        return args.channels

    def commit(self, ctx: Context, args: Announce, draft: Draft | None) -> Receipt:
        """Post it in one channel after the other, where it has not been posted yet."""
        done = ctx.items.done()
        for number, channel in enumerate(args.channels, start=1):
            if channel not in done:
                key = ctx.item_id(number)
                done[channel] = _item(key, _post(ctx, key, channel, args.text))
                ctx.checkpoint(channel, done[channel])
        return Receipt({"items": done}, f"The message was posted to {', '.join(args.channels)}.")

    def lookup(self, ctx: Context) -> LookupResult:
        """Those on record, and those after them that the chat has: they come one by one."""
        there = ctx.items.done()
        try:
            for number in range(len(there) + 1, MOST_CHANNELS + 1):
                message = _find(ctx, key := ctx.item_id(number))
                if message is None:
                    break
                there[message["channel"]] = _item(key, message)
        except (httpx2.HTTPError, ValueError, KeyError) as error:
            return Unknown(http.why(error))
        return Receipt({"items": there}) if there else NotLanded()

    def compensate(self, ctx: Context, receipt: Receipt) -> UndoResult:
        """Delete each message, unless its text was changed since; say which ones are left."""
        items: dict[str, Data] = receipt.data.get("items") or {}
        if not items:
            return CannotUndo(_("The receipt does not say which messages they were."))
        results = {name: _delete(ctx, kept.get("id", ""), kept) for name, kept in items.items()}
        changed = [f"{name}: {r.what}" for name, r in results.items() if isinstance(r, Changed)]
        refused = [f"{name}: {r.why}" for name, r in results.items() if isinstance(r, CannotUndo)]
        gone = {name: r.data for name, r in results.items() if isinstance(r, UndoReceipt)}
        if not changed and not refused:
            return UndoReceipt({"items": gone}, _all_deleted(gone))
        others = [_("Deleted: %(channels)s.") % {"channels": ", ".join(gone)}] if gone else []
        said = " ".join([*refused, *changed, *others])
        return CannotUndo(said) if refused else Changed(said)


def _described(where: str, text: str) -> str:
    return _("Message to %(channel)s: “%(text)s”") % {"channel": where, "text": shortened(text)}


def _post(ctx: Context, key: str, channel: str, text: str) -> Data:
    """Post it; the chat refuses with status 200 and `ok: false`, as Slack does."""
    answer = http.send(
        ctx,
        "POST",
        f"{settings.CHAT_URL}/chat.postMessage",
        json={"channel": channel, "text": text, "client_msg_id": key},
    ).json()
    if not answer["ok"]:
        raise NoEffect(
            str(answer.get("error", "refused")),
            _("The chat refused the message: %(reason)s") % {"reason": answer.get("error")},
        )
    message: Data = answer["message"]
    lists.must_be_ours(message.get("client_msg_id"), key)
    return message


def _find(ctx: Context, key: str) -> Data | None:
    """The message with our id. Raises ValueError where the answer decides nothing."""
    answer = http.request(
        ctx, "GET", f"{settings.CHAT_URL}/conversations.history", params={"client_msg_id": key}
    )
    answer.raise_for_status()
    return lists.with_key(answer.json()["messages"], "client_msg_id", key)


def _delete(ctx: Context, key: str, kept: Data) -> UndoResult:
    """Delete the message that was posted with `key` and left the receipt `kept`."""
    channel, ts = kept.get("channel"), kept.get("ts")
    if not channel or not ts or not key:
        return CannotUndo(_("The receipt does not say which message it was."))
    message = _find(ctx, key)
    if message and message["text"] != kept["text"]:
        return Changed(
            _("The message was changed since: it now says “%(text)s”.") % {"text": message["text"]}
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
    known = message if message and result["ok"] else {}
    sentence = (
        _("The message in %(channel)s was deleted.")
        if result["ok"]
        else _("The message in %(channel)s was already gone.")
    )
    return UndoReceipt(
        {"channel": channel, "ts": ts, "reads": known.get("reads")},
        f"{sentence % {'channel': channel}} {_seen(known)}",
    )


def _seen(message: Data) -> str:
    """Who had read a message: the chat knows how many, or who answered it or put a sign on it."""
    reads = message.get("reads")
    if reads == 0:
        return _("Nobody had read it yet.")
    if reads:
        people = ngettext("%(count)s person had read it.", "%(count)s people had read it.", reads)
        return people % {"count": reads}
    seen = set(message.get("reply_users") or [])
    for reaction in message.get("reactions") or []:
        seen |= set(reaction.get("users") or [])
    if not seen:
        return _("People may have read it.")
    people = ngettext(
        "At least %(count)s person had read it.",
        "At least %(count)s people had read it.",
        len(seen),
    )
    return people % {"count": len(seen)}


def _all_deleted(gone: dict[str, Data]) -> str:
    """The note on messages that are all deleted, from what is known of each."""
    said = _("The messages in %(channels)s are deleted.") % {"channels": listed(sorted(gone))}
    reads = [each.get("reads") for each in gone.values()]
    if None in reads:
        return f"{said} {_('People may have read them.')}"
    times = sum(each or 0 for each in reads)
    if times == 0:
        return f"{said} {_('Nobody had read them yet.')}"
    seen = ngettext(
        "They had been read %(count)s time.", "They had been read %(count)s times.", times
    )
    return f"{said} {seen % {'count': times}}"


def _kept(message: Data) -> Data:
    return {"channel": message["channel"], "ts": message["ts"], "text": message["text"]}


def _item(key: str, message: Data) -> Data:
    """An item's receipt says under which id it was posted: a ledger keeps no order of keys."""
    return {"id": key} | _kept(message)


def _receipt(message: Data) -> Receipt:
    return Receipt(_kept(message), f"The message was posted to {message['channel']}.")
