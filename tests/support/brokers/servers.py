"""Brokers inside the test's process: on the test's loop, or in a thread with a monitored loop."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import shutil
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.protocol.raw_client import RawClient
from tests.support.tools.waiting import PATIENCE_S
from wirebroker.broker.server import Server
from wirebroker.config import Config
from wirebroker.net.loop_watch import LoopWatch

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping

    from wirebroker.api.broker import Broker
    from wirebroker.base.clock import Clock
    from wirebroker.quorum.controller.quorum_controller import QuorumController
    from wirebroker.storage.files import Files

# Settings for groups and transactions on a single broker, without rebalance delay.
ONE_NODE = {
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
}


def config_of(*directories: Path, settings: Mapping[str, str] | None = None) -> Config:
    """Return a configuration with these data directories and a free port."""
    return Config(
        {
            "log.dirs": ",".join(str(directory) for directory in directories),
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "auto.create.topics.enable": "false",
            **(settings or {}),
        }
    )


@contextlib.asynccontextmanager
async def running(
    *directories: Path,
    settings: Mapping[str, str] | None = None,
    clock: Clock | None = None,
    network_clock: Clock | None = None,
    files: Files | None = None,
) -> AsyncIterator[Server]:
    server = Server(
        config_of(*directories, settings=settings),
        clock=clock,
        network_clock=network_clock,
        files=files,
    )
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


@contextlib.asynccontextmanager
async def client_of(server: Server) -> AsyncIterator[RawClient]:
    client = await RawClient.connect(server.address)
    try:
        yield client
    finally:
        await client.close()


def broker_of(server: Server) -> Broker:
    """Return the object that handlers receive."""
    assert server.broker is not None
    return server.broker


def controller_of(server: Server) -> QuorumController:
    assert server.controller is not None
    return server.controller


class ThreadedServer:
    """A broker in a thread, on a loop whose blocking times are measured.

    Attributes:
        watch: The histograms of blocking times, with CPU time.
        server: The broker; only its own loop may touch it (see `call`).
        patience_s: Timeout of its start, its stop and each call, in seconds.
    """

    def __init__(self, config: Config, patience_s: float = PATIENCE_S) -> None:
        self.patience_s = patience_s
        self.watch = LoopWatch(with_cpu_time=True)
        self.server = Server(config)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_ready = threading.Event()
        self._told_to_stop: asyncio.Event | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="broker")

    @property
    def address(self) -> tuple[str, int]:
        return self.server.address

    def __enter__(self) -> ThreadedServer:
        self._thread.start()
        assert self._is_ready.wait(self.patience_s), "the broker does not start"
        if self._error is not None:
            raise self._error
        return self

    def __exit__(self, *_: object) -> None:
        assert self._loop is not None
        assert self._told_to_stop is not None
        self._loop.call_soon_threadsafe(self._told_to_stop.set)
        self._thread.join(self.patience_s)
        assert not self._thread.is_alive(), "the broker does not stop"
        if self._error is not None:
            raise self._error

    def call(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(self.patience_s)

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=self.watch.new_event_loop) as runner:
                runner.run(self._serve())
        except BaseException as error:  # noqa: BLE001 - raised again in the test's thread
            self._error = error
        finally:
            self._is_ready.set()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._told_to_stop = asyncio.Event()
        await self.server.start()
        self._is_ready.set()
        await self._told_to_stop.wait()
        await self.server.stop()


@contextlib.contextmanager
def memory_directory(otherwise: Path) -> Iterator[Path]:
    """Yield a temporary directory in memory if possible, else `otherwise`.

    For tests with thousands of files that do not test the disk.
    """
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        yield otherwise
        return
    directory = tempfile.mkdtemp(prefix="wirebroker-test-", dir=memory)
    try:
        yield Path(directory)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
        gc.unfreeze()
