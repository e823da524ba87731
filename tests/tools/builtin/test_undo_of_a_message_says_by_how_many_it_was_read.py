from typing import Any

import httpx2
import pytest
from pytest_django.fixtures import Settings

from tests.tools.builtin.calls import act, undo
from tests.tools.conftest import NewContext, RunningWorld, point_at, running_world
from tools.builtin import chat
from tools.contract import Context, UndoReceipt

POST, ANNOUNCE = "chat.post_message", "chat.announce"


@pytest.fixture(scope="module")
def own_world(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Where nobody has read anything yet."""
    with running_world(tmp_path_factory.mktemp("unread")) as world:
        yield world


@pytest.fixture
def unread(own_world: RunningWorld, settings: Settings, tmp_path: Any) -> RunningWorld:
    point_at(settings, own_world, tmp_path)
    return own_world


def read(world: RunningWorld, channel: str, ts: str, *people: str) -> None:
    for user in people:
        body = {"channel": channel, "ts": ts, "user": user}
        answer = httpx2.post(f"{world.http}/chat/conversations.mark", json=body)
        assert answer.json()["ok"]


def note(name: str, ctx: Context, receipt: Any) -> str:
    result = undo(name, ctx, receipt)
    assert isinstance(result, UndoReceipt)
    return result.note


def test_where_the_chat_does_not_say_people_may_have_read_it(
    unread: RunningWorld, new_context: NewContext
) -> None:
    ctx = new_context()
    said = note(POST, ctx, act(POST, ctx, channel="#releases"))
    assert said == "The message in #releases was deleted. People may have read it."


@pytest.mark.parametrize(
    ("people", "words"),
    [
        ([], "Nobody had read it yet."),
        (["Ana"], "1 person had read it."),
        (["Ana", "Bo", "Ana"], "2 people had read it."),
    ],
)
def test_where_it_says_they_are_counted(
    people: list[str], words: str, unread: RunningWorld, new_context: NewContext
) -> None:
    earlier = act(POST, new_context())
    read(unread, "#team", earlier.data["ts"], "Ana", "Bo", "Mei")
    ctx = new_context()
    receipt = act(POST, ctx)
    read(unread, "#team", receipt.data["ts"], *people)
    assert note(POST, ctx, receipt) == f"The message in #team was deleted. {words}"


def test_what_was_read_stays_known_after_the_chat_started_anew(
    tmp_path: Any, settings: Settings, new_context: NewContext
) -> None:
    ctx = new_context()
    with running_world(tmp_path / "w") as world:
        point_at(settings, world, tmp_path)
        receipt = act(POST, ctx)
        read(world, "#team", receipt.data["ts"], "Ana")
    with running_world(tmp_path / "w") as world:
        point_at(settings, world, tmp_path)
        assert note(POST, ctx, receipt).endswith("1 person had read it.")


def test_of_an_announcement_all_channels_are_counted_together(
    unread: RunningWorld, new_context: NewContext
) -> None:
    ctx = new_context()
    receipt = act(ANNOUNCE, ctx, channels=["#general", "#finance"])
    items = receipt.data["items"]
    read(unread, "#general", items["#general"]["ts"], "Ana", "Bo")
    read(unread, "#finance", items["#finance"]["ts"], "Mei")
    assert note(ANNOUNCE, ctx, receipt) == (
        "The messages in #finance, #general are deleted. They had been read 3 times."
    )


def test_who_answered_or_put_a_sign_on_it_has_read_it() -> None:
    """As Slack has it, which tells nobody who has read what."""
    message = {"reply_users": ["U1"], "reactions": [{"name": "eyes", "users": ["U1", "U2"]}]}
    assert chat._seen(message) == "At least 2 people had read it."


@pytest.mark.parametrize("ts", ["", "soon", "nan"])
def test_a_mark_that_is_none_is_refused(ts: str, unread: RunningWorld) -> None:
    body = {"channel": "#team", "user": "Ana", "ts": ts}
    answer = httpx2.post(f"{unread.http}/chat/conversations.mark", json=body)
    assert answer.json() == {"ok": False, "error": "invalid_arguments"}
