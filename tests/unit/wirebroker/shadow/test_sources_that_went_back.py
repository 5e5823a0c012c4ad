"""A source that is restored from an older copy, or that responds with errors."""

from __future__ import annotations

import asyncio
import contextlib
import random
import shutil
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.brokers.servers import ONE_NODE, ThreadedServer, config_of
from wirebroker.base.clock import SystemClock
from wirebroker.client.addresses import addresses_of
from wirebroker.client.errors import ClientError
from wirebroker.client.kafka_client import KafkaClient
from wirebroker.client.topics import leaders
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.net.client.tcp_dialer import TcpDialer
from wirebroker.shadow.copied_partition import DONE, FOLLOWED
from wirebroker.shadow.shadowing import shadowed
from wirebroker.shadow.source_copier import SourceCopier

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from wirebroker.shadow.copied_partition import CopiedPartition

TOPIC = "orders"
PATIENCE_S = 60


class Restored:
    """A source whose data can be restored to an earlier state."""

    def __init__(self, folder: Path) -> None:
        self._data = folder / "source"
        self._kept = folder / "kept"
        self._copy = folder / "copy"

    @contextlib.contextmanager
    def running(self) -> Iterator[str]:
        with ThreadedServer(config_of(self._data, settings=ONE_NODE)) as server:
            yield "{}:{}".format(*server.address)

    def write(self, *values: str) -> None:
        with self.running() as address:
            produce(address, [(0, value) for value in values])

    def keep(self) -> None:
        shutil.copytree(self._data, self._kept)

    def restore(self) -> None:
        shutil.rmtree(self._data)
        shutil.copytree(self._kept, self._data)

    def restart(self) -> None:
        self.write("restarted")

    def forget_epochs_of_the_copy(self) -> None:
        (self._copy / f"{TOPIC}-0" / "leader-epoch-checkpoint").unlink()

    def copy(self) -> CopiedPartition:
        with self.running() as address:
            (copied,) = asyncio.run(copy_once(address, self._copy))
        return copied


def produce(address: str, records: list[tuple[int, str]], *, partition_count: int = 1) -> None:
    server: dict[str, str | int | float | bool] = {"bootstrap.servers": address}
    admin = AdminClient(server)
    made = admin.create_topics([NewTopic(TOPIC, partition_count)])[TOPIC]
    failure = made.exception(PATIENCE_S)
    if isinstance(failure, KafkaException):
        assert failure.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS, failure
    producer = Producer(server)
    for partition, value in records:
        producer.produce(TOPIC, value, partition=partition)
        if partition == 0:
            assert producer.flush(PATIENCE_S) == 0
    assert producer.flush(PATIENCE_S) == 0


async def copy_once(
    address: str, path: Path, *, timeout_s: float = 2.0, stands_before: Any = None
) -> list[CopiedPartition]:
    async with KafkaClient(
        addresses_of(address),
        timeout_s=timeout_s,
        dialer=TcpDialer(),
        clock=SystemClock(),
        random=random.Random(1),
    ) as client:
        copied_client = client if stands_before is None else stands_before(client)
        work = shadowed(copied_client, lambda name, _: name == TOPIC, path=str(path), is_once=True)
        async with work as following, asyncio.timeout(PATIENCE_S):
            await following.run()
        return list(following.partitions.values())


@pytest.fixture
def source(tmp_path: Path) -> Restored:
    source = Restored(tmp_path)
    source.write(*"abcde")
    source.keep()
    return source


def test_source_shorter_than_its_copy_has_lost_records(source: Restored) -> None:
    source.write(*"fghij")
    assert source.copy().state == DONE
    source.restore()
    assert "the source has lost records" in source.copy().state


def test_source_of_the_same_length_is_compared(source: Restored) -> None:
    source.write("f", "g")
    assert source.copy().state == DONE
    source.restore()
    source.write("F", "G")
    assert "the source has diverged: its batch at 6" in source.copy().state


def test_source_without_its_last_batch_is_followed(source: Restored) -> None:
    assert source.copy().state == DONE
    with source.running() as address:
        admin = AdminClient({"bootstrap.servers": address})
        topic_partition = TopicPartition(TOPIC, 0, 5)
        assert (
            admin.delete_records([topic_partition])[topic_partition]
            .result(PATIENCE_S)
            .low_watermark
            == 5
        )
    assert source.copy().state == DONE
    source.write("f")
    copied = source.copy()
    assert (copied.state, copied.log.log_end_offset) == (DONE, 6)


def test_source_that_grew_in_the_same_epoch_has_diverged(source: Restored) -> None:
    source.write("f", "g")
    assert source.copy().state == DONE
    source.restore()
    source.write(*"FGHIJ")
    copied = source.copy()
    assert "the source has diverged: its batch at 6" in copied.state
    assert copied.audit.records == 0


def test_source_without_the_copys_epoch_has_diverged(source: Restored) -> None:
    for _ in range(3):
        source.restart()
    assert source.copy().state == DONE
    source.restore()
    source.write(*"FGHIJKLM")
    copied = source.copy()
    assert "the source has diverged" in copied.state
    assert copied.audit.records == 0


@pytest.mark.parametrize("forgets", [False, True])
def test_histories_are_not_mixed_with_or_without_an_epoch_checkpoint(
    source: Restored, *, forgets: bool
) -> None:
    source.write("f", "g")
    assert source.copy().state == DONE
    if forgets:
        source.forget_epochs_of_the_copy()
    source.restore()
    source.restart()
    source.write(*"FGHIJ")  # as after an unclean election: a later epoch that begins earlier
    copied = source.copy()
    assert "the source" in copied.state
    assert copied.audit.records == 0


def test_source_that_continued_is_followed(source: Restored) -> None:
    assert source.copy().state == DONE
    source.write("f")
    source.restart()
    copied = source.copy()
    assert (copied.state, copied.log.log_end_offset) == (DONE, 7)


def test_partition_errors_end_its_copy_and_delay_no_other(tmp_path: Path) -> None:
    """Each partition gets one error code in every response; the last partition gets none."""
    codes = [code for code in ErrorCode if code is not ErrorCode.NONE]
    count = len(codes) + 1
    with ThreadedServer(config_of(tmp_path / "source", settings=ONE_NODE)) as server:
        address = "{}:{}".format(*server.address)
        produce(address, [(index, "a") for index in range(count)], partition_count=count)
        refusals = Refusals(codes)
        copied_partitions = asyncio.run(
            copy_once(address, tmp_path / "copy", stands_before=refusals.before)
        )
    states = {copied.place.partition: copied.state for copied in copied_partitions}
    assert states.pop(len(codes)) == DONE
    assert not {FOLLOWED, DONE} & set(states.values())
    assert len(states) == len(codes)
    # It pauses before each retry.
    assert refusals.fetches < 60, refusals.fetches


class Refusals:
    """A proxy between client and broker that makes Fetch refuse each partition differently."""

    def __init__(self, codes: Sequence[ErrorCode]) -> None:
        self._codes = codes
        self.fetches = 0

    def before(self, client: KafkaClient) -> Refusals:
        self._client = client
        return self

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    async def request_of(self, node: int, key: ApiKey, *arguments: Any, **options: Any) -> Any:
        answer = await self._client.request_of(node, key, *arguments, **options)
        return self._with_errors(answer) if key is ApiKey.FETCH else answer

    def _with_errors(self, answer: Any) -> Any:
        self.fetches += 1
        topics = [
            SimpleNamespace(
                topic=topic.topic,
                topic_id=topic.topic_id,
                partitions=[self._row(row) for row in topic.partitions],
            )
            for topic in answer.responses
        ]
        return SimpleNamespace(error_code=0, responses=topics)

    def _row(self, row: Any) -> Any:
        index = row.partition_index
        if index >= len(self._codes):
            return row
        return SimpleNamespace(partition_index=index, error_code=int(self._codes[index]))


async def test_source_is_compared_again_after_a_lost_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The source may have been restored to another state meanwhile."""

    class Stopped(Exception):  # noqa: N818 - no error
        pass

    failures: list[Exception] = [ClientError("the connection was lost"), Stopped()]

    async def topics() -> None:
        raise failures.pop(0)

    monkeypatch.setattr("wirebroker.shadow.source_copier._AGAIN_S", 0)
    compared: list[str] = []
    copied = SimpleNamespace(is_followed=True, compare_again=lambda: compared.append("again"))
    client = SimpleNamespace(timeout_s=1.0)
    following = SourceCopier(
        SimpleNamespace(topics=topics, client=client),  # type: ignore[arg-type]
        SimpleNamespace(),  # type: ignore[arg-type]
        clock=SystemClock(),
        is_once=False,
        cluster_id="c",
    )
    following.partitions[leaders.TopicPartition(TOPIC, 0)] = copied  # type: ignore[assignment]
    with pytest.raises(Stopped):
        await following.run()
    assert compared == ["again"]
