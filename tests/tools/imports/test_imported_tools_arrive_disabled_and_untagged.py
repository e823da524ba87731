"""R34: what a server says of itself opens nothing; an admin looks at each tool, and tags it."""

import pytest
from django.db import IntegrityError, transaction

from tests.tools.imports.conftest import Allow, look
from tests.tools.imports.serving import BOOK, LOGIN, McpServer
from tools import policy, registry
from tools.contract import Tier
from tools.imports import hints
from tools.imports.models import ImportedTool
from tools.models import Tool

pytestmark = pytest.mark.django_db


def test_it_arrives_disabled_as_what_cannot_be_undone(program: McpServer) -> None:
    program.offers(BOOK, LOGIN)

    done = look(program)

    assert done.named("new") == ["acme.book", "acme.login"]
    for row in Tool.objects.filter(name__startswith="acme."):
        assert (row.enabled, row.is_tagged, row.tier) == (False, False, "irreversible")
        assert row.source == Tool.Source.MCP
    assert not policy.effective("acme.book").enabled
    assert not policy.effective("acme.book").eager


def test_its_hints_are_shown_and_loosen_nothing(plain: McpServer) -> None:
    look(plain)

    row = ImportedTool.objects.get(name="acme.book")
    assert hints.in_words(row.hints) == ["only reads", "destroys nothing"]
    assert policy.effective("acme.book").tier is Tier.IRREVERSIBLE


def test_the_same_over_http(http_server: McpServer) -> None:
    assert look(http_server).named("new") == ["acme.book"]
    assert not Tool.objects.get(name="acme.book").enabled


def test_the_database_itself_lets_nothing_untagged_be_enabled(plain: McpServer) -> None:
    look(plain)

    with pytest.raises(IntegrityError), transaction.atomic():
        Tool.objects.filter(name="acme.book").update(enabled=True)


def test_once_tagged_an_admins_word_holds(plain: McpServer, allow: Allow) -> None:
    look(plain)

    allow("acme.book", tier=Tier.READ_ONLY)

    now = policy.effective("acme.book")
    assert (now.enabled, now.tier, now.eager) == (True, Tier.READ_ONLY, True)


def test_looking_again_keeps_the_tags_of_what_is_as_it_was(plain: McpServer, allow: Allow) -> None:
    look(plain)
    allow("acme.book")
    plain.offers(BOOK, LOGIN)

    done = look(plain)

    assert (done.named("unchanged"), done.named("new")) == (["acme.book"], ["acme.login"])
    assert policy.effective("acme.book").enabled
    assert not policy.effective("acme.login").enabled


def test_the_registry_has_it_with_the_servers_schema(plain: McpServer) -> None:
    look(plain)

    item = registry.get("acme.book")

    assert item is not None
    assert item.json_schema()["properties"]["what"] == {"type": "string", "maxLength": 200}
    assert item.parse({"what": "a room"}).model_dump() == {"what": "a room"}
    assert not item.has_lookup
    assert not item.has_compensate
