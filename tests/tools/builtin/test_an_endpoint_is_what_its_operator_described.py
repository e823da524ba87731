"""HTTP_ENDPOINTS: a tool for each endpoint, with the look-up and the undo that were given."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from django.core.exceptions import ImproperlyConfigured

from tests.tools.builtin.answering import answering
from tests.tools.builtin.calls import act, lookup, tool, undo
from tests.tools.conftest import NewContext, RunningWorld
from tools import registry
from tools.builtin import endpoints
from tools.contract import CannotUndo, Changed, Receipt, Tier, UndoReceipt, Unknown
from tools.errors import BadArguments, NoEffect
from tools.secrets import MASK

Register = Callable[..., str]


@pytest.fixture
def register() -> Iterator[Register]:
    """Registers an endpoint, for one test; returns the tool's name."""
    names: list[str] = []

    def do(**described: Any) -> str:
        raw = {"name": "mine", "title": "Tell it", "explains": "Tells it.", **described}
        endpoints.register(endpoints.Endpoint.model_validate(raw))
        names.append("http.mine")
        return names[-1]

    yield do
    for name in names:
        registry.unregister(name)


def call(name: str, new_context: NewContext) -> Receipt:
    return tool(name).impl.commit(new_context(), tool(name).parse({"body": {"a": 1}}), None)


def test_with_a_compensating_request_it_is_compensable_and_without_irreversible(
    register: Register,
) -> None:
    assert tool("http.hooks").tier is Tier.COMPENSABLE
    plain = tool(register(url="https://host/x"))
    assert plain.tier is Tier.IRREVERSIBLE
    assert (plain.has_lookup, plain.has_compensate) == (False, False)
    assert plain.undo_note


def test_the_model_writes_the_body_and_nothing_else(register: Register) -> None:
    named = tool(register(url="https://host/x"))
    assert set(named.json_schema()["properties"]) == {"body"}
    with pytest.raises(BadArguments):
        named.parse({"url": "https://other/"})


def test_the_operators_headers_go_along_with_secrets_from_the_environment(
    register: Register, new_context: NewContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A URL of the operator's may be inside."""
    monkeypatch.setenv("WAREHOUSE_TOKEN", "tok_1")
    answer = {"ETag": '"7"', "Content-Type": "text/plain"}
    with answering(200, answer, "Hello, tok_1.") as server:
        headers = {"Authorization": "Bearer ${WAREHOUSE_TOKEN}"}
        receipt = call(register(url=f"{server.url}/x", headers=headers), new_context)
    (asked,) = server.requests
    assert (asked.method, asked.path, asked.body) == ("POST", "/x", '{"a":1}')
    assert asked.headers["Authorization"] == "Bearer tok_1"
    assert receipt.data == {"endpoint": "mine", "etag": '"7"'}
    assert receipt.response == f"“Tell it” was done. Hello, {MASK}."


@pytest.mark.parametrize(("status", "error"), [(307, NoEffect), (303, httpx2.HTTPStatusError)])
def test_a_redirect_is_not_followed(
    status: int, error: type[Exception], register: Register, new_context: NewContext
) -> None:
    with answering(status, {"Location": "/elsewhere"}) as server, pytest.raises(error):
        call(register(url=server.url), new_context)
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [302, 403, 500])
def test_a_status_url_that_says_neither_yes_nor_no_decides_nothing(
    status: int, register: Register, new_context: NewContext
) -> None:
    with answering(status, {}) as server:
        name = register(url="https://host/x", status_url=f"{server.url}/{{request_id}}")
        ctx = new_context()
        assert lookup(name, ctx) == Unknown(f"the status URL answered {status}")
    assert [each.path for each in server.requests] == [f"/{ctx.request_id}"]


@pytest.mark.parametrize(
    ("body", "is_there"),
    [
        ('{"key": "%s"}', True),
        ('{"data": {"deliveries": [{"id": 1}, {"key": "%s"}]}}', True),
        ('{"deliveries": []}', False),
        ('{"deliveries": [{"key": "req_of_somebody_else"}]}', False),
        ('{"note": "not %s"}', False),
        ("%s", False),
    ],
)
def test_a_status_url_says_yes_with_the_request_id_alone(
    body: str, is_there: bool, register: Register, new_context: NewContext
) -> None:
    """N17: it may answer with whatever it has."""
    ctx = new_context()
    with answering(200, {}, body.replace("%s", ctx.request_id)) as server:
        name = register(url="https://host/x", status_url=f"{server.url}/?key={{request_id}}")
        found = lookup(name, ctx)
    assert isinstance(found, Receipt if is_there else Unknown)


@pytest.mark.parametrize(
    ("status", "result"),
    [
        (200, UndoReceipt),
        (404, UndoReceipt),
        (409, Changed),
        (412, Changed),
        (303, CannotUndo),
        (403, CannotUndo),
    ],
)
def test_what_the_compensating_request_was_answered_is_what_undo_says(
    status: int, result: type, register: Register, new_context: NewContext
) -> None:
    with answering(status, {}) as server:
        undoing = {"method": "PUT", "url": f"{server.url}/{{request_id}}", "body": {"off": True}}
        name, ctx = register(url="https://host/x", undo=undoing), new_context()
        receipt = Receipt({"endpoint": "mine", "etag": '"7"'})
        assert isinstance(undo(name, ctx, receipt), result)
    (asked,) = server.requests
    assert (asked.method, asked.path, asked.body) == ("PUT", f"/{ctx.request_id}", '{"off":true}')
    assert asked.headers["If-Match"] == '"7"'


def test_an_undo_without_an_answer_is_tried_again(
    register: Register, new_context: NewContext
) -> None:
    with answering(500, {}) as server:
        undoing = {"method": "DELETE", "url": f"{server.url}/{{request_id}}"}
        name = register(url="https://host/x", undo=undoing)
        with pytest.raises(httpx2.HTTPStatusError):
            undo(name, new_context(), Receipt({"endpoint": "mine"}))


def test_in_the_demo_undo_says_what_stays(world: RunningWorld, new_context: NewContext) -> None:
    ctx = new_context()
    result = undo("http.hooks", ctx, act("http.hooks", ctx))
    assert result.note == (
        "“Notify the warehouse” was taken back. What followed from it meanwhile stays."
    )


GOOD = "name: one, title: One, explains: One thing., url: 'https://host/x'"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- {name: one}", "0.title: Field required"),
        (f"- {{{GOOD}, colour: red}}", "0.colour: Extra inputs are not permitted"),
        (f"- {{{GOOD}, method: GET}}", "0.method: Input should be 'POST', 'PUT', "),
        (f"- {{{GOOD}, undo: {{method: DELETE, url: 'ftp://{{request_id}}'}}}}", "0.undo.url: "),
        (f"- {{{GOOD}, status_url: 'host/{{request_id}}'}}", "must begin with https:// or http://"),
        (f"- {{{GOOD}, status_url: 'https://host/x'}}", "write {request_id} in it"),
        (f"- {{{GOOD}, undo: {{method: DELETE, url: 'https://host/x'}}}}", "write {request_id} in"),
        (f"- {{{GOOD}, headers: {{A: '${{NO_SUCH}}'}}}}", "no variable NO_SUCH"),
        (f"- {{{GOOD}}}\n- {{{GOOD}}}", "the name one is taken"),
        (f"- {{{GOOD.replace('name: one', 'name: request')}}}", "the name request is taken"),
        ("one: two", "Input should be a valid list"),
        ("- {", "it is no YAML"),
    ],
)
def test_a_file_that_is_not_right_says_where(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "endpoints.yaml"
    path.write_text(text)
    with pytest.raises(ImproperlyConfigured) as caught:
        endpoints.load(path)
    assert str(path) in str(caught.value)
    assert said in str(caught.value)


def test_a_file_that_is_right_or_empty_is_read(tmp_path: Path) -> None:
    path = tmp_path / "endpoints.yaml"
    path.write_text(f"- {{{GOOD}}}")
    (one,) = endpoints.load(path)
    assert (one.name, one.method, one.url) == ("one", "POST", "https://host/x")
    path.write_text("# nothing yet\n")
    assert endpoints.load(path) == []


def test_a_file_that_is_not_there_is_said_plainly(tmp_path: Path) -> None:
    with pytest.raises(ImproperlyConfigured, match="No such file"):
        endpoints.load(tmp_path / "none.yaml")
