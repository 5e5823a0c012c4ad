"""A broker as a process: logging, event loop, signals, ready lines, exit status.

SIGTERM, SIGHUP and SIGINT shut it down cleanly; a second SIGINT ends the process immediately.
Variables for further notifications:

    NOTIFY_SOCKET                   systemd's, for units with Type=notify: READY=1, STOPPING=1
    WIREBROKER_READY_WORDS=kafka    lines that Apache Kafka prints when it has started

The container image sets the second, because test libraries wait for one of the lines.

Source: systemd's sd_notify(3); testcontainers for Python, Java and Go.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import sys
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from wirebroker.base.gc_tuning import GarbagePolicy, uncollected
from wirebroker.base.malloc_tuning import give_back_large_blocks
from wirebroker.base.metrics import Metrics
from wirebroker.base.signals import on_signal
from wirebroker.base.version import PLAIN_BUILD, is_compiled
from wirebroker.broker.companions import (
    LocalBroker,
    local_address,
    local_http_url,
    start_companions,
    stop_companions,
)
from wirebroker.broker.controller_server import ControllerServer
from wirebroker.broker.late_modules import LATE_MODULES, import_late
from wirebroker.broker.log_settings import LEAST_HIDDEN, configure_as
from wirebroker.config import Config, ConfigError, StartError
from wirebroker.config.quorum import has_other_voters, is_controller_alone, is_member
from wirebroker.net.listeners.ready_lines import open_warning, ready_lines
from wirebroker.net.loop_watch import LoopWatch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from wirebroker.broker.companions import Companion
    from wirebroker.http.server import HttpServer
    from wirebroker.net.listeners.open_listeners import OpenListeners
    from wirebroker.net.listeners.ready_lines import BoundListener


class BrokerServer(Protocol):
    """A broker that can be served: `Server`, or the restartable one of the test mode."""

    @property
    def config(self) -> Config:
        """See Server."""
        ...

    @property
    def listeners(self) -> OpenListeners | None:
        """See Server."""
        ...

    @property
    def bound(self) -> list[BoundListener]:
        """See Server."""
        ...

    @property
    def controllers(self) -> list[BoundListener]:
        """See Server."""
        ...

    @property
    def cluster_id(self) -> str:
        """See Server."""
        ...

    @property
    def data_directories(self) -> list[str]:
        """See Server."""
        ...

    @property
    def http(self) -> HttpServer | None:
        """See Server."""
        ...

    async def start(self) -> None:
        """See Server."""
        ...

    async def stop(self) -> None:
        """See Server."""
        ...


_AnyServer: TypeAlias = "BrokerServer | ControllerServer"

logger = logging.getLogger("wirebroker")

READY: Final = "READY=1"
STOPPING: Final = "STOPPING=1"


def run(
    config: Config,
    *,
    port_file: Path | None = None,
    build: Callable[..., BrokerServer] | None = None,
    process: str = "",
    companions: Sequence[Companion] = (),
) -> int:
    """Serve until stopped; return the process's exit status.

    `build` builds another broker than Server, with its signature. `process` is the name in log
    lines if there are several processes. The `companions` run while the broker is ready.

    Raises:
        StartError, ConfigError: The broker cannot start.
    """
    configure_as(config, process=process)
    for warning in config.warnings():
        logger.warning("%s", warning)
    give_back_large_blocks()
    metrics = Metrics()
    if is_controller_alone(config):
        build = None
    elif build is None:
        # Not imported in a controller's process, which needs less memory without it.
        with uncollected():
            from wirebroker.broker.server import Server  # noqa: PLC0415

        build = Server
    try:
        with (
            GarbagePolicy() as garbage,
            asyncio.Runner(loop_factory=LoopWatch(metrics).new_event_loop) as runner,
        ):
            return runner.run(
                _serve(config, port_file, garbage, metrics, build=build, companions=companions)
            )
    except (ConfigError, StartError) as error:
        error.args = (config.redacted(str(error), at_least=LEAST_HIDDEN),)
        raise


async def _serve(
    config: Config,
    port_file: Path | None,
    garbage: GarbagePolicy,
    metrics: Metrics,
    *,
    build: Callable[..., BrokerServer] | None,
    companions: Sequence[Companion],
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
        # During the start the StartError reports it.
        if isinstance(server, ControllerServer) or server.listeners is not None:
            logger.error("%s", line)
        failures.append(line)
        told_to_stop.set()

    garbage.keep_all()
    server: _AnyServer
    if build is None:
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
    late_imports = _import_late(server)
    if server.bound:
        await start_companions(companions, _local_broker(server))
    await told_to_stop.wait()
    notify_supervisor(STOPPING, os.environ)
    logger.info("stopping")
    late_imports.cancel()
    await stop_companions(companions)
    await server.stop()
    logger.info("stopped")
    return 1 if failures else 0


def _local_broker(server: _AnyServer) -> LocalBroker:
    first = server.bound[0]
    http = () if server.http is None else server.http.addresses
    url = local_http_url(http)
    return LocalBroker(
        local_address(first.host, first.port),
        {} if url is None else {server.config.node_id: url},
        server.config.optional_str("wirebroker.http.token"),
    )


def _import_late(server: _AnyServer) -> asyncio.Task[None]:
    modules = () if isinstance(server, ControllerServer) else LATE_MODULES
    return asyncio.create_task(import_late(modules), name="late imports")


async def _start(server: _AnyServer, told_to_stop: asyncio.Event) -> bool:
    """Start; return False if stopped while waiting for the controllers."""
    starting = asyncio.create_task(server.start(), name="start")
    if is_member(server.config) or has_other_voters(server.config):
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


def notify_supervisor(state: str, environment: Mapping[str, str]) -> None:
    """Send READY or STOPPING to NOTIFY_SOCKET, if it is set."""
    address = environment.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return
    if address.startswith("@"):  # abstract names begin with a zero byte
        address = "\0" + address[1:]
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notified:
            notified.setblocking(False)
            notified.sendto(state.encode(), address)
    except OSError as error:
        logger.warning("NOTIFY_SOCKET: cannot send %s: %s", state, error.strerror or error)


def readiness_lines(node_id: int, environment: Mapping[str, str]) -> list[str]:
    """Return Kafka's ready lines for standard output, if they are configured."""
    if environment.get("WIREBROKER_READY_WORDS") != "kafka":
        return []
    return [
        f"[KafkaServer id={node_id}] started",
        f"[KafkaRaftServer nodeId={node_id}] Kafka Server started",
        "Transitioning from RECOVERY to RUNNING",
    ]
