"""What a broker says once it serves: where it listens, where to connect, where data lies.

    wirebroker ready on [::]:9092 (node 1, cluster MkU3OEVBNTcwNTJENDM2Qk)
      PLAINTEXT: every interface, port 9092; connect to 127.0.0.1:9092 here, box:9092 from elsewhere
      http://127.0.0.1:9404: /metrics, /ready, /live
      data: /home/me/data

The first line names the address that the first listener is bound to; programs read it (the
Makefile, tests). A listener has a line of its own unless it is the only one and its address is
where clients connect.

A leaf.
"""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from wirebroker.config.listeners.listeners import Address


class BoundListener(NamedTuple):
    """A listener that is open.

    Attributes:
        name: As in `listeners`.
        host: The numeric address that it is bound to.
        port: The port that it is bound to.
        advertised: What its clients are told; None for the address they came to.
        is_open: Whether clients need not say who they are.
    """

    name: str
    host: str
    port: int
    advertised: Address | None
    is_open: bool = True


def ready_lines(
    bound: Sequence[BoundListener],
    *,
    node_id: int,
    cluster_id: str,
    directories: Iterable[str],
    machine: str,
    controllers: Iterable[BoundListener] = (),
    http: Iterable[tuple[str, int]] = (),
) -> list[str]:
    """Return the lines for standard output.

    Args:
        bound: At least one listener.
        node_id: This broker's.
        cluster_id: Its cluster's.
        directories: Where data lies, as absolute paths.
        machine: What others may call this machine.
        controllers: Where other nodes reach the controller beside it.
        http: Addresses and ports at which HTTP is served.
    """
    first = bound[0]
    where = shown_address(first.host, first.port)
    lines = [f"wirebroker ready on {where} (node {node_id}, cluster {cluster_id})"]
    if len(bound) > 1 or is_everywhere(first.host) or first.advertised is not None:
        lines += [f"  {each.name}: {_place(each)}; {_advice(each, machine)}" for each in bound]
    lines += [f"  controller {each.name}: {_place(each)}" for each in controllers]
    for host, port in http:
        lines.append(f"  http://{shown_address(host, port)}: /metrics, /ready, /live")
    lines.append(f"  data: {', '.join(directories)}")
    return lines


def open_warning(bound: Iterable[BoundListener]) -> str | None:
    """Return the line of warning if listeners are open to everybody beyond this machine."""
    places = [
        f"{each.name} ({_place(each)})"
        for each in bound
        if each.is_open and not is_loopback(each.host)
    ]
    if not places:
        return None
    return (
        f"{', '.join(places)}: open beyond this machine and unprotected, whoever can connect may "
        "read, change and delete everything; ask clients who they are (docs/security.md), "
        "listen at 127.0.0.1 (--host 127.0.0.1), or let only friends reach the port"
    )


def shown_address(host: str, port: int) -> str:
    """Return host and port as they are written in addresses."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def is_everywhere(host: str) -> bool:
    """Tell whether a numeric address stands for every interface."""
    return ip_address(host).is_unspecified


def is_loopback(host: str) -> bool:
    """Tell whether a numeric address is reached from this machine alone."""
    address = ip_address(host)
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return address.is_loopback


def _place(listener: BoundListener) -> str:
    if not is_everywhere(listener.host):
        return shown_address(listener.host, listener.port)
    kind = "interface" if ":" in listener.host else "IPv4 interface"
    return f"every {kind}, port {listener.port}"


def _advice(listener: BoundListener, machine: str) -> str:
    host, port, told = listener.host, listener.port, listener.advertised
    if told is not None:
        return f"clients are told {shown_address(told.host, told.port or port)}"
    if is_everywhere(host):
        here, elsewhere = shown_address("127.0.0.1", port), shown_address(machine, port)
        return f"connect to {here} here, {elsewhere} from elsewhere"
    return f"connect to {shown_address(host, port)}"
