"""Mail: search an archive (Maildir), and send (SMTP)."""

import mailbox
from collections.abc import Callable
from datetime import UTC, datetime
from email.message import EmailMessage
from pathlib import Path
from typing import Annotated

from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from pydantic import BaseModel, ConfigDict, Field

from tools.builtin import sent
from tools.builtin.fields import Address, Line, Text
from tools.builtin.smtp import compose, correction, hand_over, message_id
from tools.builtin.words import listed
from tools.contract import Context, Data, Draft, FollowUp, LookupResult, Receipt, Tier
from tools.errors import NoEffect
from tools.registry import tool

_SNIPPET = 160


class SearchMail(BaseModel):
    """Find mails that contain all of the given words."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"query": "Q3 review", "limit": 5}]})

    query: Line
    limit: Annotated[int, Field(ge=1, le=20)] = 10


@tool("mail.search", tier=Tier.READ_ONLY, args=SearchMail)
class MailSearch:
    title = gettext_lazy("Search mail")
    explains = gettext_lazy("Reads the mail archive. Changes nothing.")

    def describe(self, args: SearchMail) -> str:
        return _("Search mail for “%(query)s”") % {"query": args.query}

    def commit(self, ctx: Context, args: SearchMail, draft: Draft | None) -> Receipt:
        """The newest matching mails: `mails` is a list of {subject, from, date, snippet}."""
        found = _search(Path(settings.MAIL_ARCHIVE), args.query.lower().split())
        mails = [item for _date, item in found[: args.limit]]
        lines = [
            f"- {item['subject']}, from {item['from']}, {item['date'][:10]}: {item['snippet']}"
            for item in mails
        ]
        noun = "mail" if len(mails) == 1 else "mails"
        head = f"{len(mails)} {noun} found for “{args.query}”" if mails else "No mail found"
        return Receipt({"mails": mails, "found": len(found)}, "\n".join([head, *lines]))


def _search(archive: Path, words: list[str]) -> list[tuple[datetime, Data]]:
    if not archive.is_dir():
        raise NoEffect("no_archive", _("There is no mail archive to search."))
    found = []
    box = mailbox.Maildir(archive, create=False)
    for key in box.iterkeys():
        message = sent.parsed(box.get_bytes(key))
        body = _body(message)
        text = f"{message['subject']}\n{message['from']}\n{body}".lower()
        if all(word in text for word in words):
            found.append((_sent_at(message), _summary(message, body)))
    return sorted(found, key=lambda pair: pair[0], reverse=True)


def _body(message: EmailMessage) -> str:
    part = message.get_body(("plain",))
    if part is None:
        return ""
    try:
        return " ".join(part.get_content().split())
    except LookupError:  # a character set that nobody knows
        return ""


def _sent_at(message: EmailMessage) -> datetime:
    """The mail's date; the epoch for a mail without a readable one."""
    sent = getattr(message["date"], "datetime", None) or datetime.fromtimestamp(0, UTC)
    return sent if sent.tzinfo else sent.replace(tzinfo=UTC)


def _summary(message: EmailMessage, body: str) -> Data:
    return {
        "subject": str(message["subject"] or ""),
        "from": str(message["from"] or ""),
        "date": _sent_at(message).isoformat(),
        "snippet": body if len(body) <= _SNIPPET else body[:_SNIPPET].rstrip() + "…",
    }


class SendEmail(BaseModel):
    """Send a plain-text mail."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "to": ["ana@team.example", "bo@team.example"],
                    "subject": "Q3 review on Tuesday",
                    "body": "We meet on Tuesday at ten.",
                }
            ]
        }
    )

    to: Annotated[list[Address], Field(min_length=1, max_length=50)]
    subject: Line
    body: Text


@tool("email.send", tier=Tier.IRREVERSIBLE, args=SendEmail, horizon=sent.FILED_WITHIN)
class EmailSend:
    """SMTP has no question “did it arrive?”. Where a folder of sent mail is configured, that is
    looked into; else a person answers.
    """

    title = gettext_lazy("Send mail")
    explains = gettext_lazy("Sends a mail. A mail that has left cannot be called back.")
    undo_note = gettext_lazy("The mail has left. You can send a correction.")

    def describe(self, args: SendEmail) -> str:
        words = {"subject": args.subject, "people": listed(args.to)}
        return _("Mail “%(subject)s” to %(people)s") % words

    def effect_of(self, args: SendEmail) -> Data:
        """Whoever gets a second mail with the same subject has been told twice."""
        return {"to": sorted(map(str.lower, args.to)), "subject": args.subject.casefold()}

    def follow_up(self, args: SendEmail) -> FollowUp:
        return correction(args.subject, args.to)

    def prepare(self, ctx: Context, args: SendEmail) -> Draft:
        """Compose the mail, so that nothing but sending is left for `commit`."""
        return Draft({"mail": compose(ctx, ctx.request_id, args.to, args.subject, args.body)})

    def void(self, ctx: Context, draft: Draft) -> None:
        """The draft is text in the caller's hands: there is nothing to clear away."""

    def commit(self, ctx: Context, args: SendEmail, draft: Draft | None) -> Receipt:
        """Hand the mail to the server, for all recipients or for none."""
        draft = draft or self.prepare(ctx, args)
        answer = hand_over(ctx, args.to, draft.data["mail"])
        return Receipt(
            {
                "message_id": message_id(ctx.request_id),
                "to": list(args.to),
                "subject": args.subject,
                "answer": answer,
            },
            f"Mail “{args.subject}” was sent to {', '.join(args.to)}.",
        )

    @property
    def lookup(self) -> Callable[[Context], LookupResult] | None:
        return self._look if settings.MAIL_SENT_URL else None

    def _look(self, ctx: Context) -> LookupResult:
        """Look for our Message-ID among what was sent."""
        return sent.look_up(ctx, message_id(ctx.request_id))
