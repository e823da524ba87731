"""email.send: its look-up is the folder of sent mail, in a Maildir or on an IMAP server."""

import imaplib
import mailbox
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pytest_django.fixtures import Settings

from agentruns.services.ports import free_ports
from tests.tools.builtin.calls import arguments, lookup, prepare, tool
from tests.tools.conftest import NewContext
from tools.contract import Context, Receipt, Unknown

NAME = "email.send"
FOLDER = "Sent"  # one of those that the server has from the start
File = Callable[[bytes], object]


def composed(ctx: Context) -> bytes:
    draft = prepare(NAME, ctx, arguments(NAME))
    assert draft is not None
    return str(draft.data["mail"]).encode()


@pytest.fixture
def maildir(settings: Settings, tmp_path: Path) -> File:
    """Files mails into a Maildir whose path has to be quoted."""
    box = mailbox.Maildir(tmp_path / "sent mail", create=True)
    settings.MAIL_SENT_URL = f"maildir:{tmp_path}/sent%20mail"
    return lambda mail: box.add(mail)


@pytest.fixture(scope="module")
def imap_port() -> Iterator[int]:
    """A real IMAP server (pymap), until the last test here is over."""
    (port,) = free_ports(1)
    command = ["--host", "127.0.0.1", "--port", str(port), "--no-tls", "dict", "--demo-data"]
    run = "import sys; from pymap.main import main; sys.exit(main())"
    server = subprocess.Popen([sys.executable, "-c", run, *command], stderr=subprocess.DEVNULL)
    try:
        _await(port)
        yield port
    finally:
        server.terminate()
        server.wait(timeout=10)


@pytest.fixture
def imap(settings: Settings, imap_port: int) -> File:
    """Files mails into the folder of an account on it."""
    settings.MAIL_SENT_URL = f"imap://demouser:demopass@127.0.0.1:{imap_port}/{FOLDER}"

    def file(mail: bytes) -> None:
        with imaplib.IMAP4("127.0.0.1", imap_port) as account:
            account.login("demouser", "demopass")
            answer, said = account.append(FOLDER, "", "", mail)
            assert answer == "OK", said

    return file


@pytest.fixture(params=["maildir", "imap"])
def file(request: pytest.FixtureRequest) -> File:
    filing: File = request.getfixturevalue(request.param)
    return filing


def test_a_mail_that_was_filed_is_found_with_whom_it_went_to(
    file: File, new_context: NewContext
) -> None:
    ctx = new_context()
    file(composed(new_context()))
    file(composed(ctx))
    found = lookup(NAME, ctx)
    assert isinstance(found, Receipt)
    assert ctx.request_id in found.data["message_id"]
    assert found.data["to"] == ["ana@team.example", "bo@team.example"]
    assert found.data["subject"] == "Q3 review on Tuesday – 季度"


def test_a_mail_that_is_not_there_is_not_taken_for_unsent(
    file: File, new_context: NewContext
) -> None:
    """It would be sent again, and the server may only be slow to file it."""
    file(composed(new_context()))
    assert lookup(NAME, new_context()) == Unknown(
        "the mail is not in the folder of sent mail, which is no proof"
    )


def test_a_mail_that_only_mentions_the_other_is_not_that_one(
    file: File, new_context: NewContext
) -> None:
    ctx = new_context()
    own = composed(ctx).partition(b"\r\n")[0].removeprefix(b"Message-ID: ")
    file(b"Message-ID: <another@x>\r\nTo: a@b.c\r\nSubject: Re\r\n\r\nMessage-ID: " + own + b"\r\n")
    assert isinstance(lookup(NAME, ctx), Unknown)


@pytest.mark.parametrize(
    "change",
    [("demopass", "wrong"), ("/Sent", "/Nowhere")],
    ids=["a wrong password", "a folder that is not there"],
)
def test_a_server_that_says_no_decides_nothing(
    change: tuple[str, str], imap: File, new_context: NewContext, settings: Settings
) -> None:
    settings.MAIL_SENT_URL = settings.MAIL_SENT_URL.replace(*change)
    found = lookup(NAME, new_context())
    assert isinstance(found, Unknown)
    assert "no proof" not in found.reason
    assert "demopass" not in found.reason


@pytest.mark.parametrize("url", ["imap://a:b@127.0.0.1:{port}/Sent", "maildir:/no/such/folder"])
def test_a_folder_that_cannot_be_reached_decides_nothing(
    url: str, new_context: NewContext, settings: Settings
) -> None:
    (port,) = free_ports(1)
    settings.MAIL_SENT_URL = url.format(port=port)
    assert isinstance(lookup(NAME, new_context()), Unknown)


def test_without_such_a_folder_there_is_no_look_up(settings: Settings) -> None:
    settings.MAIL_SENT_URL = ""
    assert not tool(NAME).has_lookup
    settings.MAIL_SENT_URL = "maildir:/somewhere"
    assert tool(NAME).has_lookup


def _await(port: int) -> None:
    """Until the server accepts, 20 seconds at most."""
    deadline = time.monotonic() + 20
    while True:
        try:
            imaplib.IMAP4("127.0.0.1", port, timeout=5).shutdown()
        except OSError:
            assert time.monotonic() < deadline, "the IMAP server did not start"
        else:
            return


def test_of_mails_to_each_person_those_that_left_are_found_one_by_one(
    maildir: File, new_context: NewContext
) -> None:
    """The first is on record, the second was sent when its executor died, the third was not."""
    later, ctx = tool("email.send_later"), new_context()
    people = ["ana@team.example", "bo@team.example", "mei@team.example"]
    args = later.parse({"to": people, "subject": "Lunch", "body": "At twelve."})
    mails = later.impl.prepare(ctx, args).data["mails"]  # type: ignore[attr-defined]
    for address in people[:2]:
        maildir(mails[address].encode())
    ctx.items.land(people[0], {"message_id": "<1>"})

    found = lookup("email.send_later", ctx)
    assert isinstance(found, Receipt)
    assert list(found.data["items"]) == people[:2]
    assert found.data["items"][people[0]] == {"message_id": "<1>"}

    ctx.items.land(people[1], found.data["items"][people[1]])
    assert isinstance(lookup("email.send_later", ctx), Unknown), "it is no proof"
