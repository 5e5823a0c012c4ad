"""Settings of the network layer, with their units in their names.

Source: Kafka's SocketServerConfigs.
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

# The system limits it (net.core.somaxconn). With Kafka's default of 50, 2,000 simultaneous clients
# wait up to 36 s for SYN retransmissions.
_LARGEST_BACKLOG: Final = 2**31 - 1


@dataclass(slots=True, frozen=True, kw_only=True)
class NetworkSettings:
    """Settings of the network layer."""

    request_max_bytes: int = 104_857_600
    # -1: the system's default. 100 KiB keeps what sendfile sends within the CPU cache.
    send_buffer_bytes: int = 102_400
    receive_buffer_bytes: int = -1
    listen_backlog: int = _LARGEST_BACKLOG
    # Negative: never.
    connections_max_idle_ms: int = 600_000
    max_connections: int = 2**31 - 1
    max_connections_per_ip: int = 2**31 - 1
    # By address in the format of accepted sockets.
    max_connections_per_ip_overrides: Mapping[str, int] = field(default_factory=dict[str, int])
    max_connection_creation_rate: int = 2**31 - 1
    # quota.window.num and quota.window.size.seconds.
    rate_samples: int = 11
    rate_sample_s: int = 1
    # By listener; both contain all listeners.
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
        """Read the settings; host names that are not in `addresses` are ignored."""
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
            rate_samples=config.int("quota.window.num"),
            rate_sample_s=config.int("quota.window.size.seconds"),
            max_connections_of={
                name: config.listener_int(name, "max.connections") for name in names
            },
            creation_rate_of={name: config.listener_int(name, rate) for name in names},
            inter_broker_listener=inter_broker_listener(config),
            memory_budget_bytes=config.int("wirebroker.request.memory.bytes"),
            frame_deadline_ms=config.int("wirebroker.frame.deadline.ms"),
            authentication_deadline_ms=config.int("wirebroker.authentication.deadline.ms"),
        )


def _by_address(counts: Mapping[str, int], addresses: Mapping[str, str]) -> dict[str, int]:
    address_counts: dict[str, int] = {}
    for host, count in counts.items():
        address = normal_address(host) or addresses.get(host)
        if address is not None:
            address_counts[address] = count
    return address_counts
