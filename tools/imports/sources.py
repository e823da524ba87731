"""Look at a source, of whatever kind: what it offers now. Nothing is written here."""

import re
from pathlib import Path

import httpx2
from django.conf import settings
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

from tools.builtin import http
from tools.contract import Data
from tools.errors import NoEffect
from tools.imports import mcp, openapi
from tools.imports.described import secret_values
from tools.imports.models import SLUG, ToolSource
from tools.imports.offers import ImportProblem, Listing

MOST_BYTES = 4 * 1024 * 1024  # of a document
TIMEOUT = 20.0  # seconds
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_HEADER = re.compile(r"[A-Za-z0-9-]+\Z")


def look(source: ToolSource) -> Listing:
    """What the source offers now. Raises ImportProblem, which says what is wrong with it."""
    try:
        if source.is_mcp:
            return mcp.listing(source, timeout=TIMEOUT)
        return openapi.listing(
            _document(source), at=source.address, base_url=_confirmed(source.base_url)
        )
    except NoEffect as error:  # a secret that is not there
        raise ImportProblem(str(error)) from error


def check(source: ToolSource, *, by_web: bool) -> None:
    """Refuse a source that makes no sense, and `by_web` one that only the host's own admin may
    have: a program to start, a file to read, a variable that is not meant for it. Raises
    ImportProblem.
    """
    try:
        SLUG(source.slug)
    except ValidationError as error:
        raise ImportProblem(" ".join(error.messages)) from error
    is_url = source.address.startswith(("http://", "https://"))
    if source.kind == ToolSource.Kind.MCP_HTTP and not is_url:
        raise ImportProblem(_("The address of a server begins with http:// or https://."))
    for where, name in source.secrets.items():
        if not _VARIABLE.match(name) or not (_HEADER if is_url else _VARIABLE).match(where):
            said = _("“%(where)s=%(name)s” is not a name, “=”, and the name of a variable.")
            raise ImportProblem(said % {"where": where[:80], "name": name[:80]})
    if by_web:
        _check_for_the_web(source, is_url=is_url)


def parsed_secrets(lines: list[str]) -> dict[str, str]:
    """“Authorization=ACME_TOKEN” as header → variable. Raises ImportProblem."""
    found = {}
    for line in lines:
        where, sign, name = line.partition("=")
        if not sign:
            said = _("“%(line)s” has no “=”: write a header, “=”, and the name of a variable.")
            raise ImportProblem(said % {"line": line[:80]})
        found[where.strip()] = name.strip()
    return found


def _check_for_the_web(source: ToolSource, *, is_url: bool) -> None:
    if source.kind == ToolSource.Kind.MCP_STDIO and source.address not in (
        settings.MCP_STDIO_COMMANDS
    ):
        raise ImportProblem(
            _(
                "From here, only programs can be started that are listed in MCP_STDIO_COMMANDS. "
                "Others can be imported on the server, by manage.py import_tools."
            )
        )
    if source.kind == ToolSource.Kind.OPENAPI and not is_url:
        raise ImportProblem(_("The address of a document begins with http:// or https://."))
    strange = [n for n in source.secrets.values() if n not in settings.TOOL_SECRETS]
    if strange:
        said = _(
            "From here, only variables can be used that are listed in TOOL_SECRETS, and "
            "%(names)s is not."
        )
        raise ImportProblem(said % {"names": ", ".join(strange)})


def _confirmed(base_url: str) -> str:
    if base_url and not base_url.startswith(("http://", "https://")):
        raise ImportProblem(_("The base address begins with http:// or https://."))
    return base_url.rstrip("/")


def _document(source: ToolSource) -> str:
    """The text of the document, from its address or its file. No redirect is followed."""
    if not source.address.startswith(("http://", "https://")):
        return _file(Path(source.address))
    try:
        content = _fetched(source.address, secret_values(source))
        return content.decode()
    except (httpx2.HTTPError, httpx2.InvalidURL, UnicodeDecodeError) as error:
        said = _("The document could not be read: %(why)s")
        raise ImportProblem(said % {"why": http.why(error)[:300]}) from error


def _file(path: Path) -> str:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise _too_large()
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        said = _("The document could not be read: %(why)s")
        raise ImportProblem(said % {"why": str(error)[:300]}) from error


def _fetched(url: str, headers: Data) -> bytes:
    """All of it within TIMEOUT."""
    content = bytearray()
    asks = httpx2.Client(timeout=TIMEOUT, trust_env=not http.is_near(url), headers=headers)
    with (
        http.timed(asks) as client,
        http.ending_within(TIMEOUT),
        client.stream("GET", url) as response,
    ):
        if response.is_redirect:
            said = _("The document is elsewhere: give its address of now, %(url)s.")
            raise ImportProblem(said % {"url": response.headers.get("location", "")[:300]})
        response.raise_for_status()
        for chunk in response.iter_bytes():
            content += chunk
            if len(content) > MOST_BYTES:
                raise _too_large()
    return bytes(content)


def _too_large() -> ImportProblem:
    said = _("The document has more than %(limit)s MiB.")
    return ImportProblem(said % {"limit": MOST_BYTES // 1024 // 1024})
