"""The configs that the network layer reads, with their units in their names.

Source: Kafka's SocketServerConfigs; the rows themselves stand in the config table.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from wirebroker.net.memory_budget import DEFAULT_BUDGET_BYTES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.config import Config

# A backlog of 50 (Kafka's default) makes 2,000 clients that connect at once wait for SYN
# retransmissions of a second and more: 36 s measured, with 1,024 it is under one.
_LEAST_BACKLOG: Final = 1024


@dataclass(slots=True, frozen=True, kw_only=True)
class NetworkSettings:
    """What the network layer needs to know."""

    request_max_bytes: int = 104_857_600
    # -1 leaves a buffer to the system. 100 KiB keeps what sendfile sends within the cache.
    send_buffer_bytes: int = 102_400
    receive_buffer_bytes: int = -1
    listen_backlog: int = _LEAST_BACKLOG
    # Negative is never.
    connections_max_idle_ms: int = 600_000
    max_connections: int = 2**31 - 1
    max_connections_per_ip: int = 2**31 - 1
    max_connections_per_ip_overrides: Mapping[str, int] = field(default_factory=dict[str, int])
    memory_budget_bytes: int = DEFAULT_BUDGET_BYTES
    frame_deadline_ms: int = 30_000

    @classmethod
    def from_config(cls, config: Config) -> NetworkSettings:
        """Read the rows of the config table."""
        return cls(
            request_max_bytes=config.int("socket.request.max.bytes"),
            send_buffer_bytes=config.int("socket.send.buffer.bytes"),
            receive_buffer_bytes=config.int("socket.receive.buffer.bytes"),
            listen_backlog=max(_LEAST_BACKLOG, config.int("socket.listen.backlog.size")),
            connections_max_idle_ms=config.int("connections.max.idle.ms"),
            max_connections=config.int("max.connections"),
            max_connections_per_ip=config.int("max.connections.per.ip"),
            memory_budget_bytes=config.int("wirebroker.request.memory.bytes"),
            frame_deadline_ms=config.int("wirebroker.frame.deadline.ms"),
        )
