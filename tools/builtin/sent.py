"""The folder of sent mail, if there is one: by it a mail in doubt may be found again.

That a mail is there proves that it was sent. That it is not there proves nothing: many servers
file a mail only some time after they took it, or not at all what comes by SMTP, and people tidy
up. So the answer is never “not sent”, by which it would be sent again.
"""

import imaplib
import mailbox
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage
from email.utils import getaddresses
from pathlib import Path
from ssl import create_default_context
from urllib.parse import unquote, urlsplit

from django.conf import settings

from tools.contract import Context, LookupResult, Receipt, Unknown

# A server takes a mail with the last byte of it, or never; the folder has it some time after that.
FILED_WITHIN = 2 * 60.0  # seconds


def look_up(ctx: Context, message_id: str) -> LookupResult:
    """The mail with this Message-ID, as the folder at MAIL_SENT_URL has it, or Unknown."""
    url = urlsplit(settings.MAIL_SENT_URL)
    try:
        if url.scheme == "maildir":
            head = _in_maildir(Path(unquote(url.path)), message_id)
        else:
            head = _on_server(ctx, message_id)
    # imaplib says by a bare exception of its own that a server said no.
    except (OSError, imaplib.IMAP4.error, mailbox.Error, ValueError) as error:
        return Unknown(f"the folder of sent mail: {type(error).__name__}: {error}")
    if head is None:
        return Unknown("the mail is not in the folder of sent mail, which is no proof")
    to = [address for _name, address in getaddresses(map(str, head.get_all("to", [])))]
    subject = str(head["subject"] or "")
    return Receipt(
        {"message_id": message_id, "to": to, "subject": subject, "answer": ""},
        f"Mail “{subject}” was sent to {', '.join(to)}.",
    )


def _in_maildir(folder: Path, message_id: str) -> EmailMessage | None:
    box = mailbox.Maildir(folder, create=False)
    for key in box.iterkeys():
        with box.get_file(key) as file:
            head = parsed(b"".join(_until_blank(file)))
        if str(head["message-id"] or "").strip() == message_id:
            return head
    return None


def _until_blank(lines: Iterable[bytes]) -> Iterator[bytes]:
    for line in lines:
        if not line.strip():
            return
        yield line


def _on_server(ctx: Context, message_id: str) -> EmailMessage | None:
    with _folder(ctx) as server:
        numbers = server.uid("SEARCH", "HEADER", "Message-ID", f'"{message_id}"')[1]
        for number in (numbers[0] or b"").split():
            # PEEK: to look is not to have read it.
            parts = server.uid("FETCH", number.decode(), "(BODY.PEEK[HEADER])")[1]
            found = [parsed(part[1]) for part in parts if isinstance(part, tuple)]
            # A server looks for the text anywhere in the header.
            for head in found:
                if str(head["message-id"] or "").strip() == message_id:
                    return head
    return None


@contextmanager
def _folder(ctx: Context) -> Iterator[imaplib.IMAP4]:
    """A session in the folder of sent mail, which is only read."""
    url = urlsplit(settings.MAIL_SENT_URL)
    host, context = url.hostname or "", create_default_context()
    server: imaplib.IMAP4
    if url.scheme == "imaps":
        server = imaplib.IMAP4_SSL(host, url.port or 993, ssl_context=context, timeout=ctx.timeout)
    else:
        server = imaplib.IMAP4(host, url.port or 143, timeout=ctx.timeout)
    try:
        if url.scheme == "imap" and "STARTTLS" in server.capabilities:
            server.starttls(ssl_context=context)
        server.login(unquote(url.username or ""), unquote(url.password or ""))
        name = unquote(url.path.strip("/")) or "Sent"
        answer, said = server.select(f'"{name}"', readonly=True)
        if answer != "OK":
            raise ValueError(f"there is no folder {name}: {said[0]!r}")
        yield server
    finally:
        server.shutdown()


def parsed(content: bytes) -> EmailMessage:
    """A mail, or its head alone."""
    message = message_from_bytes(content, policy=policy.default)
    assert isinstance(message, EmailMessage)
    return message
