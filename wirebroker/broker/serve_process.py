"""A broker as a process: logging, event loop, signals, ready lines, exit status.

SIGTERM, SIGHUP and SIGINT shut it down cleanly; a second SIGINT ends the process immediately.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import sys
from typing import TYPE_CHECKING, Protocol, TypeAlias

from wirebroker.base.gc_tuning import GarbagePolicy
from wirebroker.base.malloc_tuning import give_back_large_blocks
from wirebroker.base.metrics import Metrics
from wirebroker.base.signals import on_signal
from wirebroker.base.version import PLAIN_BUILD, is_compiled
from wirebroker.broker.controller_server import ControllerServer
from wirebroker.broker.log_settings import LEAST_HIDDEN, configure_as
from wirebroker.broker.readiness import READY, STOPPING, notify_supervisor, readiness_lines
from wirebroker.broker.server import Server
from wirebroker.config import Config, ConfigError, StartError
from wirebroker.config.quorum import is_controller_alone, is_member
from wirebroker.net.listeners.ready_lines import open_warning, ready_lines
from wirebroker.net.loop_watch import LoopWatch

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from wirebroker.http.server import HttpServer
    from wirebroker.net.listeners.open_listeners import OpenListeners
    from wirebroker.net.listeners.ready_lines import BoundListener


class BrokerServer(Protocol):
    """A broker that can be served: `Server`, or the restartable one of the test mode."""

    @property
    def config(self) -> Config:
        """Its settings."""
        ...

    @property
    def listeners(self) -> OpenListeners | None:
        """Its listeners, once they are open."""
        ...

    @property
    def bound(self) -> list[BoundListener]:
        """The open listeners."""
        ...

    @property
    def controllers(self) -> list[BoundListener]:
        """The open listeners of its controller."""
        ...

    @property
    def cluster_id(self) -> str:
        """The cluster that it belongs to."""
        ...

    @property
    def data_directories(self) -> list[str]:
        """Paths of its log directories."""
        ...

    @property
    def http(self) -> HttpServer | None:
        """Its HTTP server."""
        ...

    async def start(self) -> None:
        """Start it; return once it serves clients."""
        ...

    async def stop(self) -> None:
        """Stop it cleanly."""
        ...


_AnyServer: TypeAlias = "BrokerServer | ControllerServer"

logger = logging.getLogger("wirebroker")


def run(
    config: Config,
    *,
    port_file: Path | None = None,
    build: Callable[..., BrokerServer] = Server,
    process: str = "",
) -> int:
    """Serve until stopped; return the process's exit status.

    Args:
        config: The settings.
        port_file: Where the port is written.
        build: Has the signature of Server.
        process: Name in log lines, if there are several processes.

    Raises:
        StartError, ConfigError: The broker cannot start.
    """
    configure_as(config, process=process)
    for warning in config.warnings():
        logger.warning("%s", warning)
    give_back_large_blocks()
    metrics = Metrics()
    try:
        with (
            GarbagePolicy() as garbage,
            asyncio.Runner(loop_factory=LoopWatch(metrics).new_event_loop) as runner,
        ):
            return runner.run(_serve(config, port_file, garbage, metrics, build))
    except (ConfigError, StartError) as error:
        error.args = (config.redacted(str(error), at_least=LEAST_HIDDEN),)
        raise


async def _serve(
    config: Config,
    port_file: Path | None,
    garbage: GarbagePolicy,
    metrics: Metrics,
    build: Callable[..., BrokerServer],
) -> int:
    told_to_stop = asyncio.Event()

    def on_interrupt() -> None:
        if told_to_stop.is_set():
            os._exit(130)
        told_to_stop.set()

    on_signal("SIGTERM", told_to_stop.set)
    on_signal("SIGINT", on_interrupt)
    # The terminal was closed. nohup's SIG_IGN stays in force, as in the JVM.
    on_signal("SIGHUP", told_to_stop.set, unless_ignored=True)
    failures: list[str] = []

    def on_failure(line: str) -> None:
        # During the start it is reported as the reason of the StartError.
        if isinstance(server, ControllerServer) or server.listeners is not None:
            logger.error("%s", line)
        failures.append(line)
        told_to_stop.set()

    garbage.keep_all()  # the modules
    server: _AnyServer
    if is_controller_alone(config):
        server = ControllerServer(config, port_file=port_file, on_failure=on_failure)
    else:
        server = build(config, port_file=port_file, metrics=metrics, on_failure=on_failure)
    if not await _start(server, told_to_stop):
        if failures:
            raise StartError(failures[0], "see docs/cluster.md for what can be joined")
        return 0
    garbage.keep_all()
    _say_ready(server)
    notify_supervisor(READY, os.environ)
    await told_to_stop.wait()
    notify_supervisor(STOPPING, os.environ)
    logger.info("stopping")
    await server.stop()
    logger.info("stopped")
    return 1 if failures else 0


async def _start(server: _AnyServer, told_to_stop: asyncio.Event) -> bool:
    """Start; return False if stopped while waiting for the controllers."""
    starting = asyncio.create_task(server.start(), name="start")
    if is_member(server.config):
        stopping = asyncio.create_task(told_to_stop.wait())
        await asyncio.wait({starting, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if not starting.done():
            starting.cancel()
            await asyncio.wait({starting})
            return False
    await starting
    return True


def _say_ready(server: _AnyServer) -> None:
    warning = open_warning([*server.bound, *server.controllers])
    if warning is not None:
        logger.warning("%s", warning)
    if not is_compiled():
        logger.info("%s", PLAIN_BUILD)
    lines = ready_lines(
        server.bound,
        node_id=server.config.node_id,
        cluster_id=server.cluster_id,
        directories=server.data_directories,
        http=[] if server.http is None else server.http.addresses,
        machine=socket.gethostname(),
        controllers=server.controllers,
    )
    lines += readiness_lines(server.config.node_id, os.environ)
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()
