"""What a person would read on a page."""

import html
import re
from typing import Any

from django.test import Client


def words(markup: str | bytes) -> str:
    """The text of a page, as one line."""
    text = markup.decode() if isinstance(markup, bytes) else markup
    text = re.sub(r"<(script|style)\b.*?</\1>", " ", text, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())


def page(client: Client, path: str, status: int = 200) -> str:
    """The words of the page at `path`."""
    answer = client.get(path)
    assert answer.status_code == status, answer.content
    return words(answer.content)


def numbers(markup: str | bytes) -> dict[str, int]:
    """The numbers of the verdict, by group."""
    text = markup.decode() if isinstance(markup, bytes) else markup
    found = re.findall(r'data-group="(\w+)">.*?<dd>(\d+)</dd>', text, flags=re.DOTALL)
    return {group: int(count) for group, count in found}


def field(markup: Any, name: str) -> str:
    """The value of a hidden field."""
    text = markup.content.decode()
    found = re.search(rf'name="{name}" value="([^"]*)"', text)
    assert found, f"no field {name}"
    return html.unescape(found[1])
