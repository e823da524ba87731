"""Case C7 and E6: what is known not to have happened, and what nobody knows."""

from collections.abc import Callable

import httpx2
import pytest
from pytest_django.fixtures import Settings

from agentruns.drill.faults import SERVICES
from agentruns.services.ports import free_ports
from tests.drill.over_http import until
from tests.tools.builtin.answering import answering
from tests.tools.builtin.calls import EFFECTS, WITH_LOOKUP, act, lookup
from tests.tools.conftest import NewContext, RunningWorld
from tools.builtin import http
from tools.contract import NotLanded, Receipt
from tools.errors import NoEffect, Unclear

Ask = Callable[..., httpx2.Response]


@pytest.mark.parametrize("name", EFFECTS)
def test_a_refusal_is_known_to_have_no_effect(
    name: str, world: RunningWorld, new_context: NewContext
) -> None:
    world.fault(SERVICES[name], "refuse")
    ctx = new_context()
    with pytest.raises(NoEffect) as caught:
        act(name, ctx)
    assert (caught.value.code, caught.value.is_passing) == ("refused", False)
    assert world.effects(ctx) == []


@pytest.mark.parametrize("name", EFFECTS)
def test_a_refused_connection_is_known_to_have_no_effect(
    name: str, world: RunningWorld, new_context: NewContext, settings: Settings
) -> None:
    (port,) = free_ports(1)
    settings.SMTP_URL = f"smtp://127.0.0.1:{port}"
    for setting in (
        "CALDAV_URL",
        "CHAT_URL",
        "TICKETS_URL",
        "GIT_API_URL",
        "HOOKS_URL",
        "PAYMENTS_URL",
    ):
        setattr(settings, setting, f"http://127.0.0.1:{port}/")
    settings.HTTP_ALLOWED_HOSTS = ["127.0.0.1"]
    ctx = new_context()
    with pytest.raises(NoEffect) as caught:
        act(name, ctx)
    assert caught.value.is_passing
    assert world.effects(ctx) == []


@pytest.mark.parametrize("status", [300, 301, 302, 303])
def test_a_redirect_leaves_doubt_whoever_sent(status: int, new_context: NewContext) -> None:
    with answering(status, {}) as server, pytest.raises(httpx2.HTTPStatusError):
        http.send(new_context(), "POST", server.url)


@pytest.mark.parametrize("value", ["s3cr3t\r\nX-A: b", "s3cr3té"])
def test_a_header_that_cannot_be_sent_means_that_nothing_was(
    value: str, new_context: NewContext
) -> None:
    with answering(200, {}) as server, pytest.raises(NoEffect) as caught:
        http.send(new_context(), "POST", server.url, headers={"Authorization": value})
    assert server.requests == []
    assert "s3cr3t" not in f"{caught.value} {caught.value.data} {caught.value.__cause__}"


@pytest.mark.parametrize("ask", [http.request, http.bounded])
@pytest.mark.parametrize(
    "charset", ["zlib", "rot13", "undefined", "punycode", "idna", "utf-7", "cp037", "no-such"]
)
def test_an_answer_counts_in_whatever_it_says_that_it_is_written(
    charset: str, ask: Ask, new_context: NewContext
) -> None:
    kind = {"Content-Type": f"text/plain; charset={charset}"}
    with answering(200, kind, "Schön") as server:
        assert http.send(new_context(), "POST", server.url, ask=ask).text == "Schön"
    with answering(403, kind, "Schön") as server, pytest.raises(NoEffect) as caught:
        http.send(new_context(), "POST", server.url, ask=ask)
    assert caught.value.data["answer"] == "Schön"


@pytest.mark.parametrize("charset", ["utf-8", "UTF8", "latin1", "windows-1252", "iso-8859-15"])
def test_an_answer_is_read_in_the_encoding_of_the_web_that_it_names(
    charset: str, new_context: NewContext
) -> None:
    kind = {"Content-Type": f"text/plain; charset={charset}"}
    with answering(200, kind, "Schön".encode(charset)) as server:
        assert http.request(new_context(), "GET", server.url).text == "Schön"


@pytest.mark.parametrize("name", [name for name in EFFECTS if name != "git.open_draft"])
def test_who_has_too_much_to_do_is_asked_again_later(
    name: str, world: RunningWorld, new_context: NewContext
) -> None:
    world.fault(SERVICES[name], "busy", seconds=7)
    ctx = new_context()
    with pytest.raises(NoEffect) as caught:
        act(name, ctx)
    assert caught.value.is_passing
    assert caught.value.retry_after == (None if name == "email.send" else 7.0)
    assert world.effects(ctx) == []
    act(name, ctx)
    assert len(world.effects(ctx)) == 1


ANSWERS: dict[str, tuple[int, dict[str, str], float | None]] = {
    "too many requests": (429, {}, None),
    "too many requests, and until when": (429, {"Retry-After": "12"}, 12.0),
    "a date": (503, {"Retry-After": "Fri, 31 Dec 1999 23:59:59 GMT"}, -1.0),
}


@pytest.mark.parametrize(("status", "headers", "after"), ANSWERS.values(), ids=ANSWERS)
def test_when_to_come_again_is_read_from_the_answer(
    new_context: NewContext, status: int, headers: dict[str, str], after: float | None
) -> None:
    with answering(status, headers) as server, pytest.raises(NoEffect) as caught:
        http.send(new_context(), "POST", server.url)
    assert caught.value.is_passing
    if after is not None and after < 0:
        assert caught.value.retry_after is not None
        assert caught.value.retry_after < 0
    else:
        assert caught.value.retry_after == after


@pytest.mark.parametrize("said", ["", "soon", "Fri, 31 Dec 1999 23:59:59 -0000"])
def test_503_that_does_not_say_when_is_in_doubt(new_context: NewContext, said: str) -> None:
    headers = {"Retry-After": said} if said else {}
    with answering(503, headers) as server, pytest.raises(httpx2.HTTPStatusError):
        http.send(new_context(), "POST", server.url)


@pytest.mark.parametrize("mode", ["drop_after", "error_after", "delay"])
@pytest.mark.parametrize("name", EFFECTS)
def test_an_effect_without_a_clear_answer_is_in_doubt_never_failed(
    name: str, mode: str, world: RunningWorld, new_context: NewContext
) -> None:
    world.fault(SERVICES[name], mode, seconds=3.0)
    ctx = new_context(timeout=1.0)
    with pytest.raises(Exception) as caught:
        act(name, ctx)
    assert not isinstance(caught.value, NoEffect)
    assert len(world.effects(ctx)) == 1


@pytest.mark.parametrize("name", [each for each in EFFECTS if SERVICES[each] != "git"])
def test_a_system_that_acts_late_has_nothing_at_first_and_then_one_effect(
    name: str, world: RunningWorld, new_context: NewContext
) -> None:
    """L1: “not found” is the truth, and “not landed” would not be."""
    world.fault(SERVICES[name], "late", seconds=1.5)
    ctx = new_context()
    with pytest.raises(Exception) as caught:
        act(name, ctx)
    assert not isinstance(caught.value, NoEffect)
    assert world.effects(ctx) == []
    if name in WITH_LOOKUP:
        assert lookup(name, ctx) == NotLanded()

    until(lambda: world.effects(ctx), bool)

    assert len(world.effects(ctx)) == 1
    if name in WITH_LOOKUP:
        assert isinstance(lookup(name, ctx), Receipt)


@pytest.mark.parametrize("mode", ["drop_after", "error_after"])
@pytest.mark.parametrize("name", WITH_LOOKUP)
def test_lookup_finds_the_effect_whose_answer_was_lost(
    name: str, mode: str, world: RunningWorld, new_context: NewContext
) -> None:
    world.fault(SERVICES[name], mode)
    ctx = new_context()
    with pytest.raises(Exception):  # noqa: B017  (which one is the test above)
        act(name, ctx)
    assert isinstance(lookup(name, ctx), Receipt)
    assert len(world.effects(ctx)) == 1


def test_a_chat_that_says_no_with_status_200_had_no_effect(
    world: RunningWorld, new_context: NewContext
) -> None:
    ctx = new_context()
    with pytest.raises(NoEffect) as caught:
        act("chat.post_message", ctx, channel="#nowhere")
    assert caught.value.code == "channel_not_found"
    assert world.effects(ctx) == []


def test_a_mail_with_one_refused_recipient_goes_to_nobody(
    world: RunningWorld, new_context: NewContext
) -> None:
    world.fault("smtp", "refuse", times=1)
    ctx = new_context()
    with pytest.raises(NoEffect):
        act("email.send", ctx, to=["refused@team.example", "bo@team.example"])
    assert world.effects(ctx) == []


@pytest.mark.parametrize(
    ("name", "setting", "answer"),
    [
        ("chat.post_message", "CHAT_URL", '{"ok": true, "message": {"client_msg_id": "req_x"}}'),
        ("tickets.create", "TICKETS_URL", '{"id": "T-1", "key": "req_x", "version": 1}'),
        (
            "payments.authorize_capture",
            "PAYMENTS_URL",
            '{"id": "A-1", "status": "authorized", "metadata": {"request_id": "req_x"}}',
        ),
    ],
)
def test_an_answer_that_names_another_call_is_no_receipt(
    name: str, setting: str, answer: str, settings: Settings, new_context: NewContext
) -> None:
    """N17."""
    with answering(200, {}, answer) as server:
        setattr(settings, setting, server.url)
        with pytest.raises(Unclear, match="about something else than this call"):
            act(name, new_context())
