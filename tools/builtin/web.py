"""Any HTTP endpoint: to read, and to send to without knowing more about it than its address.

An endpoint that an operator has described has a tool of its own, with look-up and undo: see
`endpoints`.
"""

import re
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import httpx2
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    SecretStr,
    StringConstraints,
    model_validator,
)

from tools.builtin import addresses, http
from tools.builtin.fields import each_once
from tools.builtin.words import shortened
from tools.contract import Context, Data, Draft, Receipt, Tier
from tools.errors import NoEffect
from tools.registry import tool
from tools.secrets import secrets_of, without
from tools.storable import storable

_MOST_TEXT = 20_000  # characters of an answer that a model is shown
_TEXT_TYPES = re.compile(r"text/|application/(.+\+)?(json|xml)\b")
# What decides where a request goes, who it comes from and how it is framed is not the model's.
_OURS = re.compile(
    r"authorization|cookie2?|host|content-length|transfer-encoding|connection|upgrade|te|trailer"
    r"|expect|accept-encoding|idempotency-key|user-agent|proxy-.*|sec-.*",
    re.IGNORECASE,
)


def _url(text: str) -> str:
    try:
        url = httpx2.URL(text)
    except (httpx2.InvalidURL, UnicodeError):
        raise ValueError(f"“{text}” is not a URL") from None
    if url.scheme not in ("http", "https") or not url.host:
        raise ValueError("url must begin with https:// or http:// and the name of a host")
    if url.userinfo or "@" in urlsplit(text).netloc:
        raise ValueError("url may not hold a user name or a password: use bearer")
    return text


def _headers(headers: dict[str, str]) -> dict[str, str]:
    for name, value in headers.items():
        if not re.fullmatch(r"[A-Za-z0-9-]{1,64}", name) or _OURS.fullmatch(name):
            raise ValueError(f"the header “{name}” cannot be set")
        if not re.fullmatch(r"[\x20-\x7e]{0,1000}", value):
            raise ValueError(f"the header “{name}” has a value that cannot be sent")
    each_once([name.lower() for name in headers])
    return headers


def _bearer(token: SecretStr) -> SecretStr:
    """Refuse what no header can hold, without a word of it."""
    if not re.fullmatch(r"[\x21-\x7e]{1,4000}", token.get_secret_value()):
        raise ValueError("a token has letters, digits and signs only, no spaces and no line breaks")
    return token


Url = Annotated[
    str,
    StringConstraints(max_length=2000, pattern=r"^[^\x00-\x20\x7f-\xa0\u2028\u2029]+$"),
    AfterValidator(_url),
]
Headers = Annotated[dict[str, str], Field(max_length=20), AfterValidator(_headers)]
Bearer = Annotated[SecretStr, AfterValidator(_bearer)]


class Get(BaseModel):
    """Read what is at a URL. `bearer` is a token for it, and secret."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"url": "http://127.0.0.1:8801/hooks/deliveries"}]},
        hide_input_in_errors=True,
    )

    url: Url
    headers: Headers = {}
    bearer: Bearer | None = None

    @model_validator(mode="after")
    def _secrets_travel_in_secret(self) -> "Get":
        url = httpx2.URL(self.url)
        if self.bearer and url.scheme != "https" and not addresses.is_allowed(*_host_and_port(url)):
            raise ValueError("bearer needs a URL that begins with https://")
        return self


class Request(Get):
    """Send a request that has an effect, with a JSON body. `bearer` is a token for it, and
    secret.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "method": "POST",
                    "url": "http://127.0.0.1:8801/hooks/deliveries",
                    "body": {"event": "numbers.ready", "quarter": "Q3"},
                }
            ]
        }
    )

    method: Literal["POST", "PUT", "PATCH", "DELETE"]
    body: JsonValue = None


@tool("http.get", tier=Tier.READ_ONLY, args=Get)
class HttpGet:
    title = gettext_lazy("Read from the web")
    explains = gettext_lazy(
        "Reads what is at an address on the web. Changes nothing there. Asks a person first, "
        "unless an operator has named the host."
    )

    def describe(self, args: Get) -> str:
        return _("Read %(url)s") % {"url": shortened(args.url)}

    def needs_approval(self, args: Get) -> str:
        """A read tells the host that is read all that stands in the address: by it, a text that
        the model has read elsewhere could have it carry out what it knows.
        """
        host, port = _host_and_port(httpx2.URL(args.url))
        if addresses.may_be_read(host, port):
            return ""
        return _("This read sends everything that is shown here to %(host)s.") % {"host": host}

    def commit(self, ctx: Context, args: Get, draft: Draft | None) -> Receipt:
        """Read it, also where it has moved to, if it may: see `_leads_on`. An answer that says no
        is an answer, too.
        """
        host = httpx2.URL(args.url).host
        try:
            answer = http.guarded(
                ctx, "GET", args.url, headers=_all_headers("http.get", args), follows=_leads_on
            )
        except httpx2.HTTPError as error:
            raise NoEffect(
                "unreachable",
                _("%(host)s did not answer as it should.") % {"host": host},
                is_passing=http.is_passing(error),
                error=http.why(error),
            ) from error
        data = {"status": answer.status_code, "url": storable(str(answer.request.url))}
        return _receipt(args, data, answer)


@tool("http.request", tier=Tier.IRREVERSIBLE, args=Request)
class HttpRequest:
    """Nobody knows what an unknown address does with a request: there is no look-up, so a person
    answers, and no undo. The address gets our key as `Idempotency-Key`, and may heed it.
    """

    title = gettext_lazy("Send to an address on the web")
    explains = gettext_lazy(
        "Sends a request to an address on the web. What happens there is not known, so it cannot "
        "be taken back."
    )
    undo_note = gettext_lazy(
        "The request has left. Ask whoever runs that address to take back what it did."
    )

    def describe(self, args: Request) -> str:
        words = {"method": args.method, "url": args.url, "body": shortened(as_text(args.body))}
        if args.body is None:
            return _("Send to the web: %(method)s %(url)s") % words
        return _("Send to the web: %(method)s %(url)s, with %(body)s") % words

    def prepare(self, ctx: Context, args: Request) -> Draft:
        """Find out whether the address may be reached at all. It is checked again on the way."""
        url = httpx2.URL(args.url)
        try:
            addresses.checked(*_host_and_port(url), within=ctx.timeout)
        except OSError as error:
            raise NoEffect(
                "unreachable",
                _("%(host)s could not be found, so nothing was sent.") % {"host": url.host},
                is_passing=True,
                error=str(error),
            ) from error
        return Draft()

    def void(self, ctx: Context, draft: Draft) -> None:
        """Nothing was left anywhere."""

    def commit(self, ctx: Context, args: Request, draft: Draft | None) -> Receipt:
        """Send it once. A redirect is not followed: see `refuse_moved`."""
        answer = http.send(
            ctx,
            args.method,
            args.url,
            ask=http.guarded,
            expect=MOVED,
            headers=_all_headers("http.request", args) | {"Idempotency-Key": ctx.request_id},
            **({} if args.body is None else {"json": args.body}),
        )
        refuse_moved(answer)
        data = {"status": answer.status_code, "url": args.url, "method": args.method}
        return _receipt(args, data, answer)


MOVED = (301, 302, 303, 307, 308)


def refuse_moved(answer: httpx2.Response) -> None:
    """A redirect after an effect. With 307 and 308 the address says that it did nothing, and who
    will: NoEffect. After any other one (httpx2.HTTPStatusError) nobody knows: many answer so once
    they have done it.
    """
    if answer.status_code in (307, 308):
        where = storable(answer.headers.get("location", ""))[:500]
        raise NoEffect(
            "moved",
            _("It was not done: the address is another one now, %(url)s.") % {"url": where},
            status=answer.status_code,
        )
    answer.raise_for_status()


def text_of(answer: httpx2.Response) -> str:
    """The beginning of an answer, if it is text."""
    kind = answer.headers.get("content-type", "")
    if not answer.content:
        return ""
    if not _TEXT_TYPES.match(kind):
        return f"({len(answer.content)} bytes, no text)"
    text = str(storable(answer.text))
    return text if len(text) <= _MOST_TEXT else text[:_MOST_TEXT] + "…"


def _receipt(args: Get, data: Data, answer: httpx2.Response) -> Receipt:
    """Without the secrets of the call, should the address have said them back."""
    secrets = [value for _path, value in secrets_of(args)]
    said = without(f"{args.url} answered {answer.status_code}.\n{text_of(answer)}", secrets)
    if answer.has_redirect_location:
        where = without(storable(answer.headers["location"]), secrets)[:2000]
        said = f"{said}\nIt leads to {where}, which was not read: ask for that by itself."
    return Receipt(without(data, secrets), said)


def _all_headers(name: str, args: Get) -> dict[str, str]:
    headers = args.headers | {"User-Agent": f"agentruns/{name}", "Accept-Encoding": "identity"}
    if args.bearer:
        headers["Authorization"] = f"Bearer {args.bearer.get_secret_value()}"
    return headers


def _host_and_port(url: httpx2.URL) -> tuple[str, int]:
    """Where it leads to, the host as it is looked up: in ASCII."""
    return url.raw_host.decode("ascii"), url.port or (443 if url.scheme == "https" else 80)


def _leads_on(of: httpx2.URL, to: httpx2.URL) -> bool:
    """Whether a redirect is followed: within one host and port, from its http to its https, and to
    where may be read without asking. Anywhere else a person has not agreed to; an address that may
    be read could send on whatever was written into it.
    """
    here, there = _host_and_port(of), _host_and_port(to)
    is_safer = (of.scheme, here[1], to.scheme, there[1]) == ("http", 80, "https", 443)
    is_same = here[0] == there[0] and (is_safer or (of.scheme, here[1]) == (to.scheme, there[1]))
    return is_same or addresses.may_be_read(*there)


def as_text(body: Any) -> str:
    """A JSON body as it goes over the wire."""
    return httpx2.Request("POST", "http://body", json=body).content.decode()
