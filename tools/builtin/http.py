"""HTTP for tools: tells what is known not to have happened from what nobody knows."""

import codecs
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from typing import Any
from urllib.parse import urlsplit

import httpcore2
import httpx2
from django.utils.translation import gettext as _

from tools.builtin.addresses import GuardedTransport, Resolve, _Stream, resolved
from tools.contract import Context
from tools.errors import NoEffect

# Raised before a single byte of the request was sent.
NEVER_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.UnsupportedProtocol)
# Raised by what no request can be made of: a header, an address or a body with impossible signs.
NEVER_MADE = (httpx2.LocalProtocolError, httpx2.InvalidURL, UnicodeEncodeError)
# Seconds for which servers, and proxies before them, keep a request whose sender has gone: the time
# limits of both are a minute or two, one after the other. For a tool's `horizon`.
SERVED_WITHIN = 5 * 60.0
# Of the answers that lead elsewhere, those that say: nothing was done.
NOT_DONE = (304, 307, 308)
MOST_BYTES = 1024 * 1024  # of an answer
MOST_HOPS = 5  # redirects that are followed
MOST_ANSWER = 16_000  # characters of a refusal's words: whoever shows them masks first, then cuts
# The encodings of the web (whatwg.org, Encoding), as Python calls them. It knows more, such as
# utf-7 and idna, which read something else into a text than others do, or take for ever over it.
_CHARSETS = {
    *(
        "utf-8",
        "utf-8-sig",
        "ascii",
        "utf-16",
        "utf-16-le",
        "utf-16-be",
        "gbk",
        "gb18030",
        "gb2312",
    ),
    *(
        "big5",
        "big5hkscs",
        "euc_jp",
        "iso2022_jp",
        "shift_jis",
        "cp932",
        "euc_kr",
        "cp949",
        "cp874",
    ),
    *("koi8-r", "koi8-u", "cp866", "mac-roman", "mac-cyrillic"),
    *(f"iso8859-{n}" for n in range(1, 17)),
    *(f"cp125{n}" for n in range(9)),
}
# When what is connected now has to be over, in `time.monotonic()`; see `ending_within`.
_ends_at: ContextVar[float | None] = ContextVar("ends_at", default=None)
_LOOPBACK = {"127.0.0.1", "localhost", "::1"}


def send(ctx: Context, method: str, url: str, **options: Any) -> httpx2.Response:
    """Send one request that has an effect; the answer is 2xx, or a status listed in `expect`.

    With `ask=guarded`, to a URL that a model wrote.

    Raises NoEffect where it is known that nothing happened: never sent, refused (4xx, and 304, 307,
    308), or put off (429; 503 that says when to come again). Anything else (5xx, another 3xx, no
    answer in time, a dropped connection) comes out as httpx2.HTTPError: nobody knows.
    """
    expect, ask = options.pop("expect", ()), options.pop("ask", request)
    ctx.sending()
    try:
        response = ask(ctx, method, url, **options)
    except NEVER_SENT as error:
        raise NoEffect(
            "unreachable",
            _("%(host)s could not be reached, so nothing was sent.") % {"host": _host(url)},
            is_passing=not isinstance(error, httpx2.UnsupportedProtocol),
            error=str(error),
        ) from error
    except NEVER_MADE:  # what they say repeats the header, secret and all
        raise NoEffect(
            "not_sendable",
            _("The request has signs that cannot be sent, so nothing was sent."),
        ) from None
    _refuse_put_off(response, url)
    status = response.status_code
    if status in expect or response.is_success:
        return response
    # 408: the other side gave up waiting for our request, which may have been half read.
    if status in NOT_DONE or (400 <= status < 500 and status != 408):
        raise NoEffect(
            "refused",
            _("%(host)s refused it (%(status)s).") % {"host": _host(url), "status": status},
            status=status,
            answer=response.text[:MOST_ANSWER],
        )
    # Many answer with a redirect once they have done it.
    response.raise_for_status()
    return response


def _refuse_put_off(response: httpx2.Response, url: str) -> None:
    status, retry_after = response.status_code, _retry_after(response)
    if status == 429 or (status == 503 and retry_after is not None):
        raise NoEffect(
            "busy",
            _("%(host)s has too much to do (%(status)s).") % {"host": _host(url), "status": status},
            is_passing=True,
            retry_after=retry_after,
            status=status,
        )


def request(ctx: Context, method: str, url: str, **options: Any) -> httpx2.Response:
    """One request with this call's deadline; any status is an answer."""
    return _readable(_client_for(url).request(method, url, timeout=ctx.timeout, **options))


def bounded(ctx: Context, method: str, url: str, **options: Any) -> httpx2.Response:
    """The same, with no more than 1 MiB of an answer, and all of it within this call's deadline:
    for a server that is not ours.
    """
    with (
        ending_within(ctx.timeout),
        _client_for(url).stream(method, url, timeout=ctx.timeout, **options) as response,
    ):
        return _as_read(response)


@contextmanager
def ending_within(seconds: float) -> Iterator[None]:
    """Connections that a client of `timed` opens in this block end after that time, also with a
    server that sends a byte now and then.
    """
    before = _ends_at.set(time.monotonic() + seconds)
    try:
        yield
    finally:
        _ends_at.reset(before)


def timed(client: httpx2.Client) -> httpx2.Client:
    """The same client, which heeds `ending_within`, through a proxy too."""
    for transport in (client._transport, *client._mounts.values()):
        if isinstance(transport, httpx2.HTTPTransport):
            transport._pool._network_backend = _InTime()
    return client


class _InTime(httpcore2.SyncBackend):
    def connect_tcp(self, *args: Any, **options: Any) -> httpcore2.NetworkStream:
        stream = super().connect_tcp(*args, **options)
        ends_at = _ends_at.get()
        return stream if ends_at is None else _Stream(stream, ends_at)


def guarded(
    ctx: Context,
    method: str,
    url: str,
    *,
    resolve: Resolve = resolved,
    follows: Callable[[httpx2.URL, httpx2.URL], bool] = lambda _of, _to: False,
    **options: Any,
) -> httpx2.Response:
    """One request to a URL that a model wrote: to public addresses, and those that the admin
    allowed (NoEffect otherwise); no proxy; all of it within this call's deadline, and no more than
    1 MiB of an answer. A redirect is followed where `follows(of, to)`, and MOST_HOPS at most.
    """
    transport = GuardedTransport(time.monotonic() + ctx.timeout, resolve)
    with httpx2.Client(transport=transport, trust_env=False) as client:
        request = client.build_request(method, url, timeout=ctx.timeout, **options)
        for _hop in range(MOST_HOPS + 1):
            response = client.send(request, stream=True)
            try:
                to = response.next_request
                if to is None or not follows(request.url, to.url):
                    return _as_read(response)
            finally:
                response.close()
            request = to
    raise httpx2.TooManyRedirects("too many redirects", request=request)


def _as_read(response: httpx2.Response) -> httpx2.Response:
    """The answer with the first part of its content, not decompressed: nobody knows how much that
    would be.
    """
    content = bytearray()
    for chunk in response.iter_raw(chunk_size=65536):
        content += chunk
        if len(content) > MOST_BYTES:
            break
    kept = [
        (name, value)
        for name, value in response.headers.multi_items()
        if name not in ("content-encoding", "content-length", "transfer-encoding")
    ]
    if "content-encoding" in response.headers:
        kept = [(name, value) for name, value in kept if name != "content-type"]
    return _readable(
        httpx2.Response(
            response.status_code,
            headers=kept,
            content=bytes(content[:MOST_BYTES]),
            request=response.request,
        )
    )


def _readable(response: httpx2.Response) -> httpx2.Response:
    """The answer, whose text is UTF-8 should it name no encoding of the web: a server names what it
    likes, and an answer that cannot be read would be a doubt.
    """
    try:
        is_known = codecs.lookup(response.charset_encoding or "utf-8").name in _CHARSETS
    except (LookupError, ValueError):
        is_known = False
    if not is_known:
        response.encoding = "utf-8"
    return response


def is_passing(error: Exception) -> bool:
    """Whether a request that only asked may be answered in a while: nobody listened, no answer
    in time, or trouble over there.
    """
    if isinstance(error, httpx2.HTTPStatusError):
        return error.response.status_code >= 500 or error.response.status_code == 429
    return isinstance(error, httpx2.TransportError) and not isinstance(
        error, httpx2.UnsupportedProtocol
    )


def why(error: Exception) -> str:
    """What an exception says, in short, for a person who has to find out more."""
    if isinstance(error, NEVER_MADE):  # it repeats what was to be sent, secrets too
        return type(error).__name__
    return f"{type(error).__name__}: {error}"


def _retry_after(response: httpx2.Response) -> float | None:
    """When to come again, in seconds, if the answer says so: a number, or a date."""
    said = response.headers.get("Retry-After", "")
    if said.isascii() and said.isdigit():
        return float(said)
    try:
        return (parsedate_to_datetime(said) - datetime.now(UTC)).total_seconds()
    except (ValueError, TypeError):  # no date, or one without a zone
        return None


def is_near(url: str) -> bool:
    """Whether it is on this very machine, where no proxy is asked."""
    return _host(url) in _LOOPBACK


def _client_for(url: str) -> httpx2.Client:
    return _client(os.getpid(), url.startswith("https:"), not is_near(url))


@cache
def _client(pid: int, secure: bool, through_proxy: bool) -> httpx2.Client:
    """One client per process: to load the certificates takes longer than to send a request, so
    a client that speaks plain HTTP, and follows no redirect, does without them.

    No connection is kept alive: the server may drop an idle one just as a request goes out on
    it, and a call that never arrived would be in doubt.
    """
    limits = httpx2.Limits(max_keepalive_connections=0)
    return timed(httpx2.Client(limits=limits, trust_env=through_proxy))


def _host(url: str) -> str:
    return urlsplit(url).hostname or url
