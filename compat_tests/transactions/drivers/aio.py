"""Transactions by aiokafka, on an event loop in a separate thread for its background tasks."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import TYPE_CHECKING, Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import InvalidProducerEpoch, ProducerFenced

from compat_tests.clients.message import WAIT_S
from compat_tests.transactions.drivers.driver import TRANSACTION_TIMEOUT_MS, FencedError

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator, Sequence

READ_COMMITTED = {
    "isolation_level": "read_committed",
    "auto_offset_reset": "earliest",
    "enable_auto_commit": False,
}


class AioDriver:
    def __init__(self, bootstrap: str, transactional_id: str) -> None:
        self._bootstrap = bootstrap
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        try:
            self._producer: Any = self._wait(self._start(transactional_id))
        except BaseException:
            self._end_loop()
            raise

    async def _start(self, transactional_id: str) -> Any:
        producer = AIOKafkaProducer(
            bootstrap_servers=self._bootstrap,
            transactional_id=transactional_id,
            transaction_timeout_ms=TRANSACTION_TIMEOUT_MS,
        )
        await producer.start()
        return producer

    def begin(self) -> None:
        self._wait(self._producer.begin_transaction())

    def write(self, topic: str, values: Sequence[bytes]) -> None:
        self._wait(self._write(topic, values))

    async def _write(self, topic: str, values: Sequence[bytes]) -> None:
        sent = [await self._producer.send(topic, value, partition=0) for value in values]
        await asyncio.gather(*sent)

    def copy(self, source: str, target: str, group: str, count: int) -> None:
        self._wait(self._copy(source, target, group, count))

    async def _copy(self, source: str, target: str, group: str, count: int) -> None:
        consumer = AIOKafkaConsumer(
            source, bootstrap_servers=self._bootstrap, group_id=group, **READ_COMMITTED
        )
        await consumer.start()
        try:
            messages = [await consumer.getone() for _ in range(count)]
            await self._write(target, [(record.value or b"").upper() for record in messages])
            offsets = {TopicPartition(source, 0): messages[-1].offset + 1}
            await self._producer.send_offsets_to_transaction(offsets, group)
        finally:
            await consumer.stop()

    def commit(self) -> None:
        self._wait(self._producer.commit_transaction())

    def abort(self) -> None:
        self._wait(self._producer.abort_transaction())

    def close(self) -> None:
        with contextlib.suppress(FencedError):
            self._wait(self._producer.stop())
        self._end_loop()

    def _end_loop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _wait(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        with _telling_fenced():
            return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(WAIT_S)


class AioKafka:
    """aiokafka as a DriverFactory."""

    def start(self, bootstrap: str, transactional_id: str) -> AioDriver:
        return AioDriver(bootstrap, transactional_id)

    def read(self, bootstrap: str, topic: str, count: int) -> list[bytes]:
        return asyncio.run(_read(bootstrap, topic, count))


async def _read(bootstrap: str, topic: str, count: int) -> list[bytes]:
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, **READ_COMMITTED)
    await consumer.start()
    try:
        partition = TopicPartition(topic, 0)
        consumer.assign([partition])
        await consumer.seek_to_beginning(partition)
        async with asyncio.timeout(WAIT_S):
            return [(await consumer.getone()).value for _ in range(count)]
    finally:
        await consumer.stop()


@contextlib.contextmanager
def _telling_fenced() -> Iterator[None]:
    try:
        yield
    except (ProducerFenced, InvalidProducerEpoch) as error:
        raise FencedError(str(error)) from error
