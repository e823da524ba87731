"""The mail server of the demo world: real SMTP by aiosmtpd, and the record of what it took."""

import asyncio
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any

from aiosmtpd.smtp import SMTP, Envelope, Session

from tools.journal import Journal
from tools.world import journal
from tools.world.faults import Fault, Faults


class MailDoor:
    """aiosmtpd's handler: takes every mail, and records it before it says so."""

    def __init__(self, world_dir: Path, faults: Faults) -> None:
        self._journal = Journal(world_dir / journal.MAIL)
        self._faults = faults
        self._to_come: set[asyncio.Task[None]] = set()

    async def handle_RCPT(
        self,
        server: SMTP,
        session: Session,
        envelope: Envelope,
        address: str,
        options: list[str],
    ) -> str:
        if self._faults.take("smtp", "refuse", key=address):
            return "550 5.7.1 Refused"
        if self._faults.take("smtp", "busy", key=address):
            return "451 4.3.2 Busy, try again later"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        to = " ".join(envelope.rcpt_tos)
        fault = self._faults.take("smtp", "delay", "drop_after", "error_after", "late", key=to)
        if fault and fault.mode == "late":
            task = asyncio.create_task(self._record_later(fault.seconds, envelope))
            self._to_come.add(task)  # the loop itself forgets what nobody keeps
            task.add_done_callback(self._to_come.discard)
            return await _answer(server, fault)
        await asyncio.to_thread(self._record, envelope)
        return await _answer(server, fault)

    async def _record_later(self, seconds: float, envelope: Envelope) -> None:
        await asyncio.sleep(seconds)
        await asyncio.to_thread(self._record, envelope)

    def _record(self, envelope: Envelope) -> None:
        content = envelope.original_content or b""
        message = message_from_bytes(content, policy=policy.default)
        assert isinstance(message, EmailMessage)
        part = message.get_body(("plain",))
        self._journal.append(
            "received",
            message_id=str(message["message-id"] or ""),
            sender=envelope.mail_from,
            to=envelope.rcpt_tos,
            subject=str(message["subject"] or ""),
            body=part.get_content().replace("\r\n", "\n") if part is not None else "",
        )


async def _answer(server: SMTP, fault: Fault | None) -> str:
    if fault is None:
        return "250 2.0.0 Taken"
    if fault.mode in ("drop_after", "late") and server.transport:
        server.transport.close()
    if fault.mode == "delay":
        await asyncio.sleep(fault.seconds)
        return "250 2.0.0 Taken"
    return "451 4.3.0 Something went wrong here"


async def serve_mail(world_dir: Path, faults: Faults, port: int) -> asyncio.Server:
    """Listen on loopback; raises OSError if the port is taken."""
    loop = asyncio.get_running_loop()
    door = MailDoor(world_dir, faults)

    def connection() -> Any:
        # Its own name is given, since looking it up would ask the machine's DNS.
        return SMTP(door, loop=loop, hostname="localhost", ident="demo world")

    return await loop.create_server(connection, "127.0.0.1", port)
