"""`wirebroker serve --workers N` as a process: signals, ready lines, exit status.

    wirebroker ready on 127.0.0.1:9092 (node 1, cluster MkU3OEVBNTcwNTJENDM2Qk)
      worker 2 on 127.0.0.1:9093 (node 2)
      controller CONTROLLER: 127.0.0.1:9094
      data: /home/me/data/worker1, /home/me/data/worker2

Programs can read the first and last line as one broker's.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import socket
import sys
from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.base.clock import SystemClock
from wirebroker.base.signals import on_signal
from wirebroker.broker.companions import (
    LocalBroker,
    local_address,
    local_http_url,
    start_companions,
    stop_companions,
)
from wirebroker.broker.log_settings import configure_as
from wirebroker.broker.port_file import PortFile
from wirebroker.broker.worker_layout import check_fewer, check_is_not_worker_directory
from wirebroker.broker.workers.orders import WorkerConfigs
from wirebroker.broker.workers.supervisor import NotStartedError, Supervisor
from wirebroker.broker.workers.worker_process import WorkerProcess

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from wirebroker.broker.companions import Companion
    from wirebroker.config import Config

logger = logging.getLogger("wirebroker")

_READY: Final = "wirebroker ready"
_DATA: Final = "  data: "
_NODE: Final = re.compile(r"\(node ([0-9]+)")
_HTTP: Final = re.compile(r"  http://(.+):([0-9]+): /metrics")


class Asked(NamedTuple):
    """The command line; `first_users` are the values of --add-scram."""

    workers: int
    flags: Mapping[str, str]
    file: Path | None
    data_directory: str | None
    port_file: Path | None
    first_users: Sequence[str]


class MachinePorts:
    """See orders.Ports."""

    __slots__ = ()

    def is_free(self, host: str, port: int) -> bool:
        """See Ports."""
        return _try(host, port) is not None

    def any_free(self, host: str) -> int:
        """Return a free port; 0 if the host is not this machine."""
        return _try(host, 0) or 0


def run(
    config: Config,
    user_config: Config,
    arguments: Asked,
    companions: Sequence[Companion] = (),
) -> int:
    """Serve until stopped; return the exit status.

    `user_config` is `config` without the single-node profile. The `companions` are started
    and stopped with the workers.

    Raises:
        StartError: The workers cannot start.
    """
    check_is_not_worker_directory(config)
    configure_as(config)
    orders = WorkerConfigs(
        config,
        user_config,
        count=arguments.workers,
        flags=arguments.flags,
        file=None if arguments.file is None else str(arguments.file.absolute()),
        data_directory=arguments.data_directory,
        ports=MachinePorts(),
    )
    check_fewer(orders.directories, arguments.workers, first_node=orders.first_node)
    first = orders.first(arguments.first_users)
    supervisor = Supervisor(
        first,
        [orders.member(worker) for worker in range(2, arguments.workers + 1)],
        start=WorkerProcess.start,
        clock=SystemClock(),
    )
    http_token = config.optional_str("wirebroker.http.token")
    port_file = PortFile(arguments.port_file)
    return asyncio.run(_supervise(supervisor, port_file, companions, http_token))


async def _supervise(
    supervisor: Supervisor,
    port_file: PortFile,
    companions: Sequence[Companion],
    http_token: str | None,
) -> int:
    told_to_stop = asyncio.Event()

    def on_interrupt() -> None:
        if told_to_stop.is_set():
            os._exit(130)  # the workers notice, and stop
        told_to_stop.set()

    on_signal("SIGTERM", told_to_stop.set)
    on_signal("SIGINT", on_interrupt)
    on_signal("SIGHUP", told_to_stop.set, unless_ignored=True)
    port_file.remove()
    starting = asyncio.create_task(supervisor.start(), name="start")
    stopping = asyncio.create_task(told_to_stop.wait())
    await asyncio.wait({starting, stopping}, return_when=asyncio.FIRST_COMPLETED)
    if not starting.done():
        starting.cancel()
        await asyncio.wait({starting})
        return 0
    try:
        ready_lines = starting.result()
    except NotStartedError as error:
        stopping.cancel()
        return error.status
    lines = joined_lines(ready_lines)
    if len(ready_lines) > 1:
        logger.info(
            "%d workers: more cores are used, but replicas on this one machine do not survive "
            "its loss",
            len(ready_lines),
        )
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()
    host, _, port = lines[0].removeprefix(f"{_READY} on ").split(" (node ")[0].rpartition(":")
    port_file.write(int(port))
    address = local_address(host.strip("[]"), int(port))
    broker = LocalBroker(address, http_urls_of(ready_lines.values()), http_token)
    await start_companions(companions, broker)
    await stopping
    logger.info("stopping %d workers", len(ready_lines))
    await stop_companions(companions)
    port_file.remove()
    await supervisor.stop()
    logger.info("stopped")
    return 0


def joined_lines(ready_lines: Mapping[int, Sequence[str]]) -> list[str]:
    """Combine the ready lines of all workers."""
    first, *further_lines = ready_lines[1]
    lines = [first]
    for number in sorted(ready_lines)[1:]:
        address = ready_lines[number][0].removeprefix(f"{_READY} ").split(", cluster ")[0]
        lines.append(f"  worker {number} {address})")
    lines += [line for line in further_lines if not line.startswith(_DATA)]
    data = [worker_lines[-1].removeprefix(_DATA) for _, worker_lines in sorted(ready_lines.items())]
    return [*lines, f"{_DATA}{', '.join(data)}"]


def _try(host: str, port: int) -> int | None:
    """Bind a port for a moment and return it, or None."""
    is_dual = host in {"", "::"} and socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if is_dual or ":" in host else socket.AF_INET
    try:
        sock = socket.create_server((host, port), family=family, dualstack_ipv6=is_dual)
    except OSError:
        return None
    with sock:
        bound: int = sock.getsockname()[1]
        return bound


def http_urls_of(ready_lines: Iterable[Sequence[str]]) -> dict[int, str]:
    """Return the HTTP addresses in the ready lines, by node id."""
    urls: dict[int, str] = {}
    for lines in ready_lines:
        node = _NODE.search(lines[0])
        pages = filter(None, map(_HTTP.match, lines))
        url = local_http_url((match[1].strip("[]"), int(match[2])) for match in pages)
        if node is not None and url is not None:
            urls[int(node[1])] = url
    return urls
