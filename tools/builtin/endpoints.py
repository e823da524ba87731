"""HTTP endpoints that an operator has described: a tool for each, with look-up and undo.

The file that HTTP_ENDPOINTS names is a list; `http.<name>` is registered for each entry:

    - name: deliveries
      title: Tell the warehouse
      explains: Tells the warehouse to send something out.
      method: POST
      url: https://warehouse.example/deliveries
      headers: {Authorization: "Bearer ${WAREHOUSE_TOKEN}"}
      status_url: https://warehouse.example/deliveries/{request_id}
      horizon: 600
      undo: {method: DELETE, url: "https://warehouse.example/deliveries/{request_id}"}
      undo_note: Cancels the delivery, unless it has left.

`status_url` is asked for look-up: 2xx with JSON that has the request id as one of its values means
that it is there, 404 or 410 that it is not. `horizon`: for so many seconds after an answer failed
to come, the system may still act on what it was sent (0: it can promise that it will not; left out:
15 minutes); until then “it is not there” decides nothing. `undo` is the compensating request; with
an answer that had an ETag it is sent with If-Match, and 409 or 412 mean that somebody changed the
thing since. Both addresses name the call by `{request_id}`, so that they are about no other's. Each
is given by the operator, never by a model: that writes the body alone. `${NAME}` is a variable of
the environment.
"""

import os
import re
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import quote

import httpx2
import yaml
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.utils.functional import lazy
from django.utils.translation import get_language, gettext_lazy
from django.utils.translation import gettext as _
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    StringConstraints,
    TypeAdapter,
    ValidationError,
)

from tools.builtin import http, web
from tools.builtin.words import shortened
from tools.contract import (
    CannotUndo,
    Changed,
    Context,
    Data,
    Draft,
    LookupResult,
    NotLanded,
    Receipt,
    Tier,
    UndoReceipt,
    UndoResult,
    Unknown,
)
from tools.registry import LONGEST_HORIZON, UNKNOWN_HORIZON, tool
from tools.secrets import without

_VARIABLE = re.compile(r"\$\{([A-Z][A-Z0-9_]*)\}")
Method = Literal["POST", "PUT", "PATCH", "DELETE"]
Sentence = Annotated[str, StringConstraints(min_length=1, max_length=300, strip_whitespace=True)]


def _address(text: str) -> str:
    if not re.match(r"https?://|\$\{", text):
        raise ValueError("must begin with https:// or http://")
    return text


def _address_of_one(text: str) -> str:
    if "{request_id}" not in text:
        raise ValueError("must say which one it is about: write {request_id} in it")
    return _address(text)


def _by_language(words: dict[str, str]) -> dict[str, str]:
    known = [name for name, _title in settings.LANGUAGES]
    if "en" not in words or set(words) - set(known):
        raise ValueError(f"by language: en, and what else there is of {', '.join(known)}")
    return words


Address = Annotated[str, AfterValidator(_address)]
AddressOfOne = Annotated[str, AfterValidator(_address_of_one)]
# What people read: one sentence, or one for each language.
Words = Sentence | Annotated[dict[str, Sentence], AfterValidator(_by_language)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Undo(_Strict):
    """The request that takes an effect back."""

    method: Method
    url: AddressOfOne
    body: JsonValue = None


class Endpoint(_Strict):
    """One entry of the file."""

    name: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,40}$")]
    title: Words
    explains: Words
    method: Method = "POST"
    url: Address
    headers: dict[str, str] = {}
    status_url: AddressOfOne | None = None
    undo: Undo | None = None
    undo_note: Words | None = None
    example: JsonValue = {}
    timeout: Annotated[float, Field(gt=0, le=120)] = 10.0
    horizon: Annotated[float, Field(ge=0, le=LONGEST_HORIZON)] = UNKNOWN_HORIZON


class Call(BaseModel):
    """Send a JSON body to this endpoint."""

    body: JsonValue


def load(path: Path) -> list[Endpoint]:
    """Read the file strictly. Raises ImproperlyConfigured, with a sentence that says what is wrong
    and where.
    """
    try:
        raw = yaml.safe_load(path.read_text(encoding="utf-8"))
        found = TypeAdapter(list[Endpoint]).validate_python(raw or [])
        for endpoint in found:
            _filled(repr(endpoint.model_dump()))
    except OSError as error:
        raise _wrong(path, str(error)) from error
    except yaml.YAMLError as error:
        raise _wrong(path, f"it is no YAML: {error}") from error
    except KeyError as error:
        raise _wrong(path, f"the environment has no variable {error.args[0]}") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise _wrong(path, f"{where}: {first['msg']}") from error
    names = [endpoint.name for endpoint in found]
    if taken := [each for each in names if each in ("get", "request") or names.count(each) > 1]:
        raise _wrong(path, f"the name {taken[0]} is taken")
    return found


def register(endpoint: Endpoint) -> None:
    """Make a tool of it, called `http.<name>`."""
    example = {"body": endpoint.example}
    config = ConfigDict(json_schema_extra={"examples": [example]})
    args = type(
        "Call", (Call,), {"model_config": config, "__doc__": _in_english(endpoint.explains)}
    )
    verbs: dict[str, Any] = {
        "endpoint": endpoint,
        "title": _for_reader(endpoint.title),
        "explains": _for_reader(endpoint.explains),
        "undo_note": _for_reader(endpoint.undo_note)
        if endpoint.undo_note
        else (_UNDO_BY_REQUEST if endpoint.undo else web.HttpRequest.undo_note),
    }
    if endpoint.status_url:
        verbs["lookup"] = EndpointTool.look
    if endpoint.undo:
        verbs["compensate"] = EndpointTool.take_back
    tier = Tier.COMPENSABLE if endpoint.undo else Tier.IRREVERSIBLE
    decorated = tool(
        f"http.{endpoint.name}",
        tier=tier,
        args=args,
        timeout=endpoint.timeout,
        horizon=endpoint.horizon,
    )
    decorated(type("Http", (EndpointTool,), verbs))


def _in_language(words: Words) -> str:
    if isinstance(words, str):
        return words
    return words.get(get_language() or "en", words["en"])


def _in_english(words: Words) -> str:
    return words if isinstance(words, str) else words["en"]


_for_reader = lazy(_in_language, str)
_UNDO_BY_REQUEST = gettext_lazy(
    "Asks that address to take it back, unless somebody changed it since. "
    "What followed from it meanwhile stays."
)


class EndpointTool:
    """Sends to one endpoint. Look-up and undo are there if the operator has described them."""

    endpoint: Endpoint
    title: str

    def describe(self, args: Call) -> str:
        body = shortened(web.as_text(args.body))
        return _("%(title)s: %(body)s") % {"title": self.title, "body": body}

    def commit(self, ctx: Context, args: Call, draft: Draft | None) -> Receipt:
        answer = http.send(
            ctx,
            self.endpoint.method,
            _for_call(ctx, self.endpoint.url),
            expect=web.MOVED,
            headers=self._headers(ctx),
            json=args.body,
        )
        web.refuse_moved(answer)
        return self._receipt(answer, web.text_of(answer))

    def look(self, ctx: Context) -> LookupResult:
        """Ask the status URL."""
        url = _for_call(ctx, self.endpoint.status_url or "")
        try:
            answer = http.request(ctx, "GET", url, headers=self._headers(ctx))
        except httpx2.HTTPError as error:
            return Unknown(http.why(error))
        if answer.is_success:
            if _names(answer, ctx.request_id):
                return self._receipt(answer)
            return Unknown("the status URL answered without the request id")
        if answer.status_code in (404, 410):
            return NotLanded()
        return Unknown(f"the status URL answered {answer.status_code}")

    def take_back(self, ctx: Context, receipt: Receipt) -> UndoResult:
        """Send the compensating request, for the version that we left."""
        undo = self.endpoint.undo
        if undo is None or "endpoint" not in receipt.data:
            return CannotUndo(_("The receipt does not say what was sent."))
        headers = self._headers(ctx) | {"Idempotency-Key": f"{ctx.request_id}:undo"}
        if etag := receipt.data.get("etag"):
            headers["If-Match"] = etag
        body: Data = {} if undo.body is None else {"json": undo.body}
        answer = http.request(ctx, undo.method, _for_call(ctx, undo.url), headers=headers, **body)
        words = {"title": str(self.title)}
        if answer.status_code in (404, 410):
            return UndoReceipt({}, _("“%(title)s”: it was already gone.") % words)
        if answer.status_code in (409, 412):
            return Changed(_("“%(title)s”: somebody changed it since.") % words)
        if 300 <= answer.status_code < 500 and answer.status_code not in (408, 429):
            words["status"] = str(answer.status_code)
            return CannotUndo(
                _("“%(title)s”: that address refused to take it back (%(status)s).") % words
            )
        answer.raise_for_status()
        return UndoReceipt(
            {"status": answer.status_code},
            _("“%(title)s” was taken back. What followed from it meanwhile stays.") % words,
        )

    def _headers(self, ctx: Context) -> dict[str, str]:
        ours = {
            "User-Agent": f"agentruns/http.{self.endpoint.name}",
            "Idempotency-Key": ctx.request_id,
        }
        return {name: _filled(value) for name, value in self.endpoint.headers.items()} | ours

    def _receipt(self, answer: httpx2.Response, said: str = "") -> Receipt:
        data = {"endpoint": self.endpoint.name, "etag": answer.headers.get("etag", "")}
        title = _in_english(self.endpoint.title)
        return Receipt(data, without(f"“{title}” was done. {said}".strip(), self._secrets()))

    def _secrets(self) -> list[str]:
        """What the operator's headers have from the environment: it may be said back."""
        names = _VARIABLE.findall(" ".join(self.endpoint.headers.values()))
        return [_filled(f"${{{name}}}") for name in names]


def _for_call(ctx: Context, url: str) -> str:
    return _filled(url).replace("{request_id}", quote(ctx.request_id, safe=""))


def _names(answer: httpx2.Response, key: str) -> bool:
    """Whether the JSON of an answer has the key as a value, at whatever place."""
    try:
        left = [answer.json()]
    except ValueError:
        return False
    while left:
        value = left.pop()
        if value == key:
            return True
        left += (
            value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
        )
    return False


def _filled(text: str) -> str:
    """With the variables of the environment in it; that of the demo world is a setting."""
    demo = {"HOOKS_URL": settings.HOOKS_URL}
    return _VARIABLE.sub(lambda found: {**demo, **os.environ}[found[1]], text)


def _wrong(path: Path, what: str) -> ImproperlyConfigured:
    return ImproperlyConfigured(f"HTTP_ENDPOINTS: {path}: {what}.")


if settings.HTTP_ENDPOINTS:
    for _endpoint in load(Path(settings.HTTP_ENDPOINTS)):
        register(_endpoint)
