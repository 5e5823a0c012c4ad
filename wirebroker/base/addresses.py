"""Addresses of peers as text, as Java writes them: IPv6 in full, without leading zeros.

A leaf.  Source: Java's InetAddress.getHostAddress.
"""

from __future__ import annotations

from ipaddress import IPv6Address


def host_of(peer: str) -> str:
    """Return the address of a peer `host:port`, `[host]:port`."""
    return java_host(peer.rpartition(":")[0].strip("[]"))


def java_host(host: str) -> str:
    """Return an address as Java writes it."""
    if ":" not in host:
        return host
    address = IPv6Address(host.partition("%")[0])
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return ":".join(f"{int(word, 16):x}" for word in address.exploded.split(":"))
