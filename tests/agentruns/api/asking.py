"""One line per request."""

from typing import Any

from django.http import HttpResponse
from django.test import Client

JSON = "application/json"
PROBLEM = "application/problem+json"


def post(client: Client, path: str, body: Any = None, **more: Any) -> Any:
    """POST `body` as JSON, or nothing at all."""
    address = f"/api/v1/{path}"
    if body is None:
        return client.generic("POST", address, **more)
    return client.post(address, body, content_type=JSON, **more)


def get(client: Client, path: str, **query: Any) -> Any:
    return client.get(f"/api/v1/{path}", query)


def is_problem(response: HttpResponse, status: int, code: str) -> dict[str, Any]:
    """The body, once it is sure that it is this problem, told in full and without a trace."""
    assert (response.status_code, response["Content-Type"]) == (status, PROBLEM), response.content
    body: dict[str, Any] = response.json()  # type: ignore[attr-defined]
    assert body["code"] == code
    assert body["status"] == status
    assert body["type"] == f"urn:agentruns:problem:{code}"
    assert body["title"]
    assert body["detail"]
    assert "Traceback" not in response.content.decode()
    return body
