"""Tools of an OpenAPI document: how an operation is called."""

import json
from typing import Any
from urllib.parse import quote, urlsplit

import httpx2
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from pydantic import BaseModel

from tools.builtin import http, web
from tools.contract import Context, Data, Draft, Receipt
from tools.errors import NoEffect, Unclear
from tools.imports.described import Imported, bounded, cut, kept, plain, secret_values
from tools.imports.models import ToolSource
from tools.imports.offers import shown

_SAYS_WRONG = gettext_lazy("The server says that it went wrong (%(status)s): “%(words)s”")
_SAYS_MOVED = gettext_lazy(
    "The server leads elsewhere (%(status)s), and does not say whether it was done: “%(words)s”"
)


class RestTool(Imported):
    """One operation. The request id goes along as its idempotency key."""

    def commit(self, ctx: Context, args: BaseModel, draft: Draft | None) -> Receipt:
        source, details = self.row.source, self.row.details
        secrets = secret_values(source)
        given = plain(args)
        url = source.base_url + _path(details, given)
        headers = _all_headers(details, given, secrets, key=ctx.request_id)
        body = {"json": given["body"]} if "body" in given else {}
        try:
            response = http.send(
                ctx,
                details["method"],
                url,
                ask=http.bounded if _is_its_own(source) else http.guarded,
                expect=web.MOVED,
                params=_query(details, given),
                headers=headers,
                **body,
            )
            web.refuse_moved(response)
        except NoEffect as error:
            answer = shown(kept(error.data.get("answer", ""), args, secrets), 300)
            said = " ".join(filter(None, [kept(str(error), args, secrets), answer]))
            raise NoEffect(
                error.code,
                shown(said, 500),
                is_passing=error.is_passing,
                retry_after=error.retry_after,
            ) from error
        except httpx2.HTTPStatusError as error:
            says = _SAYS_MOVED if error.response.is_redirect else _SAYS_WRONG
            words = kept(error.response.text, args, secrets)
            status = error.response.status_code
            raise Unclear(says % {"status": status, "words": shown(words, 500)}) from error
        content = kept(_content(response), args, secrets)
        data = {
            "status": response.status_code,
            "content": cut(content) if isinstance(content, str) else content,
        }
        return Receipt(bounded(data), cut(kept(response.text, args, secrets)))


def _all_headers(details: Data, given: Data, secrets: dict[str, str], *, key: str) -> Data:
    """Those of the arguments, but for those that the source's secrets are; and our own."""
    ours = {name.lower() for name in secrets}
    theirs = {k: v for k, v in _headers(details, given).items() if k.lower() not in ours}
    headers = {"Accept": "application/json", "Accept-Encoding": "identity", **theirs, **secrets}
    if details["method"] not in ("GET", "HEAD", "OPTIONS"):
        headers["Idempotency-Key"] = key
    return headers


def _is_its_own(source: ToolSource) -> bool:
    """Whether the calls go where the document came from, which an admin has named. Elsewhere it is
    the document that says where to, and it may say anything.
    """
    return urlsplit(source.base_url)[:2] == urlsplit(source.address)[:2]


def _content(response: httpx2.Response) -> Any:
    try:
        return response.json()
    except ValueError:
        return response.text


def _of(details: Data, given: Data, place: str) -> list[tuple[Data, Any]]:
    """The parameters of one place that have a value."""
    return [
        (each, given[each["argument"]])
        for each in details["parameters"]
        if each["in"] == place and given.get(each["argument"]) is not None
    ]


def _path(details: Data, given: Data) -> str:
    """The path with its values in it. Raises NoEffect for a value that would lead elsewhere."""
    path: str = details["path"]
    for parameter, value in _of(details, given, "path"):
        text = _simple(value)
        if text.strip(".") == "":
            said = _("“%(value)s” cannot be part of an address.") % {"value": text}
            raise NoEffect("bad_path", said)
        path = path.replace("{" + parameter["name"] + "}", quote(text, safe=""))
    return path


def _query(details: Data, given: Data) -> list[tuple[str, str]]:
    pairs = []
    for parameter, value in _of(details, given, "query"):
        name, explodes = parameter["name"], parameter.get("explode", True)
        if isinstance(value, dict):
            deep = parameter.get("style") == "deepObject"
            pairs += [
                (f"{name}[{key}]" if deep else key, _simple(item)) for key, item in value.items()
            ]
        elif isinstance(value, list) and explodes:
            pairs += [(name, _simple(item)) for item in value]
        else:
            pairs.append((name, _simple(value)))
    return pairs


def _headers(details: Data, given: Data) -> dict[str, str]:
    """Raises NoEffect for a value that is more than one line."""
    headers = {each["name"]: _simple(value) for each, value in _of(details, given, "header")}
    if any(not value.isprintable() or not value.isascii() for value in headers.values()):
        raise NoEffect("bad_header", _("The value of a header has signs that it cannot have."))
    return headers


def _simple(value: Any) -> str:
    """As it stands in an address: the items of a list with commas between them."""
    match value:
        case str():
            return value
        case list():
            return ",".join(map(_simple, value))
    return json.dumps(value, ensure_ascii=False)
