"""Each operation of a document is a tool; a call is the request that the document describes."""

import json
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
import yaml
from pytest_django.fixtures import Settings

from tests.tools.builtin.answering import dripping
from tests.tools.imports.calls import Caller
from tests.tools.imports.shop import DOCUMENT, Shop, shop
from tools import registry
from tools.errors import BadArguments, NoEffect, Unclear
from tools.imports import catalogue, hints, sources
from tools.imports.models import ImportedTool, ToolSource
from tools.imports.offers import ImportProblem, Listing
from tools.models import Tool

pytestmark = pytest.mark.django_db


@pytest.fixture
def there() -> Iterator[Shop]:
    with shop() as running:
        yield running


def source(address: str, **more: object) -> ToolSource:
    return ToolSource(slug="shop", kind=ToolSource.Kind.OPENAPI, address=address, **more)


def look(address: str, **more: object) -> catalogue.Plan:
    here = ToolSource.objects.filter(pk="shop").first() or source(address, **more)
    return catalogue.take(here, sources.look(here), by=None)


def as_yaml(tmp_path: Path, text: str) -> Listing:
    path = tmp_path / "document.yaml"
    path.write_text(text)
    return sources.look(source(str(path)))


def test_its_operations_arrive_disabled_with_the_method_as_a_hint(there: Shop) -> None:
    done = look(there.address)

    assert done.named("new") == ["shop.create_order", "shop.get_order", "shop.list_orders"]
    assert not Tool.objects.filter(name__startswith="shop.", enabled=True).exists()
    assert Tool.objects.get(name="shop.get_order").tier == "irreversible"
    row = ImportedTool.objects.get(name="shop.get_order")
    assert hints.in_words(row.hints) == ["is a GET request"]


def test_what_it_refers_to_comes_along_in_the_words_of_json_schema(there: Shop) -> None:
    look(there.address)

    item = registry.get("shop.create_order")

    assert item is not None
    order = item.json_schema()["$defs"]["Order"]["properties"]
    assert order["item"]["type"] == ["string", "null"]
    assert order["count"] == {"type": "integer", "exclusiveMinimum": 0}
    assert order["parts"]["items"] == {"$ref": "#/$defs/Order"}
    item.parse({"body": {"item": None, "parts": [{"item": "screw"}]}})
    with pytest.raises(BadArguments, match=r"body\.count"):
        item.parse({"body": {"item": "screw", "count": 0}})


def test_a_call_is_sent_with_its_key_and_its_secret(
    there: Shop, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "Bearer s3cr3t-of-shop")
    look(there.address, secrets={"Authorization": "SHOP_TOKEN"})

    receipt = caller.call("shop.create_order", body={"item": "screw", "card": "4000-0000"})

    (asked,) = there.asked
    assert (asked["method"], asked["path"]) == ("POST", "/api/orders")
    assert json.loads(asked["body"]) == {"item": "screw", "card": "4000-0000"}
    assert asked["headers"]["authorization"] == "Bearer s3cr3t-of-shop"
    assert asked["headers"]["idempotency-key"] == caller.ctx.request_id
    assert receipt.data["status"] == 200
    assert "4000-0000" not in str(receipt)


def test_parameters_go_to_their_places(there: Shop, caller: Caller) -> None:
    look(there.address)

    caller.call("shop.get_order", id="a/../b?c")
    caller.call("shop.list_orders", **{"tag": ["x", "y z"], "X-Trace": "t1"})

    first, second = there.asked
    assert first["path"] == "/api/orders/a%2F..%2Fb%3Fc"
    assert second["query"] == "tag=x&tag=y+z"
    assert second["headers"]["x-trace"] == "t1"
    assert "Authorization" not in registry.get("shop.list_orders").json_schema()["properties"]  # type: ignore[union-attr]


@pytest.mark.parametrize("value", ["..", ".", ""])
def test_a_value_that_would_lead_elsewhere_is_not_sent(
    there: Shop, caller: Caller, value: str
) -> None:
    look(there.address)

    with pytest.raises(NoEffect):
        caller.call("shop.get_order", id=value)

    assert there.asked == []


@pytest.mark.parametrize(("status", "error"), [(422, NoEffect), (500, Unclear)])
def test_a_refusal_had_no_effect_and_trouble_leaves_doubt(
    there: Shop, caller: Caller, status: int, error: type[Exception]
) -> None:
    look(there.address)
    there.status = status

    with pytest.raises(error, match="said"):
        caller.call("shop.create_order", body={"item": "screw"})


@pytest.mark.parametrize("status", [301, 302, 303])
def test_a_redirect_may_say_that_it_was_done(there: Shop, caller: Caller, status: int) -> None:
    look(there.address)
    there.status = status

    with pytest.raises(Unclear, match=f"elsewhere .{status}.*said"):
        caller.call("shop.create_order", body={"item": "screw"})

    assert len(there.asked) == 1


@pytest.mark.parametrize("status", [304, 307, 308])
def test_a_redirect_that_asks_for_the_same_again_says_that_nothing_was_done(
    there: Shop, caller: Caller, status: int
) -> None:
    look(there.address)
    there.status = status

    with pytest.raises(NoEffect):
        caller.call("shop.create_order", body={"item": "screw"})


def test_nobody_there_means_that_nothing_was_sent(
    there: Shop, caller: Caller, settings: Settings
) -> None:
    settings.HTTP_ALLOWED_HOSTS = ["127.0.0.1"]
    look(there.address, base_url="http://127.0.0.1:9/api")

    with pytest.raises(NoEffect) as refused:
        caller.call("shop.create_order", body={"item": "screw"})

    assert refused.value.is_passing


def test_an_operation_that_changes_is_disabled(there: Shop) -> None:
    look(there.address)
    Tool.objects.filter(name__startswith="shop.").update(enabled=True, is_tagged=True)
    there.document["components"]["schemas"]["Order"]["properties"]["bcc"] = {"type": "string"}

    assert look(there.address).named("changed") == ["shop.create_order"]

    enabled = Tool.objects.filter(name__startswith="shop.", enabled=True)
    assert list(enabled.values_list("name", flat=True)) == ["shop.get_order", "shop.list_orders"]


def test_a_server_named_later_in_the_document_gets_no_call(there: Shop) -> None:
    look(there.address)
    there.document["servers"] = [{"url": "https://elsewhere.example"}]

    look(there.address)

    assert ToolSource.objects.get(pk="shop").base_url == f"{there.url}/api"


def test_a_file_in_yaml_needs_a_server_of_its_own(tmp_path: Path) -> None:
    with pytest.raises(ImportProblem, match="base address"):
        as_yaml(tmp_path, yaml.safe_dump(DOCUMENT))
    there = as_yaml(
        tmp_path, yaml.safe_dump(DOCUMENT | {"servers": [{"url": "https://x.example"}]})
    )
    assert (there.base_url, len(there.offers)) == ("https://x.example", 3)


def test_a_redirect_is_not_followed(there: Shop) -> None:
    with pytest.raises(ImportProblem, match="elsewhere"):
        sources.look(source(f"{there.url}/moved.json"))


def test_a_document_that_is_not_there_is_said(there: Shop) -> None:
    with pytest.raises(ImportProblem, match="could not be read"):
        sources.look(source(f"{there.url}/no.json"))
    assert httpx2.get(there.address).status_code == 200


def test_a_document_that_comes_a_byte_at_a_time_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sources, "TIMEOUT", 0.5)
    with dripping() as port, pytest.raises(ImportProblem, match="ReadTimeout"):
        sources.look(source(f"http://127.0.0.1:{port}/openapi.json"))
