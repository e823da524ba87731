"""Tickets, over an HTTP API that takes an Idempotency-Key."""

from typing import Any

import httpx2
from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from pydantic import BaseModel, ConfigDict

from tools.builtin import http, lists
from tools.builtin.fields import Line, Text
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
from tools.registry import tool


class CreateTicket(BaseModel):
    """Open a ticket for the team."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"title": "Printer", "body": "The one on the second floor is broken."}]
        }
    )

    title: Line
    body: Text


@tool("tickets.create", tier=Tier.COMPENSABLE, args=CreateTicket, horizon=http.SERVED_WITHIN)
class TicketsCreate:
    title = gettext_lazy("Open a ticket")
    explains = gettext_lazy("Opens a ticket. It can be closed, but people may have seen it.")
    undo_note = gettext_lazy("Closes the ticket with a note. It stays in the list of tickets.")

    def describe(self, args: CreateTicket) -> str:
        return _("Ticket “%(title)s”") % {"title": args.title}

    def effect_of(self, args: CreateTicket) -> Data:
        """A ticket of the same title, however it is explained."""
        return {"title": args.title.casefold()}

    def commit(self, ctx: Context, args: CreateTicket, draft: Draft | None) -> Receipt:
        """Open it; the key makes a second attempt find the first one's ticket."""
        answer = http.send(
            ctx,
            "POST",
            f"{settings.TICKETS_URL}/tickets",
            json={"title": args.title, "body": args.body},
            headers={"Idempotency-Key": ctx.request_id},
        )
        ticket = answer.json()
        lists.must_be_ours(ticket.get("key"), ctx.request_id)
        return _receipt(ticket)

    def lookup(self, ctx: Context) -> LookupResult:
        """Ask for the ticket that was opened with our key."""
        try:
            answer = http.request(
                ctx,
                "GET",
                f"{settings.TICKETS_URL}/tickets",
                params={"idempotency_key": ctx.request_id},
            )
            answer.raise_for_status()
            found = lists.with_key(answer.json()["tickets"], "key", ctx.request_id)
            return _receipt(found) if found else NotLanded()
        except (httpx2.HTTPError, ValueError, KeyError) as error:
            return Unknown(http.why(error))

    def compensate(self, ctx: Context, receipt: Receipt) -> UndoResult:
        """Close the ticket, unless somebody worked on it since."""
        ticket, version = receipt.data.get("id"), receipt.data.get("version")
        if not ticket or not version:
            return CannotUndo(_("The receipt does not say which ticket it was."))
        url = f"{settings.TICKETS_URL}/tickets/{ticket}"
        answer = http.request(
            ctx,
            "PATCH",
            url,
            json={"state": "closed", "note": "Opened by an agent, and taken back."},
            headers={"If-Match": f'"{version}"', "Idempotency-Key": f"{ctx.request_id}:undo"},
        )
        words = {"id": ticket, "title": receipt.data.get("title", "")}
        if answer.status_code == 404:
            gone = _("The ticket %(id)s “%(title)s” was already gone.")
            return UndoReceipt({"id": ticket}, gone % words)
        if answer.status_code == 412:
            return Changed(_("Somebody worked on the ticket %(id)s “%(title)s” since.") % words)
        answer.raise_for_status()
        closed = _("The ticket %(id)s “%(title)s” was closed with a note; it stays in the list.")
        return UndoReceipt({"id": ticket}, closed % words)


def _receipt(ticket: dict[str, Any]) -> Receipt:
    return Receipt(
        {"id": ticket["id"], "version": ticket["version"], "title": ticket["title"]},
        f"Ticket {ticket['id']} “{ticket['title']}” was opened.",
    )
