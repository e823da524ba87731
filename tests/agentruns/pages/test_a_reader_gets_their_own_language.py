"""What an action does is said in the reader's language, whatever the worker's was."""

import pytest
from django.contrib.auth.models import User

from agentruns.models import ToolCall
from tests.acting import message, proposed
from tests.agentruns.pages.conftest import Browser
from tests.agentruns.pages.reading import words

pytestmark = pytest.mark.django_db(transaction=True)


def test_an_action_reads_in_the_language_of_the_page(owner: User, browser: Browser) -> None:
    run = proposed(owner, message("Dinner at seven"))
    client = browser(owner)
    assert "Message to #team: “Dinner at seven”" in words(client.get(f"/runs/{run.pk}/").content)
    client.post("/language/", {"language": "zh-hans", "next": "/"})
    assert "发到 #team 的消息：“Dinner at seven”" in words(client.get(f"/runs/{run.pk}/").content)


def test_a_call_of_a_tool_that_has_changed_since_reads_as_it_was_written_down(owner: User) -> None:
    run = proposed(owner, message("Dinner at seven"))
    call = ToolCall.objects.get(run=run)
    call.tool_revision, call.summary = "an older one", "As it was"
    assert call.in_words == "As it was"
