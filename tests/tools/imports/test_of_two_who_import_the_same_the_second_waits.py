"""A double click: what is imported twice at the same time is there once, and nothing breaks."""

import json
import time
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from django.db import connection, transaction

from tests.tools.imports.shop import DOCUMENT
from tools.imports import catalogue, openapi
from tools.imports.models import ImportedTool, ToolSource
from tools.imports.offers import ImportProblem

pytestmark = pytest.mark.django_db(transaction=True)


def take(address: str) -> catalogue.Plan:
    source = ToolSource(slug="shop", kind=ToolSource.Kind.OPENAPI, address=address)
    document = DOCUMENT | {"servers": [{"url": "https://shop.example"}]}
    return catalogue.take(source, openapi.listing(json.dumps(document), at=address), by=None)


def elsewhere(address: str) -> catalogue.Plan:
    """On a connection of its own."""
    try:
        return take(address)
    finally:
        connection.close()


def until_it_waits(second: Future[catalogue.Plan]) -> None:
    end = time.monotonic() + 20
    while not second.done():
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity"
                " WHERE datname = current_database() AND wait_event_type = 'Lock'"
            )
            if cursor.fetchone()[0]:
                return
        assert time.monotonic() < end, "the second does not wait"


def test_the_second_finds_it_unchanged() -> None:
    with ThreadPoolExecutor(1) as threads:
        with transaction.atomic():
            first = take("https://shop.example/a.json")
            second = threads.submit(elsewhere, "https://shop.example/a.json")
            until_it_waits(second)
        done = second.result(20)

    assert len(first.named("new")) == len(done.named("unchanged")) == 3
    assert ImportedTool.objects.count() == 3


def test_another_source_of_that_name_is_refused() -> None:
    with ThreadPoolExecutor(1) as threads:
        with transaction.atomic():
            take("https://shop.example/a.json")
            second = threads.submit(elsewhere, "https://other.example/b.json")
            until_it_waits(second)
        with pytest.raises(ImportProblem, match="of that name already"):
            second.result(20)

    assert ToolSource.objects.get().address == "https://shop.example/a.json"
