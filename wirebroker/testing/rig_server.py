"""A broker in test mode: Server, with the parts of a rig in place of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.server import Server
from wirebroker.testing.rig import Rig

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from wirebroker.config import Config
    from wirebroker.metrics import Metrics
    from wirebroker.storage.files import Files


class RigServer(Server):
    """Runs one broker, of which tests take hold by its rig."""

    def __init__(
        self,
        rig: Rig,
        config: Config,
        *,
        port_file: Path | None = None,
        files: Files | None = None,
        metrics: Metrics | None = None,
        on_failure: Callable[[str], None] | None = None,
    ) -> None:
        super().__init__(
            config,
            port_file=port_file,
            files=files,
            metrics=metrics,
            on_failure=on_failure,
            gate=rig.gate,
        )
        self._rig = rig

    async def start(self) -> None:
        """Bring everything up; then the rig is at hand over HTTP, if that is served."""
        await super().start()
        if self.http is not None:
            from wirebroker.testing.rig_routes import add_rig  # noqa: PLC0415 - as HTTP itself

            add_rig(self.http.routes, self._rig)


def build_in_test_mode(
    config: Config,
    *,
    port_file: Path | None = None,
    metrics: Metrics | None = None,
    on_failure: Callable[[str], None] | None = None,
) -> RigServer:
    """Make the broker of `wirebroker serve --test-mode`."""
    return RigServer(Rig(), config, port_file=port_file, metrics=metrics, on_failure=on_failure)
