"""Who asks, over real sockets: what a header says counts only if a trusted proxy sent it (A7)."""

import http.client
import json
from pathlib import Path

import pytest

from agentruns import demolinks
from agentruns.services.stack import Stack

pytestmark = pytest.mark.stack

WRONG = json.dumps({"username": "who", "password": "no"})
LIMIT = 8


def ask(stack: Stack, method: str, path: str, **headers: str) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("127.0.0.1", int(stack.env["PORT"]), timeout=20)
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    body = WRONG if method == "POST" else None
    connection.request(method, path, body, {"Content-Type": "application/json"} | sent)
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer


def tries(stack: Stack, addresses: list[str], **headers: str) -> list[int]:
    path = "/api/v1/auth/token"
    return [
        ask(stack, "POST", path, X_Forwarded_For=address, **headers).status for address in addresses
    ]


def test_nobody_is_believed_unless_a_proxy_is_named(stack: Stack) -> None:
    said = tries(stack, [f"203.0.113.{number}" for number in range(LIMIT + 2)])
    assert said == [401] * (LIMIT - 1) + [429] * 3


def test_a_body_that_comes_in_chunks_is_read(stack: Stack) -> None:
    """Else a Stop would be told nothing of what it was asked to keep."""
    connection = http.client.HTTPConnection("127.0.0.1", int(stack.env["PORT"]), timeout=20)
    kind = {"Content-Type": "application/json"}
    body = [WRONG[:5].encode(), WRONG[5:].encode()]
    connection.request("POST", "/api/v1/auth/token", iter(body), kind, encode_chunked=True)
    answer = json.loads(connection.getresponse().read())
    connection.close()
    assert answer["code"] != "bad_input"  # as of a body that has no name in it


def test_a_named_proxy_says_who_asks_and_over_what(scratch: Path) -> None:
    proxied = {"HTTPS": "1", "TRUSTED_PROXIES": "127.0.0.1"}
    folder = scratch / "behind a proxy"
    with Stack(folder, workers=False, world=False, durable=False, env=proxied) as stack:
        secure = {"X_Forwarded_Proto": "https"}
        forged = [f"203.0.113.{number}, 198.51.100.9" for number in range(LIMIT)]
        assert tries(stack, forged, **secure) == [401] * (LIMIT - 1) + [429]
        assert tries(stack, ["198.51.100.10"], **secure) == [401]

        assert ask(stack, "GET", "/healthz").status == 200
        assert ask(stack, "GET", "/sign-in/").headers["Location"].startswith("https://")
        page = ask(stack, "GET", "/sign-in/", **secure)
        assert page.status == 200
        assert page.headers["Strict-Transport-Security"] == "max-age=3600; includeSubDomains"
        assert "; Secure" in page.headers["Set-Cookie"]
        link = demolinks.path_of("ada", stack.link_secret)
        assert ask(stack, "GET", link, **secure).status == 404
