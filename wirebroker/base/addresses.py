"""Addresses as text, those of peers in Java's format: IPv6 in full, without leading zeros.

Source: Java's InetAddress.getHostAddress.
"""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address


def host_of(peer: str) -> str:
    """Return the address of a peer `host:port` or `[host]:port`."""
    return java_host(peer.rpartition(":")[0].strip("[]"))


def java_host(host: str) -> str:
    """Return an address in Java's format."""
    if ":" not in host:
        return host
    address = IPv6Address(host.partition("%")[0])
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return ":".join(f"{int(word, 16):x}" for word in address.exploded.split(":"))


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address or host name."""
    try:
        address = ip_address(host)
    except ValueError:
        return host.lower() == "localhost"
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return address.is_loopback
