"""TxnOffsetCommit with more offsets than one step stores."""

import pytest

from tests.support.brokers.servers import ONE_NODE, client_of, running
from tests.support.protocol.requests import create_topic
from tests.support.protocol.transactional_producer import AGAIN, TransactionalProducer
from wirebroker.base.clock import pause
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.groups.shard import txn_offsets as group_txn_offsets

PARTITIONS = 3


@pytest.fixture(autouse=True)
def _one_at_once(monkeypatch):
    monkeypatch.setattr("wirebroker.api.groups.chunked_commit._AT_ONCE", 1)


class Producer:
    """A transactional id of transaction.version 2 with a group."""

    def __init__(self, raw):
        self.raw = raw
        self.id = TransactionalProducer("t")

    async def begin(self):
        await create_topic(self.raw, "a", PARTITIONS)
        await self.id.begin(self.raw.ask, has_group=True)

    async def commit_offsets(self):
        """Commit offset 5 of each partition; return each error code."""
        ask = self.id.commit_offsets({"group_id": "t"}, "a", dict.fromkeys(range(PARTITIONS), 5))
        errors = AGAIN
        while errors & AGAIN:
            await pause(0.001)
            answer = await self.raw.ask(*ask)
            (topic,) = answer.topics
            assert [partition.partition_index for partition in topic.partitions] == [0, 1, 2]
            errors = {partition.error_code for partition in topic.partitions}
        return errors

    async def end(self, *, is_commit):
        answer = await self.raw.ask(*self.id.end(is_commit=is_commit))
        assert answer.error_code == 0

    async def committed(self):
        topics = [{"name": "a", "partition_indexes": list(range(PARTITIONS))}]
        request = {"group_id": "t", "topics": topics, "require_stable": True}
        while True:
            answer = await self.raw.ask(ApiKey.OFFSET_FETCH, 7, request)
            partitions = answer.topics[0].partitions
            if ErrorCode.UNSTABLE_OFFSET_COMMIT not in {
                partition.error_code for partition in partitions
            }:
                return [partition.committed_offset for partition in partitions]
            await pause(0.001)


async def test_all_parts_of_a_commit_are_visible_after_the_transaction(tmp_path):
    async with running(tmp_path, settings=ONE_NODE) as server, client_of(server) as raw:
        producer = Producer(raw)
        await producer.begin()
        assert await producer.commit_offsets() == {ErrorCode.NONE}
        await producer.end(is_commit=True)
        assert await producer.committed() == [5, 5, 5]


async def test_rebalance_between_two_parts_refuses_the_whole_commit(tmp_path, monkeypatch):
    original = group_txn_offsets.commit

    def fenced_later(shard, request, token, moment):
        if request.topics[0][-1][0].partition_index == PARTITIONS - 1:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        return original(shard, request, token, moment)

    monkeypatch.setattr(group_txn_offsets, "commit", fenced_later)

    async with running(tmp_path, settings=ONE_NODE) as server, client_of(server) as raw:
        producer = Producer(raw)
        await producer.begin()
        assert await producer.commit_offsets() == {ErrorCode.ILLEGAL_GENERATION}
        await producer.end(is_commit=False)
        assert await producer.committed() == [-1, -1, -1]
