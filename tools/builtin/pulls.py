"""Draft requests of a repository, over a REST API in GitHub's shape.

Such an API takes no idempotency key: what is ours says so in a line of its text that nobody sees.
"""

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings

from tools.builtin import http, lists
from tools.contract import Context
from tools.errors import NoEffect

Pull = dict[str, Any]
KEY_NAME = "Request-Id"
_KEY_LINE = re.compile(rf"^<!-- {KEY_NAME}: (\S+) -->$", re.MULTILINE)
_PAGE, _MOST_PAGES = 100, 3
_MOST_TEXT = 500  # characters of an answer


def open_draft(
    ctx: Context, *, branch: str, base: str, title: str, text: str
) -> tuple[Pull | None, str]:
    """Open it, unless an earlier attempt of this call did; or None, and why it was refused."""
    if found := find(ctx, branch=branch):
        return found, ""
    body = {
        "title": title,
        "head": branch,
        "base": base,
        "body": f"{text.strip()}\n\n<!-- {KEY_NAME}: {ctx.request_id} -->",
        "draft": True,
    }
    try:
        answer = http.send(ctx, "POST", _url("/pulls"), json=body, headers=_headers())
    except NoEffect as refusal:
        # There may be one by now: another attempt, that was late.
        found = find(ctx, branch=branch) if refusal.data.get("status") == 422 else None
        return found, f"{refusal} {refusal.data.get('answer', '')[:_MOST_TEXT]}".strip()
    pull: Pull = answer.json()
    lists.must_be_ours(key_of(pull) or None, ctx.request_id)
    return pull, ""


def find(ctx: Context, *, branch: str = "") -> Pull | None:
    """The request of this call, among those for `branch`, or else among the newest ones.

    A look-up comes soon after its call: 300 are looked through, not the whole history, as long as
    they are the newest ones.
    Raises httpx2.HTTPError or ValueError where there is no clear answer.
    """
    return next((pull for pull in _newest(ctx, branch) if key_of(pull) == ctx.request_id), None)


def get(ctx: Context, number: int) -> Pull | None:
    """The request as it is now; None if there is none."""
    answer = http.request(ctx, "GET", _url(f"/pulls/{number}"), headers=_headers())
    if answer.status_code == 404:
        return None
    answer.raise_for_status()
    pull: Pull = answer.json()
    return pull


def close(ctx: Context, number: int) -> None:
    """Close it. One that is closed, or gone, is left as it is."""
    answer = http.request(
        ctx, "PATCH", _url(f"/pulls/{number}"), json={"state": "closed"}, headers=_headers()
    )
    if answer.status_code != 404:
        answer.raise_for_status()


def key_of(pull: Pull) -> str:
    """The request id in the text of a request: its last line of that kind, which is ours."""
    keys = _KEY_LINE.findall((pull.get("body") or "").replace("\r\n", "\n"))
    return str(keys[-1]) if keys else ""


def _newest(ctx: Context, branch: str) -> Iterator[Pull]:
    params = {"state": "all", "sort": "created", "direction": "desc", "per_page": str(_PAGE)}
    if branch:
        params["head"] = f"{_owner()}:{branch}"
    numbers: list[int] = []
    for page in range(1, _MOST_PAGES + 1):
        answer = http.request(
            ctx, "GET", _url("/pulls"), params=params | {"page": str(page)}, headers=_headers()
        )
        answer.raise_for_status()
        pulls = lists.records(answer.json())
        if not pulls:
            return
        new = [pull for pull in pulls if pull["number"] not in numbers]
        if not new:
            break  # it knows no pages: this was the first one again
        yield from new
        numbers += [pull["number"] for pull in new]
    if numbers != sorted(numbers, reverse=True):
        raise ValueError("the newest requests are not listed first, and there may be more of them")


def _url(path: str) -> str:
    return settings.GIT_API_URL.rstrip("/") + path


def _owner() -> str:
    """Whose repository it is: the last part but one of …/repos/OWNER/REPO."""
    parts = urlsplit(settings.GIT_API_URL).path.strip("/").split("/")
    return parts[-2] if len(parts) > 1 else ""


def _headers() -> dict[str, str]:
    headers = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
    if settings.GIT_API_TOKEN:
        headers["Authorization"] = f"Bearer {settings.GIT_API_TOKEN}"
    return headers
