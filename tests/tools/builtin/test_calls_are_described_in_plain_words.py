import pytest
from django.utils import translation

from tests.tools.builtin.calls import arguments, tool
from tools import registry


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (
            "email.send",
            "Mail “Q3 review on Tuesday – 季度” to ana@team.example, bo@team.example",
        ),
        ("calendar.create_event", "Meeting “Q3 review”, Tue 4 Mar, 10:00, 2 people"),
        ("calendar.cancel_event", "Cancel the meeting “Team lunch”, Wed 5 Mar, 13:00"),
        (
            "calendar.move_event",
            "Move the meeting “Team lunch” from Wed 5 Mar, 13:00 to Thu 6 Mar, 13:30",
        ),
        ("chat.post_message", "Message to #team: “The review is on Tuesday.”"),
        ("chat.announce", "Message to #team: “The review is on Tuesday.”"),
        ("http.hooks", 'Notify the warehouse: {"event":"numbers.ready"}'),
        ("tickets.create", "Ticket “Printer”"),
        (
            "payments.authorize_capture",
            "Charge Acme Ltd 1,240.00\u00a0EUR for “Invoice 2026-114”",
        ),
    ],
)
def test_a_call_is_one_plain_line(name: str, words: str) -> None:
    assert tool(name).describe(arguments(name)) == words


def test_many_recipients_are_counted() -> None:
    args = arguments("email.send", to=[f"p{n}@team.example" for n in range(5)])
    assert tool("email.send").describe(args).endswith("p2@team.example and 2 more")


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_every_tool_has_a_title_and_says_what_it_does(language: str) -> None:
    with translation.override(language):
        for item in registry.all():
            assert item.title != item.name
            assert item.explains
