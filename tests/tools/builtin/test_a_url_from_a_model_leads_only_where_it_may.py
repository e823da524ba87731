"""http.get and http.request: public addresses only, unless the admin allowed the host."""

import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from socket import create_server
from typing import Any

import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from pytest_django.fixtures import Settings

from agentruns.services.ports import free_ports
from tests.tools.builtin.answering import answering, dripping
from tests.tools.builtin.calls import prepare, tool
from tests.tools.conftest import NewContext
from tools.builtin import http
from tools.builtin.web import _leads_on
from tools.contract import Receipt
from tools.errors import BadArguments, NoEffect
from tools.secrets import MASK

GET, SEND = "http.get", "http.request"


def ask(name: str, new_context: NewContext, url: str, **more: Any) -> Receipt:
    raw = {"url": url, **({"method": "POST", "body": {}} if name == SEND else {}), **more}
    return tool(name).impl.commit(new_context(), tool(name).parse(raw), None)


@pytest.fixture(autouse=True)
def nothing_is_allowed(settings: Settings) -> None:
    settings.HTTP_ALLOWED_HOSTS = []
    settings.HTTP_READ_HOSTS = []


@pytest.mark.parametrize("name", [GET, SEND])
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.1", "0x7f.1", "2130706433"])
def test_what_leads_to_this_machine_is_refused_before_anything_is_sent(
    name: str, host: str, new_context: NewContext
) -> None:
    with answering(200, {}) as server:
        with pytest.raises(NoEffect) as caught:
            ask(name, new_context, f"http://{host}:{server.port}/")
        assert caught.value.code == "not_allowed"
        assert not caught.value.is_passing
    assert server.requests == []


def test_it_is_refused_already_while_it_is_prepared(new_context: NewContext) -> None:
    args = tool(SEND).parse({"method": "POST", "url": "http://localhost:1/"})
    with pytest.raises(NoEffect, match="An admin can allow it") as caught:
        prepare(SEND, new_context(), args)
    assert caught.value.code == "not_allowed"


@pytest.mark.parametrize("with_port", [True, False])
def test_a_host_that_the_admin_allowed_is_reached(
    with_port: bool, new_context: NewContext, settings: Settings
) -> None:
    with answering(200, {"Content-Type": "text/plain"}, "Hello") as server:
        settings.HTTP_ALLOWED_HOSTS = [f"localhost:{server.port}" if with_port else "localhost"]
        receipt = ask(GET, new_context, f"http://localhost:{server.port}/page")
        with pytest.raises(NoEffect):
            ask(GET, new_context, f"http://127.0.0.1:{server.port}/page")
    assert receipt.response == f"http://localhost:{server.port}/page answered 200.\nHello"
    assert [each.path for each in server.requests] == ["/page"]


def test_another_port_of_an_allowed_host_and_port_is_not_allowed(
    new_context: NewContext, settings: Settings
) -> None:
    with answering(200, {}) as server:
        settings.HTTP_ALLOWED_HOSTS = [f"localhost:{server.port + 1}"]
        with pytest.raises(NoEffect):
            ask(GET, new_context, f"http://localhost:{server.port}/")
    assert server.requests == []


def test_a_redirect_to_this_machine_is_not_followed(
    new_context: NewContext, settings: Settings
) -> None:
    """Not even where it might be read without asking."""
    with answering(200, {}) as inside:
        target = {"Location": f"http://127.0.0.1:{inside.port}/secret"}
        with answering(302, target) as outside:
            settings.HTTP_ALLOWED_HOSTS = [f"127.0.0.1:{outside.port}"]
            settings.HTTP_READ_HOSTS = ["127.0.0.1"]
            with pytest.raises(NoEffect) as caught:
                ask(GET, new_context, outside.url)
    assert caught.value.code == "not_allowed"
    assert len(outside.requests) == 1
    assert inside.requests == []


def test_a_redirect_to_another_origin_does_not_get_the_secret(
    new_context: NewContext, settings: Settings
) -> None:
    settings.HTTP_ALLOWED_HOSTS = settings.HTTP_READ_HOSTS = ["127.0.0.1"]
    with answering(200, {}) as other, answering(307, {"Location": other.url}) as first:
        receipt = ask(GET, new_context, first.url, bearer="tok_1")
    assert first.requests[0].headers["Authorization"] == "Bearer tok_1"
    assert "Authorization" not in other.requests[0].headers
    assert "tok_1" not in repr(receipt)


@pytest.mark.parametrize("name", [GET, SEND])
def test_a_secret_that_is_said_back_is_not_kept(
    name: str, new_context: NewContext, settings: Settings
) -> None:
    settings.HTTP_ALLOWED_HOSTS = ["127.0.0.1"]
    said = '{"authorization": "Bearer tok_1"}'
    with answering(200, {"Content-Type": "application/json"}, said) as server:
        receipt = ask(name, new_context, server.url, bearer="tok_1")
    assert server.requests[0].headers["Authorization"] == "Bearer tok_1"
    assert f"Bearer {MASK}" in receipt.response
    assert "tok_1" not in repr(receipt)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_to_where_nobody_agreed_to_is_told_and_not_followed(
    status: int, new_context: NewContext, settings: Settings
) -> None:
    """Else an address that may be read could send on what was written into it."""
    settings.HTTP_ALLOWED_HOSTS = ["127.0.0.1", "localhost"]
    with answering(200, {}) as other:
        for where in (f"http://127.0.0.1:{other.port}/?q=1", f"http://localhost:{other.port}/"):
            with answering(status, {"Location": where}) as first:
                settings.HTTP_READ_HOSTS = [f"127.0.0.1:{first.port}"]
                receipt = ask(GET, new_context, first.url)
            assert len(first.requests) == 1
            assert receipt.data["status"] == status
            assert f"It leads to {where}, which was not read" in receipt.response
    assert other.requests == []


def test_a_redirect_within_a_host_or_to_one_that_may_be_read_is_followed(
    new_context: NewContext, settings: Settings
) -> None:
    settings.HTTP_ALLOWED_HOSTS = ["127.0.0.1"]
    with answering(200, {"Content-Type": "text/plain"}, "Here") as other:
        settings.HTTP_READ_HOSTS = [f"127.0.0.1:{other.port}"]
        with answering(302, {"Location": f"{other.url}/new"}) as first:
            receipt = ask(GET, new_context, first.url)
    assert [each.path for each in other.requests] == ["/new"]
    assert receipt.response.endswith("Here")
    assert receipt.data["url"] == f"{other.url}/new"


@pytest.mark.parametrize(
    ("of", "to", "is_followed"),
    [
        ("http://a.example/1", "http://a.example/2", True),
        ("http://a.example/", "http://A.example/x", True),
        ("http://a.example/", "https://a.example/", True),
        ("http://a.example/", "https://named.example/", True),
        ("https://a.example/", "http://a.example/", False),
        ("http://a.example/", "http://a.example:8080/", False),
        ("http://a.example:8080/", "https://a.example/", False),
        ("http://a.example/", "http://b.example/", False),
        ("http://a.example/", "http://a.example.evil.example/", False),
    ],
)
def test_where_a_redirect_is_followed_to(
    of: str, to: str, is_followed: bool, settings: Settings
) -> None:
    settings.HTTP_READ_HOSTS = ["named.example"]
    assert _leads_on(httpx2.URL(of), httpx2.URL(to)) == is_followed


@pytest.mark.parametrize(
    ("url", "asks"),
    [
        ("https://named.example/a?b=c", False),
        ("https://NAMED.example./a", False),
        ("http://with-port.example:8080/", False),
        ("http://[2001:db8::1]:8080/", False),
        ("http://[2001:db8::2]/", False),
        ("https://xn--bcher-kva.example/", False),
        ("https://b\u00fccher.example/", False),
        ("http://with-port.example/", True),
        ("https://sub.named.example/", True),
        ("https://named.example.evil.example/", True),
        ("https://evil.example/?named.example", True),
        ("https://evil.example/#@named.example", True),
        ("https://evil.example\\.named.example/", True),
        ("https://n\u0430med.example/", True),
        ("http://[2001:db8::1]/", True),
    ],
)
def test_a_read_of_any_host_that_nobody_named_needs_a_person(
    url: str, asks: bool, settings: Settings
) -> None:
    settings.HTTP_READ_HOSTS = [
        *("named.example", "with-port.example:8080", "[2001:db8::1]:8080"),
        *("xn--bcher-kva.example", "[2001:db8::2]"),
    ]
    assert bool(tool(GET).needs_approval({"url": url})) == asks


def test_redirects_in_a_circle_end(new_context: NewContext, settings: Settings) -> None:
    settings.HTTP_ALLOWED_HOSTS = ["127.0.0.1"]
    with answering(302, {"Location": "/"}) as server, pytest.raises(NoEffect) as caught:
        ask(GET, new_context, server.url)
    assert not caught.value.is_passing
    assert len(server.requests) == 6


def test_the_connection_goes_to_the_address_that_was_checked(
    new_context: NewContext, settings: Settings
) -> None:
    """A name that answers differently each time; the Host header has the name all the same."""
    answers = iter([["127.0.0.1"], ["127.0.0.2"]])
    with answering(200, {}) as server:
        settings.HTTP_ALLOWED_HOSTS = [f"moving.example:{server.port}"]
        url = f"http://moving.example:{server.port}/"
        answer = http.guarded(new_context(), "GET", url, resolve=lambda host, port: next(answers))
    assert answer.status_code == 200
    assert server.requests[0].headers["Host"] == f"moving.example:{server.port}"
    assert list(answers) == [["127.0.0.2"]], "it was asked once"


def test_a_name_with_one_private_address_among_public_ones_is_refused(
    new_context: NewContext,
) -> None:
    def mixed(host: str, port: int) -> list[str]:
        return ["93.184.215.14", "127.0.0.1"]

    with pytest.raises(NoEffect):
        http.guarded(new_context(), "GET", "http://mixed.example/", resolve=mixed)


def test_a_name_that_nobody_answers_for_does_not_keep_us(new_context: NewContext) -> None:
    answered = threading.Event()

    def silent(host: str, port: int) -> list[str]:
        answered.wait(30)
        return ["93.184.215.14"]

    begin = time.monotonic()
    with pytest.raises(httpx2.ConnectError, match="not looked up in time"):
        http.guarded(new_context(timeout=0.3), "GET", "http://silent.example/", resolve=silent)
    assert time.monotonic() - begin < 5
    answered.set()


def test_over_tls_the_name_is_asked_for_and_a_foreign_certificate_is_no_effect(
    new_context: NewContext, settings: Settings, tmp_path: Path
) -> None:
    settings.HTTP_ALLOWED_HOSTS = ["secure.example"]
    with tls_server(tmp_path) as (port, names), pytest.raises(NoEffect) as caught:
        http.send(new_context(), "POST", f"https://secure.example:{port}/", ask=at_home)
    assert caught.value.code == "unreachable"
    assert names == ["secure.example"]


def at_home(ctx: Any, method: str, url: str, **options: Any) -> httpx2.Response:
    return http.guarded(ctx, method, url, resolve=lambda host, port: ["127.0.0.1"], **options)


@pytest.mark.parametrize("ask", [http.guarded, http.bounded])
def test_a_server_that_sends_a_byte_now_and_then_does_not_keep_us(
    ask: Any, new_context: NewContext, settings: Settings
) -> None:
    settings.HTTP_ALLOWED_HOSTS = ["127.0.0.1"]
    with dripping() as port:
        begin = time.monotonic()
        with pytest.raises(httpx2.ReadTimeout):
            ask(new_context(timeout=0.5), "GET", f"http://127.0.0.1:{port}/")
        assert time.monotonic() - begin < 5


def test_no_more_of_an_answer_is_read_than_a_mebibyte(
    new_context: NewContext, settings: Settings
) -> None:
    settings.HTTP_ALLOWED_HOSTS = ["127.0.0.1"]
    with answering(200, {"Content-Type": "text/plain"}, "x" * (3 * 1024 * 1024)) as server:
        answer = http.guarded(new_context(), "GET", server.url)
        receipt = ask(GET, new_context, server.url)
    assert len(answer.content) == 1024 * 1024
    assert len(receipt.response) < 21_000


@pytest.mark.parametrize("kind", ["image/png", "application/octet-stream"])
def test_what_is_no_text_is_only_measured(
    kind: str, new_context: NewContext, settings: Settings
) -> None:
    settings.HTTP_ALLOWED_HOSTS = ["127.0.0.1"]
    with answering(200, {"Content-Type": kind}, "12345") as server:
        receipt = ask(GET, new_context, server.url)
    assert receipt.response.endswith("(5 bytes, no text)")


def test_what_nobody_answers_can_be_read_again_later(
    new_context: NewContext, settings: Settings
) -> None:
    settings.HTTP_ALLOWED_HOSTS = ["127.0.0.1"]
    (port,) = free_ports(1)
    with pytest.raises(NoEffect) as caught:
        ask(GET, new_context, f"http://127.0.0.1:{port}/")
    assert caught.value.is_passing


@pytest.mark.parametrize("status", [307, 308])
def test_who_moved_says_that_nothing_was_done(
    status: int, new_context: NewContext, settings: Settings
) -> None:
    settings.HTTP_ALLOWED_HOSTS = ["127.0.0.1"]
    location = {"Location": "http://127.0.0.1:1/new"}
    with answering(status, location) as server, pytest.raises(NoEffect) as caught:
        ask(SEND, new_context, server.url)
    assert caught.value.code == "moved"
    assert "http://127.0.0.1:1/new" in str(caught.value)


@pytest.mark.parametrize("status", [301, 302, 303])
def test_who_answers_an_effect_with_another_redirect_leaves_a_doubt(
    status: int, new_context: NewContext, settings: Settings
) -> None:
    settings.HTTP_ALLOWED_HOSTS = ["127.0.0.1"]
    with (
        answering(status, {"Location": "/done"}) as server,
        pytest.raises(httpx2.HTTPStatusError),
    ):
        ask(SEND, new_context, server.url)
    assert len(server.requests) == 1


def test_an_effect_is_sent_with_its_key_its_body_and_the_secret(
    new_context: NewContext, settings: Settings
) -> None:
    settings.HTTP_ALLOWED_HOSTS = ["127.0.0.1"]
    ctx = new_context()
    raw = {"method": "PUT", "url": "", "body": {"a": [1]}, "headers": {"X-A": "b"}, "bearer": "t"}
    with answering(201, {}) as server:
        args = tool(SEND).parse(raw | {"url": server.url})
        receipt = tool(SEND).impl.commit(ctx, args, prepare(SEND, ctx, args))
    (asked,) = server.requests
    assert (asked.method, asked.body) == ("PUT", '{"a":[1]}')
    assert asked.headers["Idempotency-Key"] == ctx.request_id
    assert asked.headers["Authorization"] == "Bearer t"
    assert asked.headers["X-A"] == "b"
    assert receipt.data["status"] == 201


@pytest.mark.parametrize(
    "changes",
    [
        {"url": "ftp://host/file"},
        {"url": "file:///etc/passwd"},
        {"url": "https://"},
        {"url": "https://user:word@host/"},
        {"url": "https://host\\@other/"},
        {"url": "https://host/a b"},
        {"headers": {"Authorization": "Bearer x"}},
        {"headers": {"cookie": "a=b"}},
        {"headers": {"Host": "other"}},
        {"headers": {"Content-Length": "0"}},
        {"headers": {"Proxy-Authorization": "x"}},
        {"headers": {"Idempotency-Key": "another"}},
        {"headers": {"user-agent": "another"}},
        {"headers": {"X-A": "1", "x-a": "2"}},
        {"url": "https://host/a\u2028b"},
        {"url": "https://host/a\x85b"},
        {"headers": {"X-A": "b\r\nX-C: d"}},
        {"headers": {"X A": "b"}},
        {"url": "http://host/", "bearer": "in-the-clear"},
    ],
)
def test_arguments_that_decide_what_is_not_the_models_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(BadArguments):
        tool(GET).parse({"url": "https://host/"} | changes)


@pytest.mark.parametrize("token", ["s3cr3t\nof", "s3cr3t of", "s3cr3té", "s3cr3t" * 700])
def test_a_token_that_cannot_be_sent_is_refused_without_repeating_it(token: str) -> None:
    with pytest.raises(BadArguments) as refused:
        tool(GET).parse({"url": "https://host/", "bearer": token})
    assert "bearer" in str(refused.value)
    assert "s3cr3t" not in f"{refused.value} {refused.value.__cause__}"


@contextmanager
def tls_server(folder: Path) -> Iterator[tuple[int, list[str]]]:
    """Takes one connection, with a certificate that nobody knows; yields the names asked for."""
    names: list[str] = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(_certificate(folder))
    context.sni_callback = lambda _socket, name, _context: names.append(name)

    def serve() -> None:
        connection, _peer = listener.accept()
        with connection:
            try:
                context.wrap_socket(connection, server_side=True).close()
            except OSError:
                return

    with create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        yield listener.getsockname()[1], names
        thread.join()


def _certificate(folder: Path) -> Path:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "secure.example")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    path = folder / "both.pem"
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    return path
