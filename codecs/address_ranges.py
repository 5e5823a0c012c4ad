"""Ranges of addresses as the hosts of ACLs: `10.0.0.0/8`, `2001:db8::/32` (KIP-1276).

The bits after the prefix are ignored: `10.1.2.3/8` is `10.0.0.0/8`. A range of IPv4 addresses holds
no IPv6 address, nor the other way round; an IPv4 address in IPv6 notation (`::ffff:10.0.0.1`) is in
no range. Zones (`%eth0`) are ignored.

Source: Kafka's CidrUtils, whose texts these are and with which the tests compare.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

_MARK: Final = "/"
_V4_RANGE: Final = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,3}){3})/([0-9]{1,2})")
_V4_ADDRESS: Final = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}")
_JAVA_INT: Final = re.compile(r"[+-]?\d{1,10}")
_V4_BITS: Final = 32
_V6_BITS: Final = 128
# Ranges and addresses that are kept parsed; rules name few ranges, and clients come again.
_KEPT: Final = 4_096


class AddressRange(NamedTuple):
    """The addresses that have a prefix."""

    bits: int  # 32 or 128
    network: int  # the prefix, as a number
    prefix_length: int

    def holds(self, bits: int, address: int) -> bool:
        """Tell whether an address of so many bits has the prefix."""
        return bits == self.bits and address >> (bits - self.prefix_length) == self.network


def is_range(host: str) -> bool:
    """Tell whether the host of an ACL means a range of addresses."""
    return _MARK in host


@lru_cache(_KEPT)
def parse_range(text: str) -> AddressRange:
    """Return what a host with a slash in it means.

    Raises:
        ValueError: It is no range; the message is Kafka's.
    """
    return _v6_range(text) if ":" in text else _v4_range(text)


@lru_cache(_KEPT)
def is_in_range(host: str, text: str) -> bool:
    """Return whether a client's address is in a range; False if the text is not a range."""
    try:
        addresses = parse_range(text)
        bits, address = _v6_host(host) if ":" in host else (_V4_BITS, _v4_number(host))
    except ValueError:
        return False
    # 0.0.0.0 is in no range, by Kafka's library.
    return (address != 0 or bits != _V4_BITS) and addresses.holds(bits, address)


def _v4_range(text: str) -> AddressRange:
    match = _V4_RANGE.fullmatch(text)
    if match is None:
        raise ValueError(f"Could not parse [{text}]")
    address, length = _v4_number(match[1]), int(match[2])
    if length > _V4_BITS:
        raise ValueError(f"Value [{length}] not in range [0,{_V4_BITS}]")
    return AddressRange(_V4_BITS, address >> (_V4_BITS - length), length)


def _v4_number(text: str) -> int:
    if not _V4_ADDRESS.fullmatch(text):
        raise ValueError(f"Could not parse [{text}]")
    number = 0
    for part in text.split("."):
        if int(part) > 255:
            raise ValueError(f"Value [{int(part)}] not in range [0,255]")
        number = number << 8 | int(part)
    return number


def _v6_range(text: str) -> AddressRange:
    name, _, length_text = text.partition(_MARK)
    is_number = _JAVA_INT.fullmatch(length_text) is not None
    length = int(length_text) if is_number else 0
    if not is_number or not -(1 << 31) <= length < 1 << 31:
        raise ValueError(f"Could not parse [{text}] - invalid prefix length")
    if not 0 <= length <= _V6_BITS:
        raise ValueError(f"Could not parse [{text}] - prefix length must be between 0 and 128")
    bits, address = _v6_host(name)
    return AddressRange(bits, address >> (bits - length), length)


def _v6_host(name: str) -> tuple[int, int]:
    from ipaddress import IPv6Address  # noqa: PLC0415 - few need it

    is_bracketed = name.startswith("[") and name.endswith("]")
    try:
        address = IPv6Address(name[1:-1] if is_bracketed else name)
    except ValueError:
        raise ValueError(f"Could not parse [{name}]") from None
    if address.ipv4_mapped is not None:
        raise ValueError(f"Could not parse [{name}] - not an IPv6 address")
    return _V6_BITS, int(address)
