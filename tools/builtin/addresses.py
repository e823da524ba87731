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
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Any

import httpcore2
import httpx2
from django.conf import settings
from django.utils.translation import gettext as _

from tools.errors import NoEffect

Resolve = Callable[[str, int], list[str]]

# Whatever is in IANA's special-purpose registries (RFC 6890), those parts too that are routed:
# nothing there is a web site. A list of our own, because that of Python is another one with each
# version. Clouds' metadata services are in it: 169.254.169.254, 100.100.100.200, 192.0.0.192.
_NOT_PUBLIC_4 = tuple(
    IPv4Network(each)
    for each in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # shared by the customers of a carrier
        "127.0.0.0/8",  # this machine
        "168.63.129.16/32",  # the host agent of Azure, in no registry
        "169.254.0.0/16",  # link-local
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments
        "192.0.2.0/24",  # documentation
        "192.31.196.0/24",  # AS112
        "192.52.193.0/24",  # AMT
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",  # private
        "192.175.48.0/24",  # AS112
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and broadcast
    )
)
# Of IPv6, only this is given out as global unicast addresses. So what is outside of it needs no
# entry: ::, ::1, IPv4-compatible ones, 100::/64, 64:ff9b:1::/48, 5f00::/16, fc00::/7 (and in it
# fd00:ec2::254), fe80::/10, fec0::/10, ff00::/8.
_GLOBAL_6 = IPv6Network("2000::/3")
_NOT_PUBLIC_6 = tuple(
    IPv6Network(each)
    for each in (
        "2001::/23",  # protocol assignments: Teredo, benchmarks, AMT, ORCHID, DRIP …
        "2001:db8::/32",  # documentation
        "2620:4f:8000::/48",  # AS112
        "3fff::/20",  # documentation
    )
)
# Where an IPv4 address is wrapped in, and by how many bits it is shifted to the left.
_WRAPPED = (
    (IPv6Network("::ffff:0:0/96"), 0),  # IPv4-mapped
    (IPv6Network("64:ff9b::/96"), 0),  # NAT64
    (IPv6Network("2002::/16"), 80),  # 6to4
)


def resolved(host: str, port: int) -> list[str]:
    """The addresses of a host. Raises OSError if it has none."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(item[4][0]) for item in found))


def is_public(address: str) -> bool:
    """Whether an address is one of the open internet, whatever it is wrapped in."""
    ip = ip_address(address.partition("%")[0])
    if isinstance(ip, IPv6Address):
        for network, shift in _WRAPPED:
            if ip in network:
                ip = IPv4Address((int(ip) >> shift) & 0xFFFFFFFF)
                break
        else:
            return ip in _GLOBAL_6 and not any(ip in network for network in _NOT_PUBLIC_6)
    return not any(ip in network for network in _NOT_PUBLIC_4)


def is_allowed(host: str, port: int) -> bool:
    """Whether the admin lets tools reach this host wherever it is (HTTP_ALLOWED_HOSTS)."""
    return _is_named(host, port, settings.HTTP_ALLOWED_HOSTS)


def may_be_read(host: str, port: int) -> bool:
    """Whether the admin lets this host be read without asking anybody (HTTP_READ_HOSTS): what is
    read from it goes to it, too, in the address that is asked for.
    """
    return _is_named(host, port, settings.HTTP_READ_HOSTS)


def _is_named(host: str, port: int, named: list[str]) -> bool:
    names = {host.lower().rstrip("."), host.lower()}
    spellings = [spelt for name in names for spelt in (name, f"[{name}]")]
    return any(each in named for spelt in spellings for each in (spelt, f"{spelt}:{port}"))


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
