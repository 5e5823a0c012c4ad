"""A whole broker on a simulated disk and clock; requests come from memory."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from unittest import mock

from tests.simulation.broker.broker_errors import BrokerErrors
from tests.simulation.broker.broker_life import BrokerLife
from tests.simulation.machine.loop import SimulatedLoop
from tests.support.protocol.raw_client import answer_of, request_frame
from wirebroker.config import Config
from wirebroker.net.memory_transport import MemoryPeer, connect

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator, Mapping
    from random import Random

    from tests.simulation.machine.disk import Disk
    from wirebroker.codecs.api_keys import ApiKey
    from wirebroker.config.rows.topic import TopicSettings


def broker_config(*, durability: str) -> Config:
    """Return a configuration with short intervals, so that much happens within seconds."""
    return Config(
        {
            "log.dirs": "/data",
            "listeners": "PLAINTEXT://127.0.0.1:9092",
            "auto.create.topics.enable": "false",
            "offsets.topic.num.partitions": "2",
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.num.partitions": "2",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "wirebroker.durability": durability,
            "log.initial.task.delay.ms": "700",
            "log.retention.check.interval.ms": "900",
            "log.segment.delete.delay.ms": "300",
            "log.flush.offset.checkpoint.interval.ms": "600",
            "log.flush.start.offset.checkpoint.interval.ms": "800",
            "replica.high.watermark.checkpoint.interval.ms": "1000",
            "metadata.log.max.record.bytes.between.snapshots": "1500",
        }
    )


@contextmanager
def small_segments(segment_bytes: int) -> Iterator[None]:
    """Permit segments smaller than topic configs allow."""
    settings_of = Config.topic_settings

    def smaller(self: Config, overrides: Mapping[str, str]) -> TopicSettings:
        return replace(settings_of(self, overrides), segment_bytes=segment_bytes)

    with mock.patch.object(Config, "topic_settings", smaller):
        yield


class BrokerProcess(BrokerLife):
    """One run of a broker, on a separate loop.

    Attributes:
        errors: Errors that the broker logged; tests fail on any.
    """

    def __init__(
        self, disk: Disk, config: Config, random: Random, *, dies_at_write: int | None = None
    ) -> None:
        self.loop = SimulatedLoop(random)
        self.errors: list[str] = []
        self._ended: Callable[[], None] = lambda: None
        # Idle connections.
        self._idle: list[MemoryPeer] = []
        disk.locks.clear()
        super().__init__(
            self.loop, disk, config, name="broker", on_death=lambda life: self._ended()
        )
        self.files.dies_at_write = dies_at_write
        self._watch = BrokerErrors(self.loop, lambda error: self.errors.append(repr(error)))

    def start(self) -> bool:
        """Start; return False if it was killed meanwhile.

        Raises:
            StartError: The broker refuses the directory.
        """
        try:
            return self._run_within(self.server.start())
        except BaseException:
            self.kill()  # nothing else closes a loop on which nothing started
            raise

    def stop(self) -> None:
        assert self._run_within(self.server.stop())

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return self.loop.run_until_complete(coroutine)

    async def ask(self, key: ApiKey, version: int, request: Mapping[str, Any]) -> Any:
        peer = self._idle.pop() if self._idle else self.process.within(connect, self.table)
        data = await peer.exchange(request_frame(key, version, request))
        self._idle.append(peer)
        return answer_of(key, version, data[4:])

    def kill(self) -> None:
        """Kill the process and close the loop."""
        self.process.kill()
        self.close()

    def close(self) -> None:
        self._watch.close()
        self.loop.close()

    def _run_within(self, coroutine: Coroutine[Any, Any, Any]) -> bool:
        task = self.process.spawn(coroutine)
        waiter = self.loop.create_future()

        def end(_: Any = None) -> None:
            if not waiter.done():
                waiter.set_result(None)

        self._ended = end
        task.add_done_callback(end)
        self.loop.run_until_complete(waiter)
        if not self.process.is_alive:
            return False
        task.result()
        return True
