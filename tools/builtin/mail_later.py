"""Mail that waits before it leaves: one to each person, and until then nothing has happened."""

from collections.abc import Callable
from typing import Annotated

from django.conf import settings
from django.utils.translation import gettext_lazy, ngettext
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from tools.builtin import sent
from tools.builtin.fields import Address, Line, Text, each_once
from tools.builtin.smtp import compose, correction, hand_over, message_id
from tools.builtin.words import listed
from tools.contract import Context, Data, Draft, FollowUp, LookupResult, Receipt, Tier
from tools.registry import tool

LONGEST_HOLD = 600  # seconds
MOST_PEOPLE = 50


class SendLater(BaseModel):
    """Send a plain-text mail to each of these people, one by one, after it was held for a while."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "to": ["ana@team.example", "bo@team.example"],
                    "subject": "Lunch on Friday",
                    "body": "The table is booked for twelve.",
                    "hold_seconds": 1,
                }
            ]
        }
    )

    to: Annotated[
        list[Address], Field(min_length=1, max_length=MOST_PEOPLE), AfterValidator(each_once)
    ]
    subject: Line
    body: Text
    hold_seconds: Annotated[int, Field(ge=1, le=LONGEST_HOLD)] = 60


@tool("email.send_later", tier=Tier.IRREVERSIBLE, args=SendLater, horizon=sent.FILED_WITHIN)
class EmailSendLater:
    """A mail to each person is an item, called by the address. The hold is the caller's, who keeps
    the draft: what is stopped or taken back until it is over was never sent.
    """

    title = gettext_lazy("Send mail later")
    explains = gettext_lazy(
        "Sends a mail to each person after a while. Until then it can be taken back; "
        "a mail that has left cannot."
    )
    undo_note = gettext_lazy(
        "The mail has left. It could be taken back while it was held; now a correction can follow."
    )

    def describe(self, args: SendLater) -> str:
        words = {
            "subject": args.subject,
            "people": listed(args.to),
            "seconds": args.hold_seconds,
        }
        return (
            ngettext(
                "Mail “%(subject)s” to %(people)s, held for %(seconds)s second",
                "Mail “%(subject)s” to %(people)s, held for %(seconds)s seconds",
                args.hold_seconds,
            )
            % words
        )

    @property
    def lookup(self) -> Callable[[Context], LookupResult] | None:
        return self._look if settings.MAIL_SENT_URL else None

    def _look(self, ctx: Context) -> LookupResult:
        """Those on record, and what came after them among what was sent: they leave one by one."""
        there, is_news = ctx.items.done(), False
        while len(there) < MOST_PEOPLE:
            key = ctx.item_id(len(there) + 1)
            found = sent.look_up(ctx, message_id(key))
            if not isinstance(found, Receipt):
                return Receipt({"items": there}) if is_news else found
            [address] = found.data["to"]
            there[address], is_news = _item(key, ""), True
        return Receipt({"items": there})

    def follow_up(self, args: SendLater) -> FollowUp:
        return correction(args.subject, args.to)

    def item_keys(self, args: SendLater) -> list[str]:
        return args.to

    def prepare(self, ctx: Context, args: SendLater) -> Draft:
        """Compose the mails, and have them held; not again for those that are left over."""
        mails = {
            address: compose(ctx, ctx.item_id(number), [address], args.subject, args.body)
            for number, address in enumerate(args.to, start=1)
        }
        return Draft({"mails": mails}, hold=0 if ctx.items.done() else args.hold_seconds)

    def void(self, ctx: Context, draft: Draft) -> None:
        """The draft is text in the caller's hands: there is nothing to clear away."""

    def commit(self, ctx: Context, args: SendLater, draft: Draft | None) -> Receipt:
        """Hand over one mail after the other, where it has not left yet."""
        draft = draft or self.prepare(ctx, args)
        done = ctx.items.done()
        for number, address in enumerate(args.to, start=1):
            if address not in done:
                answer = hand_over(ctx, [address], draft.data["mails"][address])
                done[address] = _item(ctx.item_id(number), answer)
                ctx.checkpoint(address, done[address])
        return Receipt(
            {"items": done, "subject": args.subject},
            f"Mail “{args.subject}” was sent to {', '.join(args.to)}.",
        )


def _item(key: str, answer: str) -> Data:
    return {"message_id": message_id(key), "answer": answer}
