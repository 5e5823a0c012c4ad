"""A broker in test mode."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.base.clock import SystemClock
from wirebroker.broker.bound_sockets import bind_all
from wirebroker.broker.server import Server
from wirebroker.config.listeners.listeners import listeners_of
from wirebroker.coordinator.groups.partitions import CONSUMER_OFFSETS, TRANSACTION_STATE
from wirebroker.testing.faults.faulty_files import FaultyFiles

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from wirebroker.base.metrics import Metrics
    from wirebroker.codecs.metadata_records import MetadataRecord
    from wirebroker.config import Config
    from wirebroker.config.listeners.listeners import ListenerConfig
    from wirebroker.http.server import HttpServer
    from wirebroker.testing.test_mode.controls import BrokerControls


class ControlledServer(Server):
    """A Server with the parts that tests control.

    `ports` are those of the last broker with this data, by listener name. Without `has_http`, it
    does not open HTTP.
    """

    def __init__(
        self,
        controls: BrokerControls,
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
            clock=controls.clock,
            files=FaultyFiles(controls.faults),
            metrics=metrics,
            admission=controls.admission.admission,
            # Moving the clock must not time out connections.
            network_clock=SystemClock(),
            on_failure=on_failure,
            first_users=first_users,
        )
        self._controls = controls
        self._ports = ports or {}
        self._has_http = has_http

    async def start(self) -> None:
        """Start the broker, and serve test commands over HTTP if it is open."""
        await super().start()
        self._controls.server = self
        self._controls.admission.broker = self.broker
        if self.is_controller:
            self._make_internal_topics()
        if self.http is not None:
            self._add_routes(self.http)

    def _make_internal_topics(self) -> None:
        """Create them now: librdkafka would retry its first request after 1 s."""
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
        from wirebroker.http.health import add_health  # noqa: PLC0415 - lazy
        from wirebroker.http.routes import Routes  # noqa: PLC0415
        from wirebroker.metrics.scrape import add_metrics  # noqa: PLC0415

        http.routes = Routes()
        add_health(http.routes, self.not_ready_reason)
        add_metrics(http.routes, self)
        self._add_routes(http)
        self.http = http

    def _add_routes(self, http: HttpServer) -> None:
        from wirebroker.testing.test_mode.control_routes import add_controls  # noqa: PLC0415 - lazy

        add_controls(http.routes, self._controls)

    def _bind(self) -> list[tuple[ListenerConfig, socket.socket]]:
        ports = self._ports
        listeners = listeners_of(self.config)
        again = (
            listener._replace(port=ports.get(listener.name, listener.port))
            for listener in listeners
        )
        return bind_all(again, self.reception.settings)

    async def _open_http(self) -> None:
        if self._has_http:
            await super()._open_http()

    async def catch_up(self) -> None:
        """See Movable."""
        assert self.broker is not None, "it was started"
        assert self._maintenance is not None
        assert self.compactor is not None
        await self.broker.groups.catch_up()
        await self.broker.transactions.catch_up()
        await self.broker.share_coordinator.catch_up()
        if self.broker.share_parts.built is not None:
            await self.broker.shares.locks.release_expired()
        await self._maintenance.catch_up()
        await self.compactor.catch_up()
