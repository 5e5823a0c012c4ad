"""The ready lines: where the broker listens, where to connect, where its data is.

    wirebroker ready on [::]:9092 (node 1, cluster MkU3OEVBNTcwNTJENDM2Qk)
      PLAINTEXT: every interface, port 9092; connect to 127.0.0.1:9092 here, box:9092 from elsewhere
      http://127.0.0.1:9404: /metrics, /ready, /live
      data: /home/me/data

Programs read the first line; it has the first listener's bound address. A listener has its own line
unless it is the only one and clients connect to its bound address.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING, NamedTuple

from wirebroker.base.addresses import is_loopback
from wirebroker.net.client.settings import PeerAddress

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from wirebroker.config.listeners.listeners import Address


class BoundListener(NamedTuple):
    """An open listener.

    Attributes:
        host: Its bound, numeric address.
        advertised: The address for clients; None for the one they connected to.
        is_open: Whether clients need not authenticate.
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
    """Return the lines for standard output; `machine` is this machine's name for other ones."""
    first = bound[0]
    address = shown_address(first.host, first.port)
    lines = [f"wirebroker ready on {address} (node {node_id}, cluster {cluster_id})"]
    if len(bound) > 1 or is_everywhere(first.host) or first.advertised is not None:
        lines += [
            f"  {listener.name}: {_place(listener)}; {_advice(listener, machine)}"
            for listener in bound
        ]
    lines += [f"  controller {listener.name}: {_place(listener)}" for listener in controllers]
    for host, port in http:
        lines.append(f"  http://{shown_address(host, port)}: /metrics, /ready, /live")
    lines.append(f"  data: {', '.join(directories)}")
    return lines


def open_warning(bound: Iterable[BoundListener]) -> str | None:
    """Return a warning if unauthenticated clients can connect from other machines."""
    exposed = [
        f"{listener.name} ({_place(listener)})"
        for listener in bound
        if listener.is_open and not is_loopback(listener.host)
    ]
    if not exposed:
        return None
    return (
        f"{', '.join(exposed)}: reachable from other machines and unprotected: any client may "
        "read, change and delete all data; configure authentication (docs/security.md), "
        "listen on 127.0.0.1 (--host 127.0.0.1), or protect the port with a firewall"
    )


def shown_address(host: str, port: int) -> str:
    """Return host:port."""
    return str(PeerAddress(host, port))


def is_everywhere(host: str) -> bool:
    """Return whether an address means all interfaces."""
    return ip_address(host).is_unspecified


def _place(listener: BoundListener) -> str:
    if not is_everywhere(listener.host):
        return shown_address(listener.host, listener.port)
    kind = "interface" if ":" in listener.host else "IPv4 interface"
    return f"every {kind}, port {listener.port}"


def _advice(listener: BoundListener, machine: str) -> str:
    host, port, advertised = listener.host, listener.port, listener.advertised
    if advertised is not None:
        return f"advertised as {shown_address(advertised.host, advertised.port or port)}"
    if is_everywhere(host):
        local_address, remote_address = (
            shown_address("127.0.0.1", port),
            shown_address(machine, port),
        )
        return f"connect to {local_address} here, {remote_address} from elsewhere"
    return f"connect to {shown_address(host, port)}"
