"""Sources of tools on real servers, and an admin who tags what came from them."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from tests.tools.conftest import NewContext
from tests.tools.imports.calls import Caller
from tests.tools.imports.serving import McpServer, on_http, on_streams
from tools.changes import change_tools
from tools.contract import Tier
from tools.imports import catalogue, known, mcp
from tools.imports.models import ToolSource

Allow = Callable[..., None]


@pytest.fixture(autouse=True)
def _nothing_is_known() -> Iterator[None]:
    """Each test's tools are its own."""
    known.forget()
    yield
    known.forget()


@pytest.fixture
def program(tmp_path: Path) -> McpServer:
    """An MCP server that is started as a program."""
    return on_streams(tmp_path)


@pytest.fixture
def plain(tmp_path: Path) -> McpServer:
    """One that answers what was cancelled."""
    return on_streams(tmp_path, "plain_server.py")


@pytest.fixture
def http_server(tmp_path: Path) -> Iterator[McpServer]:
    """An MCP server on HTTP."""
    with on_http(tmp_path) as server:
        yield server


def source_of(server: McpServer, slug: str = "acme", **more: Any) -> ToolSource:
    return ToolSource(slug=slug, kind=server.kind, address=server.address, **more)


def look(server: McpServer, slug: str = "acme", **more: Any) -> catalogue.Plan:
    """Import what a server offers now, or import it again."""
    source = ToolSource.objects.filter(pk=slug).first() or source_of(server, slug, **more)
    return catalogue.take(source, mcp.listing(source), by=None)


@pytest.fixture
def allow(admin: User) -> Allow:
    """An admin tags these tools, and enables them."""

    def tag(*names: str, tier: Tier = Tier.READ_ONLY) -> None:
        change_tools(names, by=admin, reason="looked at", tier=tier.value, enabled=True)

    return tag


@pytest.fixture
def caller(new_context: NewContext) -> Caller:
    """Makes calls of imported tools."""
    return Caller(new_context())
