"""IP addresses in the spelling of accepted sockets.

Source: Java's InetAddress.getByName, with which Kafka compares addresses.
"""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address


def normal_address(text: str) -> str | None:
    """Return an IP address as an accepted socket reports it; None if the text is not one.

    IPv6 may have any spelling, also in brackets; an IPv4-mapped address becomes IPv4.
    """
    inside = text[1:-1] if text[:1] == "[" and text[-1:] == "]" else text
    try:
        address = ip_address(inside)
    except ValueError:
        return None
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
    elif inside is not text:
        return None
    return str(address)
