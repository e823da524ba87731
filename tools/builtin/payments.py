"""Payments, over an HTTP API of the usual shape: authorise, capture, void, refund."""

import dataclasses
from collections.abc import Iterator
from contextlib import suppress
from decimal import Decimal
from typing import Annotated, Any

import httpx2
from django.conf import settings
from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from tools.builtin import http, lists
from tools.builtin.fields import Line
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

# How many digits of an amount are behind the point. A currency that is not here is not taken:
# guessed wrongly, the line that a person approves would be off by a factor of a hundred.
_CODES = {
    0: "JPY KRW VND",
    2: "AUD BRL CAD CHF CNY CZK DKK EUR GBP HKD INR MXN NOK NZD PLN SEK SGD USD ZAR",
    3: "BHD JOD KWD TND",
}
MINOR_DIGITS = {code: digits for digits, codes in _CODES.items() for code in codes.split()}
# Banks are asked in turn, and a capture may wait in a queue of the service's own.
SETTLED_WITHIN = 30 * 60.0  # seconds
# An authorisation that was let go is never revived: a call that is prepared again gets a new one.
MOST_AUTHORIZATIONS = 20


def _currency(code: str) -> str:
    if code not in MINOR_DIGITS:
        raise ValueError(f"“{code}” is not one of {', '.join(sorted(MINOR_DIGITS))}")
    return code


class Payment(BaseModel):
    """Charge a customer once, for something that the reference names."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "amount": 124_000,
                    "currency": "EUR",
                    "customer": "Acme Ltd",
                    "reference": "Invoice 2026-114",
                }
            ]
        }
    )

    amount: Annotated[
        int,
        Field(
            strict=True,
            ge=1,
            le=1_000_000_000_000,
            description="In the smallest unit of the currency: 124000 is EUR 1,240.00.",
        ),
    ]
    currency: Annotated[
        str, AfterValidator(_currency), Field(description="Three letters, e.g. EUR.")
    ]
    customer: Line
    reference: Annotated[Line, Field(description="What the customer reads on the statement.")]


@tool(
    "payments.authorize_capture",
    tier=Tier.COMPENSABLE,
    args=Payment,
    uninterruptible=True,
    horizon=SETTLED_WITHIN,
)
class PaymentsAuthorizeCapture:
    """`prepare` reserves the amount, and the money moves with the capture alone.

    The two are one unit: once the capture has begun, Stop waits for it.
    """

    title = gettext_lazy("Charge a customer")
    explains = gettext_lazy(
        "Reserves an amount with the customer’s bank, then takes it. What was only reserved is "
        "let go again; what was taken can be paid back."
    )
    undo_note = gettext_lazy(
        "Pays the whole amount back. The customer sees both on the statement, and fees may remain."
    )

    def describe(self, args: Payment) -> str:
        return _("Charge %(customer)s %(amount)s for “%(reference)s”") % {
            "customer": args.customer,
            "amount": money(args.amount, args.currency),
            "reference": args.reference,
        }

    def effect_of(self, args: Payment) -> Data:
        """The same amount of the same customer, whatever the reference says."""
        customer = args.customer.casefold()
        return {"customer": customer, "amount": args.amount, "currency": args.currency}

    def prepare(self, ctx: Context, args: Payment) -> Draft:
        """Reserve the amount, or find what an earlier attempt reserved. No money moves."""
        try:
            held = _authorize(ctx, args)
        except httpx2.HTTPError as error:
            raise NoEffect(
                "not_prepared",
                _("The amount could not be reserved, so nothing was charged."),
                is_passing=http.is_passing(error),
                error=str(error),
            ) from error
        return Draft({"authorization": held["id"]})

    def void(self, ctx: Context, draft: Draft) -> None:
        """Let go of every reservation of this call."""
        for held in _attempts(ctx):
            if held["status"] == "authorized":
                _void(ctx, held["id"])

    def drafts(self) -> list[str]:
        """The request ids of all reservations that are open and name one."""
        answer = http.request(_SWEEP, "GET", _url(), params={"status": "authorized"})
        answer.raise_for_status()
        there = lists.records(answer.json()["authorizations"])
        ids = [_request_id(held) for held in there if held["status"] == "authorized"]
        return [str(request_id) for request_id in ids if request_id]

    def commit(self, ctx: Context, args: Payment, draft: Draft | None) -> Receipt:
        """Take the reserved amount; a reservation that is gone is made anew."""
        draft = draft or self.prepare(ctx, args)
        answer = _capture(ctx, draft.data["authorization"])
        if answer.status_code in (404, 409):
            draft = self.prepare(ctx, args)
            answer = _capture(ctx, draft.data["authorization"])
        if answer.status_code in (404, 409):
            raise NoEffect(
                "refused",
                _("The reserved amount could not be taken, so nothing was charged."),
                status=answer.status_code,
            )
        taken = answer.json()
        lists.must_be_ours(_request_id(taken), ctx.request_id)
        return _receipt(taken)

    def lookup(self, ctx: Context) -> LookupResult:
        """Ask for our reservations: what is only reserved, or was let go, moved no money."""
        try:
            taken = next((held for held in _attempts(ctx) if held["capture"]), None)
            return _receipt(taken) if taken else NotLanded()
        except (httpx2.HTTPError, ValueError, KeyError) as error:
            return Unknown(http.why(error))

    def compensate(self, ctx: Context, receipt: Receipt) -> UndoResult:
        """Pay the whole amount back, unless some of it was paid back since."""
        capture, amount = receipt.data.get("capture"), receipt.data.get("amount")
        if not capture or not amount:
            return CannotUndo(_("The receipt does not say which payment it was."))
        answer = http.request(
            ctx,
            "POST",
            f"{settings.PAYMENTS_URL}/captures/{capture}/refund",
            json={"amount": amount},
            headers={"Idempotency-Key": f"{ctx.request_id}:refund"},
        )
        if answer.status_code == 404:
            return CannotUndo(_("The payment service does not know this payment any more."))
        if answer.status_code == 409:
            return _refunded_since(receipt.data, answer.json()["refunded"])
        answer.raise_for_status()
        return UndoReceipt(
            {"capture": capture, "refund": answer.json()["refund"]},
            _("%(amount)s went back to %(customer)s. Both are on the statement.")
            % _particulars(receipt.data),
        )


# Whoever sweeps has no call; this one names none, and has its own patience.
_SWEEP = Context("", "", "", "", timeout=10.0)


def money(amount: int, currency: str) -> str:
    """An amount in minor units, as people write it: “1,240.00 EUR”."""
    digits = MINOR_DIGITS[currency]
    value = Decimal(amount).scaleb(-digits)
    return f"{number_format(value, digits, force_grouping=True)}\u00a0{currency}"


def _url(*parts: str) -> str:
    return "/".join((f"{settings.PAYMENTS_URL}/authorizations", *parts))


def _authorize(ctx: Context, args: Payment) -> Data:
    """Our authorisation that can be captured, or was; raises NoEffect if it was declined.

    Not with the caller's `sending`: what is reserved is no effect yet.
    """
    asking = dataclasses.replace(ctx, sending=lambda: None)
    body = args.model_dump() | {"metadata": {"request_id": ctx.request_id}}
    for number in range(MOST_AUTHORIZATIONS):
        answer = http.send(
            asking,
            "POST",
            _url(),
            json=body,
            headers={"Idempotency-Key": _key(ctx, number)},
            expect=(402,),
        )
        if answer.status_code == 402:
            reason = answer.json().get("error", "")
            raise NoEffect(
                "declined", _("The payment was declined: %(reason)s.") % {"reason": reason}
            )
        held: Data = answer.json()
        lists.must_be_ours(_request_id(held), ctx.request_id)
        if held["status"] != "voided":
            return held
    raise NoEffect("not_prepared", _("The amount was reserved and let go too often."))


def _capture(ctx: Context, authorization: str) -> httpx2.Response:
    """The answer to the capture, 404 or 409 if there is nothing any more that could be taken.

    Where the service refuses it otherwise, what is reserved is let go at once.
    """
    try:
        return http.send(
            ctx,
            "POST",
            _url(authorization, "capture"),
            json={},
            headers={"Idempotency-Key": f"{ctx.request_id}:capture:{authorization}"},
            expect=(404, 409),
        )
    except NoEffect as error:
        if not error.is_passing:
            with suppress(httpx2.HTTPError):  # the sweeper comes for it
                _void(ctx, authorization)
        raise


def _void(ctx: Context, authorization: str) -> None:
    """A reservation that was taken or let go meanwhile is no trouble."""
    answer = http.request(
        ctx,
        "POST",
        _url(authorization, "void"),
        json={},
        headers={"Idempotency-Key": f"{ctx.request_id}:void:{authorization}"},
    )
    if answer.status_code not in (404, 409):
        answer.raise_for_status()


def _attempts(ctx: Context) -> Iterator[Data]:
    """Every authorisation of this call, in order. Raises NotFiltered at the end, where the service
    has listed those of others, too: then it may have more of ours.
    """
    known: set[Any] = set()
    has_others = False
    for number in range(MOST_AUTHORIZATIONS):
        params = {"idempotency_key": _key(ctx, number)}
        answer = http.request(ctx, "GET", _url(), params=params)
        answer.raise_for_status()
        there = lists.records(answer.json()["authorizations"])
        ours = [held for held in there if _request_id(held) == ctx.request_id]
        has_others |= len(ours) < len(there)
        new = [held for held in ours if held["id"] not in known]
        if not new:
            break
        known |= {held["id"] for held in new}
        yield from new
    if has_others:
        raise lists.NotFiltered


def _request_id(held: Data) -> Any:
    """What we have put into it, where it comes back."""
    return (held.get("metadata") or {}).get("request_id")


def _key(ctx: Context, number: int) -> str:
    return f"{ctx.request_id}:{number}" if number else ctx.request_id


def _refunded_since(kept: Data, refunded: int) -> UndoResult:
    if refunded >= kept["amount"]:
        note = _("Somebody had paid %(amount)s back to %(customer)s already.") % _particulars(kept)
        return UndoReceipt({"capture": kept["capture"]}, note)
    return Changed(
        _("Somebody has paid %(part)s of %(amount)s back to %(customer)s since.")
        % {"part": money(refunded, kept["currency"]), **_particulars(kept)}
    )


def _particulars(kept: Data) -> dict[str, str]:
    return {"amount": money(kept["amount"], kept["currency"]), "customer": kept["customer"]}


def _receipt(held: dict[str, Any]) -> Receipt:
    names = ("capture", "amount", "currency", "customer", "reference")
    kept = {"authorization": held["id"]} | {name: held[name] for name in names}
    amount = f"{Decimal(held['amount']).scaleb(-MINOR_DIGITS[held['currency']])}"
    return Receipt(
        kept,
        f"{held['currency']} {amount} was charged to {held['customer']} "
        f"for “{held['reference']}”; the capture is {held['capture']}.",
    )
