"""A group coordinator over in-memory partitions."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from tests.support.records.batches import TIMESTAMP_MS, records_in
from tests.support.records.clocks import HandClock
from tests.unit.wirebroker.api.api_kit import CONNECTION, make_broker
from wirebroker.api.registry import REGISTRY
from wirebroker.base.clock import next_turn
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.coordinator_records import CommittedOffset, offset_commit_record
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.messages import (
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from wirebroker.codecs.records.batch import build_batch, iterate_batches
from wirebroker.coordination.coordinator_service import CoordinatorService
from wirebroker.coordination.group_coordinator import GroupCoordinator
from wirebroker.coordinator.groups.partitions import CONSUMER_OFFSETS
from wirebroker.coordinator.groups.settings import GroupSettings
from wirebroker.disks.data_directory import is_disk_failure
from wirebroker.replica.leadership import Leadership, LeadershipChange, Leaderships
from wirebroker.request.request import Request

if TYPE_CHECKING:
    from collections.abc import Callable


class ListPartition:
    """A partition whose log is a list of batches; commits immediately by default."""

    def __init__(self, batches: list[bytes] | None = None, *, index: int = 0) -> None:
        self.batches = batches if batches is not None else []
        self.topic = CONSUMER_OFFSETS
        self.index = index
        self.is_leader = True
        self.leader_epoch = 1
        self.lacks_replicas = False
        self.directory = SimpleNamespace(is_online=True)
        self.is_appending = False
        self.commits_at_once = True
        self.fails_with: Exception | None = None
        self._watchers: list[Callable[[], None]] = []
        self.log: Any = SimpleNamespace(
            log_start_offset=0,
            log_end_offset=self._end(),
            high_watermark=self._end(),
            settings=SimpleNamespace(max_message_bytes=1_000),
            read=self._read,
        )

    def records(self) -> list[tuple[bytes | None, bytes | None]]:
        return [
            (record.key, record.value) for batch in self.batches for _, record in records_in(batch)
        ]

    def _end(self) -> int:
        return len(self.records())

    def _read(self, offset: int, max_bytes: int, *, up_to_offset: int, min_one: bool) -> Any:
        del max_bytes, up_to_offset, min_one
        data = b"".join(self.batches)
        for position, header in iterate_batches(data):
            if header.last_offset >= offset:
                remaining = data[position:]
                return SimpleNamespace(
                    slice=SimpleNamespace(read=lambda remaining=remaining: remaining)
                )
        return SimpleNamespace(slice=None)

    def check_leader(self, current_leader_epoch: int = -1) -> None:
        if current_leader_epoch not in (-1, self.leader_epoch):
            raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)
        if not self.is_leader:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def check_in_sync(self) -> None:
        if self.lacks_replicas:
            raise KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)

    def append(
        self, records: memoryview, *, now_ms: int, request_version: int, **options: Any
    ) -> Any:
        del now_ms, request_version, options
        if self.fails_with is not None:
            raise self.fails_with
        if len(records) > self.log.settings.max_message_bytes:
            raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE)
        batch = bytearray(records)
        batch[:8] = self.log.log_end_offset.to_bytes(8)
        self.batches.append(bytes(batch))
        self.log.log_end_offset = self._end()
        if self.commits_at_once:
            self.commit()
        return SimpleNamespace(last_offset=self.log.log_end_offset - 1)

    def commit(self) -> None:
        self.log.high_watermark = self.log.log_end_offset
        for watcher in list(self._watchers):
            watcher()

    def watch(self, on_advance: Callable[[], None]) -> None:
        self._watchers.append(on_advance)

    def unwatch(self, on_advance: Callable[[], None]) -> None:
        self._watchers = [watcher for watcher in self._watchers if watcher != on_advance]


class ListReplicas:
    def __init__(self, partitions: dict[int, ListPartition], *, is_led: bool = True) -> None:
        self.partitions = partitions
        self.failures: list[OSError] = []
        self.leaderships = Leaderships()
        if is_led:
            for partition in partitions.values():
                self.elect(partition)

    def elect(self, partition: Any) -> None:
        self.leaderships.tell(
            LeadershipChange(elected=[Leadership(partition, partition.leader_epoch)])
        )

    def resign(self, partition: Any) -> None:
        epoch = self.leaderships.led[partition]
        self.leaderships.tell(LeadershipChange(resigned=[Leadership(partition, epoch)]))

    def find(self, name: str, topic_id: bytes, *, by_id: bool) -> Any:
        del topic_id, by_id
        assert name == CONSUMER_OFFSETS
        return self.partitions, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def disk_failed(self, partition: Any, error: OSError) -> None:
        self.failures.append(error)
        if is_disk_failure(error):
            self.resign(partition)


def group_broker(
    *records: Any,
    partitions: dict[int, ListPartition] | None = None,
    clock: Any = None,
    is_led: bool = True,
    is_started: bool = True,
    **settings: Any,
) -> Any:
    """Return a broker with groups; by default `__consumer_offsets` has one partition."""
    broker = make_broker(*records)
    offsets_partitions = {0: ListPartition()} if partitions is None else partitions
    broker.clock = clock or HandClock()
    broker.replicas = ListReplicas(offsets_partitions, is_led=is_led)
    count = max(1, len(offsets_partitions))
    values: dict[str, Any] = {
        "initial_rebalance_delay_ms": 0,
        "offsets_topic_partition_count": count,
    } | settings
    numbers = iter(range(1, 1_000_000))
    broker.groups = GroupCoordinator(
        GroupSettings(**{"offsets_topic_replication_factor": 1, **values}),
        clock=broker.clock,
        metadata=broker.metadata,
        controller=broker.controller,
        replicas=broker.replicas,
        new_uuid=lambda: f"uuid{next(numbers)}",
    )
    if is_started:
        # Without background tasks, because the test does not stop it.
        CoordinatorService.start(broker.groups)
    return broker


def commit_batch(*commits: tuple[str, int, int]) -> bytes:
    """Return a batch of offset commits: (group, partition of topic t, offset) each."""
    records = [
        offset_commit_record(group, "t", partition, CommittedOffset(offset, 1, "", TIMESTAMP_MS))
        for group, partition, offset in commits
    ]
    return bytes(build_batch([(*record, ()) for record in records], timestamp_ms=1))


async def find_coordinator(broker: Any, version: int, *keys: str, **fields: Any) -> Any:
    """Send FindCoordinator (one of its fields is called `key`, like a parameter elsewhere)."""
    sent = {"key": keys[0]} if version < 4 else {"coordinator_keys": list(keys)}
    key = ApiKey.FIND_COORDINATOR
    frame = memoryview(bytearray(encode_request(key, version, {**sent, **fields})))
    request = Request(key, version, 7, "client", frame, 0, CONNECTION)
    [handler] = [handler for handler in REGISTRY.handlers() if handler.key is key]
    reply = handler.function(broker, request, decode_request(key, version, frame, 0))
    if hasattr(reply, "__await__"):
        reply = await reply
    return decode_response(key, version, encode_response(key, version, reply))


async def turns(count: int = 20) -> None:
    for _ in range(count):
        await next_turn()
