"""The configs that the network layer reads, with their units in their names.

Source: Kafka's SocketServerConfigs; the rows themselves stand in the config table.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from wirebroker.config.listeners.listeners import inter_broker_listener, listeners_of
from wirebroker.config.rows.texts import counts_by_host
from wirebroker.coordinator.quotas.addresses import normal_address
from wirebroker.net.bounds.memory_budget import DEFAULT_BUDGET_BYTES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.config import Config

# Cut by the system to what it allows (net.core.somaxconn on Linux, 4,096 by default). With Kafka's
# default of 50, 2,000 clients that connect at once wait for SYN retransmissions: 36 s measured;
# with 1,024 a third of them waits a second.
_LARGEST_BACKLOG: Final = 2**31 - 1


@dataclass(slots=True, frozen=True, kw_only=True)
class NetworkSettings:
    """What the network layer needs to know."""

    request_max_bytes: int = 104_857_600
    # -1 leaves a buffer to the system. 100 KiB keeps what sendfile sends within the cache.
    send_buffer_bytes: int = 102_400
    receive_buffer_bytes: int = -1
    listen_backlog: int = _LARGEST_BACKLOG
    # Negative is never.
    connections_max_idle_ms: int = 600_000
    max_connections: int = 2**31 - 1
    max_connections_per_ip: int = 2**31 - 1
    # By address, as accepted sockets tell it.
    max_connections_per_ip_overrides: Mapping[str, int] = field(default_factory=dict[str, int])
    max_connection_creation_rate: int = 2**31 - 1
    # By listener; both have all listeners that there are.
    max_connections_of: Mapping[str, int] = field(default_factory=dict[str, int])
    creation_rate_of: Mapping[str, int] = field(default_factory=dict[str, int])
    inter_broker_listener: str = "PLAINTEXT"
    memory_budget_bytes: int = DEFAULT_BUDGET_BYTES
    frame_deadline_ms: int = 30_000
    authentication_deadline_ms: int = 30_000

    @classmethod
    def from_config(
        cls, config: Config, addresses: Mapping[str, str] | None = None
    ) -> NetworkSettings:
        """Read the rows of the config table.

        Args:
            config: What is in force.
            addresses: Of host names; a name without one is left out.
        """
        names = [listener.name for listener in listeners_of(config)]
        rate = "max.connection.creation.rate"
        return cls(
            request_max_bytes=config.int("socket.request.max.bytes"),
            send_buffer_bytes=config.int("socket.send.buffer.bytes"),
            receive_buffer_bytes=config.int("socket.receive.buffer.bytes"),
            listen_backlog=(
                config.int("socket.listen.backlog.size")
                if config.is_set("socket.listen.backlog.size")
                else _LARGEST_BACKLOG
            ),
            connections_max_idle_ms=config.int("connections.max.idle.ms"),
            max_connections=config.int("max.connections"),
            max_connections_per_ip=config.int("max.connections.per.ip"),
            max_connections_per_ip_overrides=_by_address(
                counts_by_host(config.str("max.connections.per.ip.overrides")), addresses or {}
            ),
            max_connection_creation_rate=config.int(rate),
            max_connections_of={n: config.listener_int(n, "max.connections") for n in names},
            creation_rate_of={n: config.listener_int(n, rate) for n in names},
            inter_broker_listener=inter_broker_listener(config),
            memory_budget_bytes=config.int("wirebroker.request.memory.bytes"),
            frame_deadline_ms=config.int("wirebroker.frame.deadline.ms"),
            authentication_deadline_ms=config.int("wirebroker.authentication.deadline.ms"),
        )


def _by_address(counts: Mapping[str, int], addresses: Mapping[str, str]) -> dict[str, int]:
    """Return counts by address; hosts whose address isn't known are left out."""
    found: dict[str, int] = {}
    for host, count in counts.items():
        address = normal_address(host) or addresses.get(host)
        if address is not None:
            found[address] = count
    return found
