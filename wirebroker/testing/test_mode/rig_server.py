"""A broker in test mode: Server with the parts of a rig."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.base.clock import SystemClock
from wirebroker.broker.bound_sockets import bind_all
from wirebroker.broker.server import Server
from wirebroker.config.listeners.listeners import listeners_of
from wirebroker.coordinator.groups.partitions import CONSUMER_OFFSETS, TRANSACTION_STATE
from wirebroker.testing.faults.rig_files import RigFiles

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from wirebroker.base.metrics import Metrics
    from wirebroker.codecs.metadata_records import MetadataRecord
    from wirebroker.config import Config
    from wirebroker.config.listeners.listeners import ListenerConfig
    from wirebroker.http.server import HttpServer
    from wirebroker.testing.test_mode.rig import Rig


class RigServer(Server):
    """A broker that tests control through its rig.

    Args (in addition to those of Server):
        rig: The controlled parts, possibly of an earlier broker.
        ports: Ports of the last broker with this data, by listener name.
        has_http: Whether to open HTTP if it is configured.
    """

    def __init__(
        self,
        rig: Rig,
        config: Config,
        *,
        ports: Mapping[str, int] | None = None,
        has_http: bool = True,
        port_file: Path | None = None,
        metrics: Metrics | None = None,
        on_failure: Callable[[str], None] | None = None,
        first_users: Sequence[MetadataRecord] = (),
    ) -> None:
        super().__init__(
            config,
            port_file=port_file,
            clock=rig.clock,
            files=RigFiles(rig.faults),
            metrics=metrics,
            gate=rig.gate.gate,
            # Moving the clock must not time out connections.
            network_clock=SystemClock(),
            on_failure=on_failure,
            first_users=first_users,
        )
        self._rig = rig
        self._ports = ports or {}
        self._has_http = has_http

    async def start(self) -> None:
        """Start the broker, and serve the rig's commands over HTTP if it is open."""
        await super().start()
        self._rig.server = self
        self._rig.gate.broker = self.broker
        if self.is_controller:
            self._make_internal_topics()
        if self.http is not None:
            self._add_routes(self.http)

    def _make_internal_topics(self) -> None:
        """Create them now: librdkafka would retry its first request for one after 1 s."""
        assert self.broker is not None, "it was started"
        topics = self.broker.metadata.image.topics
        for name, coordinator in (
            (CONSUMER_OFFSETS, self.broker.groups),
            (TRANSACTION_STATE, self.broker.transactions),
        ):
            if name not in topics:
                coordinator.create_topic()

    def take_over(self, http: HttpServer) -> None:
        """Use the HTTP server of an earlier broker."""
        from wirebroker.http.health import add_health  # noqa: PLC0415 - as HTTP itself
        from wirebroker.http.routes import Routes  # noqa: PLC0415
        from wirebroker.metrics.scrape import add_metrics  # noqa: PLC0415

        http.routes = Routes()
        add_health(http.routes, self.why_not_ready)
        add_metrics(http.routes, self)
        self._add_routes(http)
        self.http = http

    def _add_routes(self, http: HttpServer) -> None:
        from wirebroker.testing.test_mode.rig_routes import add_rig  # noqa: PLC0415 - as HTTP itself

        add_rig(http.routes, self._rig)

    def _bind(self) -> list[tuple[ListenerConfig, socket.socket]]:
        ports = self._ports
        listeners = listeners_of(self.config)
        again = (each._replace(port=ports.get(each.name, each.port)) for each in listeners)
        return bind_all(again, self.reception.settings)

    async def _open_http(self) -> None:
        if self._has_http:
            await super()._open_http()

    async def catch_up(self) -> None:
        """Do everything that is due after the clock was moved."""
        assert self.broker is not None, "it was started"
        assert self._maintenance is not None
        assert self.compactor is not None
        await self.broker.groups.catch_up()
        await self.broker.transactions.catch_up()
        await self._maintenance.catch_up()
        await self.compactor.catch_up()
