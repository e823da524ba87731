"""Mail on its way out: how a mail is composed, and one session with the mail server (SMTP)."""

import smtplib
from collections.abc import Sequence
from datetime import UTC, datetime
from email import policy
from email.headerregistry import Address as MailAddress
from email.message import EmailMessage
from email.utils import format_datetime
from urllib.parse import urlsplit

from django.conf import settings
from django.utils.translation import gettext as _

from tools.contract import Context, FollowUp
from tools.errors import NoEffect

_WIRE = policy.SMTP.clone(cte_type="7bit")


def correction(subject: str, to: Sequence[str]) -> FollowUp:
    """A mail that has left can be corrected by another one, which is asked for like any."""
    goal = _(
        "Send a correction of the mail “%(subject)s” to %(people)s. What was wrong, and what is "
        "right: "
    )
    return FollowUp(_("Write a correction"), goal % {"subject": subject, "people": ", ".join(to)})


def message_id(key: str) -> str:
    """The Message-ID of the mail with this idempotency key."""
    return f"<{key}@{settings.MAIL_DOMAIN}>"


def compose(ctx: Context, key: str, to: Sequence[str], subject: str, body: str) -> str:
    """A plain-text mail from whom `ctx` acts for, as it goes over the wire: ASCII."""
    message = EmailMessage(policy=_WIRE)
    message["Message-ID"] = message_id(key)
    message["Date"] = format_datetime(datetime.now(UTC))
    message["From"] = MailAddress(" ".join(ctx.actor.split()), addr_spec=_sender())
    message["To"] = [MailAddress(addr_spec=address) for address in to]
    message["Subject"] = subject
    message.set_content(body)
    return message.as_bytes().decode("ascii")


def _sender() -> str:
    return f"agent@{settings.MAIL_DOMAIN}"


def hand_over(ctx: Context, to: Sequence[str], mail: str) -> str:
    """One SMTP session; returns the server's answer to the mail.

    Nothing has happened until the DATA command was accepted: every error before is NoEffect, and
    passing unless the server says that it is for good (5xx). After it only a clear rejection
    (5xx) is; a 4xx or no answer says nothing for certain.
    """
    server = urlsplit(settings.SMTP_URL)
    try:
        smtp = smtplib.SMTP(server.hostname or "", server.port or 25, timeout=ctx.timeout)
    except (OSError, smtplib.SMTPException) as error:
        raise NoEffect(
            "unreachable",
            _("The mail server could not be reached, so nothing was sent."),
            is_passing=getattr(error, "smtp_code", 0) < 500,
            error=str(error),
        ) from error
    try:
        _address(smtp, to)
        ctx.sending()
        try:
            code, text = smtp.data(mail.encode("ascii"))
        except smtplib.SMTPDataError as error:
            # smtplib raises this for a refused DATA command only: the mail itself was not sent.
            raise _rejected(error.smtp_code, error.smtp_error) from error
        if code >= 500:
            raise _rejected(code, text)
        if code != 250:
            raise smtplib.SMTPDataError(code, text)
    finally:
        # Not QUIT: the mail is decided, and a slow goodbye must not turn it into a doubt.
        smtp.close()
    return f"{code} {_decode(text)}"


def _address(smtp: smtplib.SMTP, to: Sequence[str]) -> None:
    """Everything before DATA; a single refused recipient refuses the mail."""
    try:
        smtp.ehlo_or_helo_if_needed()
        answers = [smtp.mail(_sender()), *(smtp.rcpt(address) for address in to)]
    except (OSError, smtplib.SMTPException) as error:
        raise NoEffect(
            "connection_lost",
            _("The mail server hung up before the mail was sent."),
            is_passing=True,
            error=str(error),
        ) from error
    for code, text in answers:
        if code not in (250, 251):
            raise _rejected(code, text)


def _rejected(code: int, text: bytes | str) -> NoEffect:
    return NoEffect(
        "refused",
        _("The mail server refused the mail: %(answer)s") % {"answer": _decode(text)},
        is_passing=400 <= code < 500,
        status=code,
    )


def _decode(text: bytes | str) -> str:
    return text.decode("utf-8", "replace") if isinstance(text, bytes) else text
