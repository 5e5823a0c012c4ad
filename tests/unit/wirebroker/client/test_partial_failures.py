"""Errors of changes that fail halfway: they say how many parts were made."""

from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from wirebroker.base.clock import SystemClock
from wirebroker.client.changes.offset_deletion import OffsetDeletion, delete_planned_offsets
from wirebroker.client.errors import ClientError, NoResponseError
from wirebroker.client.groups.share_groups import SHARE
from wirebroker.client.groups.share_offsets import alter_share_offsets
from wirebroker.client.kafka_client import KafkaClient
from wirebroker.client.records.producing import TopicWriter
from wirebroker.client.replicas.moves import start_moves
from wirebroker.client.replicas.replication_throttle import throttle, unthrottle
from wirebroker.client.security.acls import RuleFilter, delete_acls
from wirebroker.client.security.users import delete_user
from wirebroker.client.topics.leaders import TopicPartition, delete_records
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.records.codec import Codec

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

REFUSED = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
PLACES = [TopicPartition("orders", number) for number in range(3)]


def row(**fields: Any) -> SimpleNamespace:
    return SimpleNamespace(**({"error_code": 0, "error_message": None} | fields))


class ScriptedBrokers:
    """Brokers 0, 1 and 2, each with the leader of one partition; some fail or are silent."""

    def __init__(self, *, refusing: int = -1, silent: int = -1, failing: int = -1) -> None:
        self.refusing = refusing
        self.silent = silent
        self.failing = failing
        self.timeout_s = 10.0
        self.uses_controllers = False
        self.clock = SystemClock()
        self.changed: list[int] = []
        self.requests = 0

    def within(self, _seconds: float) -> ScriptedBrokers:
        return self

    async def tries(self) -> AsyncIterator[None]:
        yield

    async def broker_ids(self) -> list[int]:
        return [0, 1, 2]

    settled = KafkaClient.settled
    together = KafkaClient.together

    async def metadata(self, _names: Any, **_: Any) -> Any:
        partitions = [
            row(partition_index=number, leader_id=number, replica_nodes=[number])
            for number in range(3)
        ]
        return row(topics=[row(name="orders", partitions=partitions)], brokers=[])

    async def request(self, key: ApiKey, _body: Any) -> Any:
        if key is ApiKey.ALTER_USER_SCRAM_CREDENTIALS:
            self.requests += 1
            code = REFUSED if self.requests == 2 else 0
            return row(results=[row(user="anna", error_code=code)])
        return row(responses=[row()])

    async def request_of(self, broker_id: int, key: ApiKey, body: Any) -> Any:
        if broker_id == self.silent:
            raise NoResponseError(f"broker {broker_id} does not respond")
        if broker_id == self.failing:
            raise ClientError("authentication failed")
        code = REFUSED if broker_id == self.refusing else 0
        if not code:
            self.changed.append(broker_id)
        if key is ApiKey.DELETE_RECORDS:
            [topic] = body["topics"]
            parts = [
                row(partition_index=part["partition_index"], low_watermark=1, error_code=code)
                for part in topic["partitions"]
            ]
            return row(topics=[row(name="orders", partitions=parts)])
        return row(responses=[row(error_code=code)])

    async def request_of_controller(self, key: ApiKey, _body: Any) -> Any:
        if key is ApiKey.LIST_PARTITION_REASSIGNMENTS:
            return row(topics=[])
        if key is ApiKey.ALTER_PARTITION_REASSIGNMENTS:
            results = [row(partition_index=0, error_code=REFUSED)]
            return row(responses=[row(name="orders", partitions=results)])
        acl = {
            "resource_type": 2,
            "resource_name": "orders",
            "pattern_type": 3,
            "principal": "User:anna",
            "host": "*",
            "operation": 3,
            "permission_type": 3,
        }
        codes = (0, REFUSED, 0)
        return row(
            filter_results=[row(matching_acls=[row(**acl, error_code=code) for code in codes])]
        )

    async def request_of_coordinator(self, _group: str, key: ApiKey, _body: Any, **_: Any) -> Any:
        if key is ApiKey.ALTER_SHARE_GROUP_OFFSETS:
            parts = [row(), row(error_code=REFUSED), row()]
            return row(responses=[row(partitions=parts)])
        return row(responses=[row(topic_name="a"), row(topic_name="b", error_code=REFUSED)])


def client_of(**script: int) -> KafkaClient:
    return cast("KafkaClient", ScriptedBrokers(**script))


async def test_acls():
    with pytest.raises(ClientError, match=r"; 2 other ACLs deleted$"):
        await delete_acls(client_of(), RuleFilter())


async def test_mechanisms_of_a_user():
    with pytest.raises(ClientError, match=r"; 1 mechanism removed before$"):
        await delete_user(client_of(), "anna", [1, 2])


async def test_start_offsets_of_share_groups():
    with pytest.raises(ClientError, match=r"; 2 other offsets changed$"):
        await alter_share_offsets(client_of(), "g", dict.fromkeys(PLACES, 1))


async def test_deleted_offsets_of_share_groups():
    offsets = {TopicPartition("a", 0): 1, TopicPartition("b", 0): 1}
    plan = OffsetDeletion(group="g", kind=SHARE, offsets=offsets)
    with pytest.raises(ClientError, match=r"; 1 other topic cleared$"):
        await delete_planned_offsets(client_of(), plan)


@pytest.mark.parametrize("script", [{"refusing": 1}, {"silent": 1}], ids=["refuses", "silent"])
async def test_deleted_records(script):
    client = client_of(**script)
    with pytest.raises(ClientError, match=r"; 2 other partitions trimmed$"):
        await delete_records(client, dict.fromkeys(PLACES, 1))
    assert sorted(cast("Any", client).changed) == [0, 2]


async def test_throttled_brokers():
    moves = {PLACES[0]: [0, 1, 2]}
    with pytest.raises(ClientError, match=r"; 2 other brokers throttled$"):
        await throttle(client_of(refusing=1), moves, moves, 1000, required=())
    with pytest.raises(ClientError, match=r"; 2 other brokers throttled$"):
        await throttle(client_of(silent=1), moves, moves, 1000, required={1})
    assert await throttle(client_of(silent=1), moves, moves, 1000, required={0, 2}) == [1]
    with pytest.raises(ClientError, match=r"; 2 other brokers unthrottled$"):
        await unthrottle(client_of(refusing=2), ["orders"], [0, 1, 2])
    assert await unthrottle(client_of(silent=2), ["orders"], [0, 1, 2]) == [2]


async def test_a_throttle_needs_a_broker_that_responds():
    moves = {PLACES[0]: [1]}
    with pytest.raises(ClientError, match="no broker is throttled: broker 1 does not respond"):
        await throttle(client_of(silent=1), moves, moves, 1000, required=())


async def test_a_broker_that_cannot_be_used_is_not_taken_for_silent():
    client = client_of(failing=1)
    moves = {PLACES[0]: [0, 1]}
    with pytest.raises(ClientError, match=r"authentication failed; 1 other broker throttled$"):
        await throttle(client, moves, moves, 1000, required=())
    with pytest.raises(ClientError, match=r"authentication failed; 1 other broker unthrottled$"):
        await unthrottle(client, [], [0, 1])


async def test_silent_brokers_are_awaited_together():
    client = client_of()
    brokers = cast("Any", client)
    all_wait = asyncio.Barrier(3)
    answer_of = brokers.request_of

    async def request_of(broker_id: int, key: ApiKey, body: Any) -> Any:
        await all_wait.wait()
        return await answer_of(broker_id, key, body)

    brokers.request_of = request_of
    moves = {PLACES[0]: [0, 1, 2]}
    async with asyncio.timeout(30):
        assert await throttle(client, moves, moves, 1000, required=()) == []
        assert await unthrottle(client, [], [0, 1, 2]) == []


async def test_a_throttle_that_remains_after_a_refused_move():
    goals = {PLACES[0]: [1]}
    with pytest.raises(ClientError, match=r"; the throttle is set, and remains$"):
        await start_moves(client_of(), {PLACES[0]: [0]}, goals, 1000)


class ThreadedRecords(list[Any]):
    """Records that note the threads that read them."""

    def __init__(self, count: int) -> None:
        super().__init__([(9, (None, b"v", []))] * count)
        self.threads: set[int] = set()

    def __iter__(self) -> Iterator[Any]:
        self.threads.add(threading.get_ident())
        return super().__iter__()


@pytest.mark.parametrize(("count", "is_in_thread"), [(10, False), (20_000, True)])
async def test_many_records_are_grouped_off_the_loop(count, is_in_thread):
    writer = TopicWriter(client_of(), "orders", Codec.NONE)
    records = ThreadedRecords(count)
    with pytest.raises(ClientError, match="there is no partition 9"):
        await writer.write(records)
    assert (threading.get_ident() in records.threads) is not is_in_thread
    assert len(records.threads) == 1
