"""A controller in its own process.

    python -m tests.support.brokers.controller_process DIR PORT

It has node id 100 and the cluster id below, keeps its log in DIR, and prints its port when it is
ready. It runs until it is stopped or killed.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

from wirebroker.broker.controller_server import ControllerServer
from wirebroker.config import Config

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CONTROLLER_ID = 100
CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qk"


@contextlib.contextmanager
def controller_process(
    directory: Path, port: int = 0
) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Run a controller, yield its process and port, and kill it at the end."""
    command = [sys.executable, "-m", __name__, str(directory), str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process, int(process.stdout.readline())
        finally:
            process.kill()


async def _run(directory: str, port: int) -> None:
    settings = {
        "process.roles": "controller",
        "node.id": str(CONTROLLER_ID),
        "log.dirs": directory,
        "wirebroker.cluster.id": CLUSTER_ID,
        "controller.listener.names": "CONTROLLER",
        "listeners": f"CONTROLLER://127.0.0.1:{port}",
    }
    server = ControllerServer(Config(settings))
    await server.start()
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    print(server.bound[0].port, flush=True)  # noqa: T201 - the parent process reads it
    await stop.wait()
    await server.stop()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", metavar="DIR")
    parser.add_argument("port", type=int, metavar="PORT")
    options = parser.parse_args()
    asyncio.run(_run(options.directory, options.port))
