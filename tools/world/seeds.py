"""What is there when the demo world starts for the first time: old mail, and a few files."""

import mailbox
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from email.utils import format_datetime
from pathlib import Path

BO = "Bo Lindqvist <bo@team.example>"
ANA = "Ana Berg <ana@team.example>"
MEI = "Mei Tanaka <mei@team.example>"
# Whom the payment service cannot charge.
DECLINED_CUSTOMERS = ("Hollow Trading Ltd",)
FINANCE = "Finance <finance@team.example>"

# (days ago, from, to, subject, text)
_MAILS = [
    (
        6,
        BO,
        ANA,
        "Q3 review: which day?",
        "Hi Ana,\n\nfinance closes September on Monday, so the Q3 review could be any day after "
        "that. Tuesday morning is free for me, and for Mei. Does 10:00 work?\n\nBo\n",
    ),
    (
        5,
        ANA,
        BO,
        "Re: Q3 review: which day?",
        "Tuesday at 10:00 is good. Please put it into the team calendar, with finance. I would "
        "like the numbers in a draft before we meet, so that nobody reads them for the first "
        "time on a slide.\n\nAna\n",
    ),
    (
        4,
        BO,
        ANA,
        "Re: Q3 review: which day?",
        "Will do. The draft belongs on release/q4: release/q3 is frozen since Friday.\n\nBo\n",
    ),
    (
        3,
        MEI,
        ANA,
        "Q3 review: September is late",
        "The September figures come in on Monday at noon. July and August are final: revenue 455 "
        "and 461, costs 330 and 335. I would mark September as preliminary.\n\nMei\n",
    ),
    (
        2,
        ANA,
        MEI,
        "Re: Q3 review: September is late",
        "Preliminary is fine, as long as it says so. Send the numbers to finance once they are "
        "in, please.\n\nAna\n",
    ),
    (
        2,
        FINANCE,
        ANA,
        "Travel budget for the autumn",
        "A reminder: trips after 1 October go on the new budget.\n",
    ),
    (
        1,
        BO,
        FINANCE,
        "Acme: invoice 2026-114",
        "Acme agreed to invoice 2026-114: 1,240.00 euros for the chairs and desks. We may charge "
        "them any day now. They would like a receipt on paper.\n\nBo\n",
    ),
    (
        1,
        BO,
        MEI,
        "Printer on the second floor",
        "It is broken again. A ticket would help, nobody reads the note on it.\n\nBo\n",
    ),
]


def ensure_archive(archive: Path) -> None:
    """Make the Maildir with its mails, unless it is there."""
    if archive.exists():
        return
    # Under another name first: a start that dies half-way leaves no half archive behind.
    unfinished = archive.with_name(archive.name + ".new")
    unfinished.parent.mkdir(parents=True, exist_ok=True)
    box = mailbox.Maildir(unfinished, create=True)
    box.clear()
    now = datetime.now(UTC)
    for days, sender, to, subject, text in _MAILS:
        message = EmailMessage()
        message["From"], message["To"], message["Subject"] = sender, to, subject
        message["Date"] = format_datetime(now - timedelta(days=days))
        message.set_content(text)
        box.add(message)
    box.close()
    unfinished.rename(archive)


_FILES = {
    "prices.csv": "item,price\nchair,79\ndesk,240\nlamp,35\n",
    "offer-draft.md": "# Offer\n\nTwelve chairs and three desks, by the end of January.\n",
    "old/todo-2024.txt": "Order chairs\nAsk Mei about the lamps\n",
}


def ensure_files(folder: Path) -> None:
    """Make the folder of files with what is in it, unless something is, or was."""
    own = folder / ".agentruns"
    if (own / "log.jsonl").exists() or (folder.exists() and set(folder.iterdir()) - {own}):
        return
    for name, text in _FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
