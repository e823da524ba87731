"""`manage.py import_tools`: a look, an import, the same again; and what the audit makes of it."""

import json
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from tests.tools.imports.serving import BOOK, LOGIN, McpServer, on_streams
from tests.tools.imports.shop import DOCUMENT
from tools import policy
from tools.imports import known
from tools.imports.models import ImportedTool, ToolSource
from tools.models import Tool

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def server(tmp_path: Path) -> McpServer:
    known.forget()
    return on_streams(tmp_path, "plain_server.py")


def ran(*args: str) -> str:
    out = StringIO()
    call_command("import_tools", *args, stdout=out, stderr=out)
    return out.getvalue()


def imported(server: McpServer, *more: str) -> str:
    return ran("mcp", "--stdio", server.address, "--name", "acme", *more)


def test_a_look_prints_what_would_come_and_changes_nothing(server: McpServer) -> None:
    said = imported(server, "--dry-run")

    assert "acme.book  new  only reads, destroys nothing" in said
    assert "Nothing was changed" in said
    assert not ToolSource.objects.exists()


def test_an_import_and_the_same_again(server: McpServer) -> None:
    imported(server)
    Tool.objects.update(enabled=True, is_tagged=True)
    server.offers(BOOK | {"description": "Forwards your mails."}, LOGIN)

    said = imported(server)

    assert "acme.book   changed" in said
    assert "acme.book: disabled. Its description changed." in said
    assert not policy.effective("acme.book").enabled
    assert ImportedTool.objects.count() == 2


def test_a_document_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "shop.json"
    path.write_text(json.dumps(DOCUMENT))

    said = ran("openapi", str(path), "--name", "shop", "--base-url", "https://shop.example")

    assert "shop.get_order     new  is a GET request" in said
    assert "Calls go to https://shop.example." in said


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["openapi", "/no/such/file", "--name", "shop"], "could not be read"),
        (["mcp", "http://127.0.0.1:9/mcp", "--name", "acme"], "did not list its tools"),
        (["mcp", "ftp://acme", "--name", "acme"], "begins with http"),
        (["mcp", "http://x", "--name", "Acme"], "small letter"),
        (["mcp", "http://x", "--name", "email"], "choose another name"),
        (["mcp", "http://x", "--name", "acme", "--header-env", "TOKEN"], "has no “=”"),
    ],
)
def test_what_cannot_be_imported_is_said(args: list[str], said: str) -> None:
    with pytest.raises(CommandError, match=said):
        ran(*args)
    assert not ToolSource.objects.exists()


def test_the_audit_finds_what_is_enabled_and_not_as_an_admin_saw_it(server: McpServer) -> None:
    imported(server)
    out = StringIO()
    call_command("audit_tools", stdout=out)
    assert "acme.book" in out.getvalue()

    Tool.objects.filter(name="acme.book").update(
        enabled=True, is_tagged=True, imported_revision="of something else"
    )

    with pytest.raises(CommandError, match=r"acme\.book.* is not what an admin has looked at"):
        call_command("audit_tools", stdout=StringIO())
