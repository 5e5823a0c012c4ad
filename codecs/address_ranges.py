"""Address ranges as hosts of ACLs: `10.0.0.0/8`, `2001:db8::/32` (KIP-1276).

Bits after the prefix and zones (`%eth0`) are ignored. An IPv4 range contains no IPv6 address and
vice versa; an IPv4-mapped address (`::ffff:10.0.0.1`) is in no range.

Source: Kafka's CidrUtils, including its error messages.
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
_KEPT: Final = 4_096


class AddressRange(NamedTuple):
    """A range of addresses with a common prefix."""

    bits: int  # 32 or 128
    network: int  # the prefix, as a number
    prefix_length: int

    def holds(self, bits: int, address: int) -> bool:
        """Return whether an address is in the range."""
        return bits == self.bits and address >> (bits - self.prefix_length) == self.network


def is_range(host: str) -> bool:
    """Return whether the host of an ACL is a range."""
    return _MARK in host


@lru_cache(_KEPT)
def parse_range(text: str) -> AddressRange:
    """Parse a host that contains a slash.

    Raises:
        ValueError: The text is not a range; the message is Kafka's.
    """
    return _v6_range(text) if ":" in text else _v4_range(text)


@lru_cache(_KEPT)
def is_in_range(host: str, text: str) -> bool:
    """Return whether a client's address is in a range; False if `text` is not a range."""
    try:
        addresses = parse_range(text)
        bits, address = _v6_host(host) if ":" in host else (_V4_BITS, _v4_number(host))
    except ValueError:
        return False
    # Kafka's library excludes 0.0.0.0 from every range.
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
