"""A9: which addresses are of the open internet, by the registries; nothing is connected to."""

from ipaddress import IPv6Address, ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.builtin.addresses import is_public

# IANA's special-purpose registries and the clouds' own. For each network, whether the address
# before it and the one behind it are of the open internet; None where there is none.
NETWORKS: list[tuple[str, bool | None, bool | None]] = [
    ("0.0.0.0/8", None, True),
    ("10.0.0.0/8", True, True),
    ("100.64.0.0/10", True, True),
    ("100.100.100.200/32", False, False),
    ("127.0.0.0/8", True, True),
    ("168.63.129.16/32", True, True),
    ("169.254.0.0/16", True, True),
    ("169.254.169.254/32", False, False),
    ("172.16.0.0/12", True, True),
    ("192.0.0.0/24", True, True),
    ("192.0.0.0/29", True, False),
    ("192.0.0.8/32", False, False),
    ("192.0.0.9/32", False, False),
    ("192.0.0.10/32", False, False),
    ("192.0.0.170/31", False, False),
    ("192.0.0.192/32", False, False),
    ("192.0.2.0/24", True, True),
    ("192.31.196.0/24", True, True),
    ("192.52.193.0/24", True, True),
    ("192.88.99.0/24", True, True),
    ("192.168.0.0/16", True, True),
    ("192.175.48.0/24", True, True),
    ("198.18.0.0/15", True, True),
    ("198.51.100.0/24", True, True),
    ("203.0.113.0/24", True, True),
    ("224.0.0.0/4", True, False),
    ("240.0.0.0/4", False, None),
    ("255.255.255.255/32", False, None),
    ("::/128", None, False),
    ("::1/128", False, False),
    ("::/96", None, False),
    ("::ffff:0:0:0/96", False, False),
    ("64:ff9b:1::/48", False, False),
    ("100::/64", False, False),
    ("100:0:0:1::/64", False, False),
    ("2001::/23", True, True),
    ("2001::/32", True, False),
    ("2001:1::1/128", False, False),
    ("2001:1::2/128", False, False),
    ("2001:1::3/128", False, False),
    ("2001:2::/48", False, False),
    ("2001:3::/32", False, False),
    ("2001:4:112::/48", False, False),
    ("2001:10::/28", False, False),
    ("2001:20::/28", False, False),
    ("2001:30::/28", False, False),
    ("2001:db8::/32", True, True),
    ("2620:4f:8000::/48", True, True),
    ("3fff::/20", True, True),
    ("4000::/2", True, False),
    ("5f00::/16", False, False),
    ("fc00::/7", False, False),
    ("fd00:ec2::254/128", False, False),
    ("fd20:ce::254/128", False, False),
    ("fe80::/10", False, False),
    ("fec0::/10", False, False),
    ("ff00::/8", False, None),
]


@pytest.mark.parametrize(("network", "before", "behind"), NETWORKS)
def test_a_network_of_the_registries_is_not_public_up_to_its_edges(
    network: str, before: bool | None, behind: bool | None
) -> None:
    whole = ip_network(network)
    assert not is_public(str(whole[0]))
    assert not is_public(str(whole[-1]))
    if before is not None:
        assert is_public(str(whole[0] - 1)) == before
    if behind is not None:
        assert is_public(str(whole[-1] + 1)) == behind


@pytest.mark.parametrize(("prefix", "shift"), [("::ffff:0:0", 0), ("64:ff9b::", 0), ("2002::", 80)])
@pytest.mark.parametrize(("network", "before", "behind"), [n for n in NETWORKS if "." in n[0]])
def test_what_is_wrapped_is_looked_into(
    network: str, before: bool | None, behind: bool | None, prefix: str, shift: int
) -> None:
    def wrapped(ip: object) -> str:
        return str(IPv6Address(int(IPv6Address(prefix)) | int(ip_address(str(ip))) << shift))

    whole = ip_network(network)
    assert not is_public(wrapped(whole[0]))
    assert not is_public(wrapped(whole[-1]))
    if before is not None:
        assert is_public(wrapped(whole[0] - 1)) == before
    if behind is not None:
        assert is_public(wrapped(whole[-1] + 1)) == behind


@pytest.mark.parametrize(
    "address",
    [
        *("::127.0.0.1", "::ffff:0:127.0.0.1", "64:ff9b:1::7f00:1", "64:ff9b:1::5db8:d70e"),
        *("fe80::1%eth0", "2002:7f00:1::", "2002:c000:c0::", "::ffff:192.0.0.192"),
    ],
)
def test_an_odd_spelling_of_an_inside_address_is_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize(
    "address",
    ["93.184.215.14", "2606:4700::1111", "64:ff9b::5db8:d70e", "2002:5db8:d70e::", "2a00::1"],
)
def test_an_address_of_the_open_internet_is_public(address: str) -> None:
    assert is_public(address)


@given(st.ip_addresses())
def test_what_python_calls_inside_is_never_public(address: object) -> None:
    """Whatever version it is of: our list is the stricter one."""
    if not ip_address(str(address)).is_global:
        wrapped = getattr(address, "ipv4_mapped", None) or getattr(address, "sixtofour", None)
        assert not is_public(str(address)) or wrapped is not None
