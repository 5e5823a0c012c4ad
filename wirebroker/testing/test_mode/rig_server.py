"""A broker in test mode: Server, with the parts of a rig in place of its own."""

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
    """Runs one broker, of which tests take hold by its rig.

    Args (besides those of Server):
        rig: What tests take hold of; it may have been another's.
        ports: Where the last one on this data listened, by the listener's name: again there.
        has_http: Whether HTTP is opened if it is set; else it is handed over, or there is none.
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
            # Days that are passed over leave connections as they are.
            network_clock=SystemClock(),
            on_failure=on_failure,
            first_users=first_users,
        )
        self._rig = rig
        self._ports = ports or {}
        self._has_http = has_http

    async def start(self) -> None:
        """Bring everything up; then the rig is at hand over HTTP, if that is served."""
        await super().start()
        self._rig.server = self
        self._rig.gate.broker = self.broker
        if self.is_controller:
            self._make_internal_topics()
        if self.http is not None:
            self._add_routes(self.http)

    def _make_internal_topics(self) -> None:
        """Begin to make them now: who is told to ask again, as Kafka tells the first, waits.

        librdkafka asks again after a second, which each test with a group would take longer.
        """
        assert self.broker is not None, "it was started"
        topics = self.broker.metadata.image.topics
        for name, coordinator in (
            (CONSUMER_OFFSETS, self.broker.groups),
            (TRANSACTION_STATE, self.broker.transactions),
        ):
            if name not in topics:
                coordinator.create_topic()

    def take_over(self, http: HttpServer) -> None:
        """Have an HTTP server that served another answer for this one."""
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
        """Do at once what is due by the clock, which was moved."""
        assert self.broker is not None, "it was started"
        assert self._maintenance is not None
        assert self.compactor is not None
        await self.broker.groups.catch_up()
        await self.broker.transactions.catch_up()
        await self._maintenance.catch_up()
        await self.compactor.catch_up()
