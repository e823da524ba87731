import mailbox
from pathlib import Path

import pytest
from pytest_django.fixtures import Settings

from tests.tools.builtin.calls import act, arguments, prepare, tool
from tests.tools.conftest import NewContext, RunningWorld
from tools.errors import BadArguments, NoEffect
from tools.journal import Journal
from tools.world.journal import MAIL


def test_search_finds_every_word_in_subject_sender_or_body_newest_first(
    world: RunningWorld, new_context: NewContext
) -> None:
    search = tool("mail.search")
    args = search.parse({"query": "REVIEW bo"})
    mails = search.impl.commit(new_context(), args, None).data["mails"]
    assert [mail["date"] for mail in mails] == sorted((m["date"] for m in mails), reverse=True)
    assert mails
    assert all(set(mail) == {"subject", "from", "date", "snippet"} for mail in mails)
    only = search.parse({"query": "printer second floor"})
    (one,) = search.impl.commit(new_context(), only, None).data["mails"]
    assert one["from"].startswith("Bo")


def test_search_reads_on_past_a_mail_that_nobody_can_read(
    world: RunningWorld, new_context: NewContext, settings: Settings, tmp_path: Path
) -> None:
    box = mailbox.Maildir(tmp_path / "box", create=True)
    box.add(b"\xff\xfe\x00 no mail at all \x80 review")
    box.add(b"Content-Type: text/plain; charset=x-none\nSubject: review\nDate: never\n\n\x80\n")
    box.add(b"Subject: =?utf-8?q?=C3=BCber?= review\nDate: Tue, 4 Mar 2031 10:00:00\n\nhello\n")
    settings.MAIL_ARCHIVE = tmp_path / "box"
    search = tool("mail.search")
    receipt = search.impl.commit(new_context(), search.parse({"query": "review"}), None)
    assert receipt.data["mails"][0]["subject"] == "über review"


def test_a_missing_archive_is_said_plainly(
    new_context: NewContext, settings: Settings, tmp_path: Path
) -> None:
    settings.MAIL_ARCHIVE = tmp_path / "none"
    search = tool("mail.search")
    with pytest.raises(NoEffect, match="no mail archive"):
        search.impl.commit(new_context(), search.parse({"query": "x"}), None)


def test_a_mail_arrives_as_it_was_written(world: RunningWorld, new_context: NewContext) -> None:
    ctx = new_context()
    act("email.send", ctx)
    entries = Journal(world.folder / MAIL).entries()
    (mail,) = [entry for entry in entries if ctx.request_id in entry["message_id"]]
    assert mail["subject"] == "Q3 review on Tuesday – 季度"
    assert mail["body"] == "Hello,\n.\nTuesday at ten. Grüße\n"
    assert mail["to"] == ["ana@team.example", "bo@team.example"]


@pytest.mark.parametrize(
    "changes",
    [
        {"to": []},
        {"to": ["nobody"]},
        {"to": ["a@team.example\nBcc: b@team.example"]},
        {"to": ["a@team.example"] * 51},
        {"subject": "Hello\nBcc: b@team.example"},
        {"subject": "Hello\r\n\r\nbody"},
        {"subject": "  "},
        {"body": ""},
    ],
)
def test_a_mail_that_could_go_elsewhere_or_says_nothing_is_refused(
    changes: dict[str, object],
) -> None:
    with pytest.raises(BadArguments):
        arguments("email.send", **changes)


def test_a_persons_name_with_line_breaks_cannot_add_a_header(new_context: NewContext) -> None:
    ctx = new_context()
    object.__setattr__(ctx, "actor", "Ana\nBcc: everybody@team.example")
    draft = prepare("email.send", ctx, arguments("email.send"))
    assert draft is not None
    head = draft.data["mail"].partition("\r\n\r\n")[0]
    assert not any(line.startswith("Bcc") for line in head.splitlines())
