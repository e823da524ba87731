"""Which addresses a URL from a model may lead to: public ones, and what the admin allowed.

A name is resolved once, what came out is checked, and the connection goes to exactly that: a
name that answers differently the next time leads nowhere else. As every connection is made here,
each hop of a redirect is checked, too.
"""

import socket
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from functools import cache
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Any

import httpcore2
import httpx2
from django.conf import settings
from django.utils.translation import gettext as _

from tools.errors import NoEffect

Resolve = Callable[[str, int], list[str]]
_NAT64 = IPv6Network("64:ff9b::/96")


def resolved(host: str, port: int) -> list[str]:
    """The addresses of a host. Raises OSError if it has none."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(item[4][0]) for item in found))


def is_public(address: str) -> bool:
    """Whether an address is one of the open internet, whatever it is wrapped in."""
    ip = ip_address(address.partition("%")[0])
    if isinstance(ip, IPv6Address):
        if ip.is_site_local or ip.teredo:
            return False
        inner = ip.ipv4_mapped or ip.sixtofour
        if inner is None and ip in _NAT64:
            inner = IPv4Address(int(ip) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(str(inner))
    return ip.is_global and not (ip.is_multicast or ip.is_reserved or ip.is_unspecified)


def is_allowed(host: str, port: int) -> bool:
    """Whether the admin lets tools reach this host wherever it is (HTTP_ALLOWED_HOSTS)."""
    names = {host.lower().rstrip("."), host.lower()}
    return any(
        each in settings.HTTP_ALLOWED_HOSTS
        for name in names
        for each in (name, f"{name}:{port}", f"[{name}]:{port}")
    )


def checked(host: str, port: int, *, within: float, resolve: Resolve = resolved) -> list[str]:
    """Where to connect to. Raises OSError for a name that is unknown or is not looked up `within`
    so many seconds, and NoEffect for one that leads inside: one such address among several is
    enough.
    """
    addresses = _in_time(lambda: resolve(host, port), within)
    if not is_allowed(host, port) and not all(map(is_public, addresses)):
        raise NoEffect(
            "not_allowed",
            _("%(host)s is inside a private network. An admin can allow it.") % {"host": host},
            host=host,
            port=port,
        )
    return addresses


def _in_time(ask: Callable[[], list[str]], within: float) -> list[str]:
    """The system's own look-up of names takes no deadline, so a thread waits for it."""
    found: Future[list[str]] = Future()

    def run() -> None:
        try:
            found.set_result(ask())
        except Exception as error:  # noqa: BLE001  (whoever waits for it raises it)
            found.set_exception(error)

    threading.Thread(target=run, name="look-up of a name", daemon=True).start()
    try:
        return found.result(within)
    except TimeoutError as error:
        raise TimeoutError("the name was not looked up in time") from error


class GuardedTransport(httpx2.HTTPTransport):
    """Connects to nothing but checked addresses, and ends at a moment of `time.monotonic()`."""

    def __init__(self, deadline: float, resolve: Resolve = resolved) -> None:
        super().__init__(verify=_certificates(), trust_env=False)
        self._pool.close()
        self._pool = httpcore2.ConnectionPool(
            ssl_context=_certificates(),
            max_keepalive_connections=0,
            network_backend=_Network(deadline, resolve),
        )


@cache
def _certificates() -> Any:
    """Loaded once: it takes longer than a request."""
    return httpx2.create_ssl_context()


class _Network(httpcore2.SyncBackend):
    def __init__(self, deadline: float, resolve: Resolve) -> None:
        self._deadline = deadline
        self._resolve = resolve

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.NetworkStream:
        try:
            within = _left(self._deadline, httpcore2.ConnectTimeout)
            addresses = checked(host, port, within=within, resolve=self._resolve)
        except OSError as error:
            raise httpcore2.ConnectError(str(error)) from error
        failed: Exception = httpcore2.ConnectError(f"{host} has no address")
        for address in addresses:
            left = _left(self._deadline, httpcore2.ConnectTimeout)
            try:
                stream = super().connect_tcp(address, port, left, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failed = error
            else:
                return _Stream(stream, self._deadline)
        raise failed


class _Stream(httpcore2.NetworkStream):
    """A connection whose every wait ends at the deadline: a server that sends a byte now and then
    does not keep us.
    """

    def __init__(self, inner: httpcore2.NetworkStream, deadline: float) -> None:
        self._inner = inner
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._inner.read(max_bytes, _left(self._deadline, httpcore2.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._inner.write(buffer, _left(self._deadline, httpcore2.WriteTimeout))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        left = _left(self._deadline, httpcore2.ConnectTimeout)
        return _Stream(self._inner.start_tls(ssl_context, server_hostname, left), self._deadline)

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


def _left(deadline: float, error: type[Exception]) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise error("the time for this call is over")
    return left
