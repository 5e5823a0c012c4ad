"""Members of a share group: heartbeats, sessions with leaders, deliveries and acknowledgements."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from wirebroker.base.clock import SystemClock, next_turn
from wirebroker.client.errors import ClientError
from wirebroker.client.groups.share_consuming import ShareReader
from wirebroker.client.groups.share_membership import ShareMembership
from wirebroker.client.groups.share_session import AcknowledgeType
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.records.batch import build_batch
from wirebroker.codecs.records.codec import Codec
from wirebroker.codecs.records.record import Record

TOPIC_ID = b"t" * 16
ACCEPT, RELEASE, REJECT = AcknowledgeType
LEAVING = -1


def batch_of(first, count):
    records = [Record(first + index, 0, None, b"%d" % (first + index)) for index in range(count)]
    return bytes(build_batch(records, codec=Codec.NONE))


class SharedPartition:
    """A partition whose records are acquired once; `acknowledged` has types by offset."""

    def __init__(self, leader, *batches, acquired=None):
        self.leader = leader
        self.data = b"".join(batches)
        self.acquired = acquired or []
        self.acknowledged = {}
        self.is_fetched = False

    def fetched(self):
        rows = [] if self.is_fetched else self.acquired
        self.is_fetched = True
        return [
            SimpleNamespace(first_offset=first, last_offset=last, delivery_count=count)
            for first, last, count in rows
        ]


class ShareCluster:
    """A coordinator and leaders, which check the epochs of share sessions."""

    timeout_s = 5.0

    def __init__(self, *partitions):
        self.clock = SystemClock()
        self.partitions = list(partitions)
        self.epochs = {}
        self.beats = []
        self.heartbeat_errors = []
        self.fetch_errors = []
        self.has_left = False
        self.is_aborted = False

    def apart(self):
        return self

    def abort(self):
        self.is_aborted = True

    async def metadata(self, _topics):
        parts = [
            SimpleNamespace(partition_index=index, leader_id=partition.leader)
            for index, partition in enumerate(self.partitions)
        ]
        return SimpleNamespace(
            topics=[SimpleNamespace(name="t", topic_id=TOPIC_ID, partitions=parts)]
        )

    async def request_of_coordinator(self, _group, key, body, *, error_of):
        assert key is ApiKey.SHARE_GROUP_HEARTBEAT
        self.beats.append((body["member_epoch"], body["subscribed_topic_names"]))
        code = self.heartbeat_errors.pop(0) if self.heartbeat_errors else 0
        self.has_left = body["member_epoch"] == LEAVING
        owned = SimpleNamespace(topic_id=TOPIC_ID, partitions=[*range(len(self.partitions))])
        response = SimpleNamespace(
            error_code=code,
            error_message="no" if code else None,
            member_epoch=len(self.beats),
            heartbeat_interval_ms=10,
            assignment=SimpleNamespace(topic_partitions=[owned]),
        )
        assert error_of(response) == code
        return response

    async def request_of(self, leader, key, body):
        epoch = body["share_session_epoch"]
        if key is ApiKey.SHARE_ACKNOWLEDGE:
            assert epoch == LEAVING
            del self.epochs[leader]
        elif self.fetch_errors:
            code = self.fetch_errors.pop(0)
            self.epochs.pop(leader, None)
            if not code:
                raise ClientError("the connection is lost")
            return SimpleNamespace(error_code=code, error_message=None, responses=[])
        else:
            assert epoch == self.epochs.get(leader, 0)
            self.epochs[leader] = epoch + 1
        rows = [self._row(leader, key, *item) for item in self._acknowledgements(body).items()]
        topic = SimpleNamespace(topic_id=TOPIC_ID, partitions=rows)
        await next_turn()
        return SimpleNamespace(error_code=0, error_message=None, responses=[topic])

    def _acknowledgements(self, body):
        rows: dict[int, list[Any]] = {index: [] for index in range(len(self.partitions))}
        for topic in body["topics"]:
            for part in topic["partitions"]:
                rows[part["partition_index"]] = part["acknowledgement_batches"]
        return rows

    def _row(self, leader, key, index, batches):
        partition = self.partitions[index]
        for batch in batches:
            offsets = range(batch["first_offset"], batch["last_offset"] + 1)
            types = batch["acknowledge_types"]
            types = types * len(offsets) if len(types) == 1 else types
            partition.acknowledged.update(zip(offsets, types, strict=True))
        is_fetch = key is ApiKey.SHARE_FETCH and partition.leader == leader
        acquired = partition.fetched() if is_fetch else []
        return SimpleNamespace(
            partition_index=index,
            error_code=0,
            acknowledge_error_code=0,
            records=partition.data if acquired else b"",
            acquired_records=acquired,
        )


async def read(cluster: Any, count, acknowledgement=ACCEPT):
    """Read this number of records; return them, and the reader."""
    delivered: list[tuple[int, int, int]] = []

    def take(place, records):
        chosen = records[: count - len(delivered)]
        delivered.extend(
            (place.partition, record.record.offset, record.delivery_count) for record in chosen
        )
        return [acknowledgement] * len(chosen), len(delivered) < count

    reader = ShareReader(cluster, ShareMembership(cluster, "group", ["t"]), ["t"], take)
    async with asyncio.timeout(10):
        await reader.run()
    return delivered, reader


async def test_records_of_all_leaders_are_delivered_and_acknowledged():
    first = SharedPartition(1, batch_of(0, 3), acquired=[(0, 2, 1)])
    second = SharedPartition(2, batch_of(5, 2), acquired=[(5, 6, 4)])
    cluster = ShareCluster(first, second)
    delivered, reader = await read(cluster, 5)
    assert sorted(delivered) == [(0, 0, 1), (0, 1, 1), (0, 2, 1), (1, 5, 4), (1, 6, 4)]
    assert first.acknowledged == dict.fromkeys(range(3), ACCEPT)
    assert second.acknowledged == dict.fromkeys((5, 6), ACCEPT)
    assert reader.refused == 0
    assert not cluster.epochs, "a session is still open"
    assert cluster.has_left
    assert cluster.beats[0] == (0, ["t"])
    assert cluster.beats[-1] == (LEAVING, None)


async def test_records_after_the_last_requested_one_are_not_acknowledged():
    partition = SharedPartition(1, batch_of(0, 4), acquired=[(0, 3, 1)])
    delivered, _ = await read(ShareCluster(partition), 2, REJECT)
    assert [offset for _, offset, _ in delivered] == [0, 1]
    assert partition.acknowledged == dict.fromkeys((0, 1), REJECT)


async def test_only_acquired_offsets_are_delivered_and_missing_ones_are_gaps():
    partition = SharedPartition(1, batch_of(0, 4), batch_of(6, 3), acquired=[(2, 7, 3)])
    delivered, _ = await read(ShareCluster(partition), 4, RELEASE)
    assert delivered == [(0, 2, 3), (0, 3, 3), (0, 6, 3), (0, 7, 3)]
    assert partition.acknowledged == {2: 2, 3: 2, 4: 0, 5: 0, 6: 2, 7: 2}


@pytest.mark.parametrize(
    "error",
    [ErrorCode.SHARE_SESSION_NOT_FOUND, ErrorCode.INVALID_SHARE_SESSION_EPOCH, ErrorCode.NONE],
    ids=["unknown session", "wrong epoch", "lost connection"],
)
async def test_lost_session_is_opened_again(error):
    partition = SharedPartition(1, batch_of(0, 1), acquired=[(0, 0, 1)])
    cluster = ShareCluster(partition)
    cluster.fetch_errors = [error]
    delivered, reader = await read(cluster, 1)
    assert delivered == [(0, 0, 1)]
    assert partition.acknowledged == {0: ACCEPT}
    assert reader.refused == 0


async def test_fenced_member_joins_again_with_its_topics():
    partition = SharedPartition(1, batch_of(0, 1), acquired=[(0, 0, 1)])
    cluster = ShareCluster(partition)
    cluster.heartbeat_errors = [ErrorCode.UNKNOWN_MEMBER_ID]
    await read(cluster, 1)
    assert cluster.beats[:2] == [(0, ["t"]), (0, ["t"])]


async def test_refused_member_does_not_read():
    cluster = ShareCluster(SharedPartition(1, batch_of(0, 1), acquired=[(0, 0, 1)]))
    cluster.heartbeat_errors = [ErrorCode.GROUP_MAX_SIZE_REACHED]
    with pytest.raises(ClientError, match="refuses this member") as refused:
        await read(cluster, 1)
    assert refused.value.code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert not cluster.has_left


async def test_corrupt_batch_is_an_error_and_the_member_leaves():
    data = bytearray(batch_of(0, 1))
    data[-1] ^= 1
    cluster = ShareCluster(SharedPartition(1, bytes(data), acquired=[(0, 0, 1)]))
    with pytest.raises(ClientError, match=r"t-0: .*checksum"):
        await read(cluster, 1)
    assert cluster.has_left


async def test_canceled_reader_acknowledges_and_leaves():
    partition = SharedPartition(1, batch_of(0, 2), acquired=[(0, 1, 1)])
    cluster = ShareCluster(partition)
    is_delivered = asyncio.Event()

    def take(_place, records):
        is_delivered.set()
        return [ACCEPT] * len(records), True

    membership = ShareMembership(cluster, "group", ["t"])  # type: ignore[arg-type]
    reading = asyncio.create_task(ShareReader(cluster, membership, ["t"], take).run())  # type: ignore[arg-type]
    await is_delivered.wait()
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert partition.acknowledged == dict.fromkeys(range(2), ACCEPT)
    assert cluster.has_left


async def test_partitions_of_a_moved_leader_are_read_from_the_new_one():
    partition = SharedPartition(1, batch_of(0, 1), acquired=[(0, 0, 1)])
    partition.is_fetched = True  # the old leader has no records
    cluster = ShareCluster(partition)

    def moved(leader, key, index, batches, row=cluster._row):
        fetched = row(leader, key, index, batches)
        if leader == 1 and key is ApiKey.SHARE_FETCH:
            partition.leader, partition.is_fetched = 2, False
            fetched.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        return fetched

    cluster._row = moved  # type: ignore[method-assign]
    delivered, _ = await read(cluster, 1)
    assert delivered == [(0, 0, 1)]
    assert not cluster.epochs


async def test_connections_are_closed_if_leaving_fails(monkeypatch):
    async def fail(_member):
        raise ClientError("the coordinator does not respond")

    monkeypatch.setattr(ShareMembership, "leave", fail)
    cluster = ShareCluster(SharedPartition(1, batch_of(0, 1), acquired=[(0, 0, 1)]))
    with pytest.raises(ClientError, match="does not respond"):
        await read(cluster, 1)
    assert cluster.is_aborted
