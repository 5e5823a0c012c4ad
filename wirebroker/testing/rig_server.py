"""A broker in test mode: Server, with the parts of a rig in place of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.clock import SystemClock
from wirebroker.server import Server
from wirebroker.testing.rig import Rig
from wirebroker.testing.rig_files import RigFiles

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from wirebroker.codecs.metadata_records import MetadataRecord
    from wirebroker.config import Config
    from wirebroker.metrics import Metrics


class RigServer(Server):
    """Runs one broker, of which tests take hold by its rig."""

    def __init__(
        self,
        rig: Rig,
        config: Config,
        *,
        port_file: Path | None = None,
        waits_for_disk: bool = True,
        metrics: Metrics | None = None,
        on_failure: Callable[[str], None] | None = None,
        first_users: Sequence[MetadataRecord] = (),
    ) -> None:
        super().__init__(
            config,
            port_file=port_file,
            clock=rig.clock,
            files=RigFiles(rig.faults, is_waited_for=waits_for_disk),
            metrics=metrics,
            gate=rig.gate.gate,
            on_failure=on_failure,
            first_users=first_users,
        )
        # Days that are passed over leave connections as they are.
        self._network_clock = SystemClock()
        self._rig = rig

    async def start(self) -> None:
        """Bring everything up; then the rig is at hand over HTTP, if that is served."""
        await super().start()
        self._rig.server = self
        self._rig.gate.broker = self.broker
        if self.http is not None:
            from wirebroker.testing.rig_routes import add_rig  # noqa: PLC0415 - as HTTP itself

            add_rig(self.http.routes, self._rig)

    async def catch_up(self) -> None:
        """Do at once what is due by the clock, which was moved."""
        assert self.broker is not None, "it was started"
        assert self._maintenance is not None
        assert self._compactor is not None
        await self.broker.groups.catch_up()
        await self.broker.transactions.catch_up()
        await self._maintenance.catch_up()
        await self._compactor.catch_up()


def build_in_test_mode(config: Config, **parts: Any) -> RigServer:
    """Make the broker of `wirebroker serve --test-mode`; the parts are those of Server."""
    return RigServer(Rig(), config, **parts)
