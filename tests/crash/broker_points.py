"""A broker's run, cut at any event: acknowledged operations survive the next start."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING

from tests.crash.broker_process import BrokerProcess, broker_config, small_segments
from tests.crash.clients import GroupClient, TopicClient, topic_after
from tests.crash.cutting import disk_after, disks_at_events, shown
from tests.crash.history import base_of, end_of, stored_batches
from tests.crash.log_checks import check_indexes, check_lookups
from tests.crash.store import new_disk
from tests.crash.transaction_client import (
    PARTITIONS,
    TRANSACTIONS_TOPIC,
    TransactionClient,
    visible_values,
)
from tests.simulation.machine.crash_states import POWER_LOSSES, CrashKind, crash
from tests.support.harness.seeded_ids import seeded_ids
from tests.support.records.batches import values_in
from wirebroker.base.clock import pause
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.crash.clients import TopicState
    from tests.crash.cutting import Point
    from tests.simulation.machine.disk import Disk, Event
    from wirebroker.replica.partition import Partition

_COMMITTED_TOPIC = "c"
_MOST_WRITES_OF_A_START = 40
_SYNCED_WITHIN_S = 5.0


class BrokerRun:
    def __init__(self, seed: int, *, only_transactions: bool = False) -> None:
        """Record a run.

        Args:
            seed: The seed of all random choices.
            only_transactions: Whether to run only transactional clients and sync everything
                before a response, so that few points suffice.
        """
        self.seed = seed
        random = self._random = Random(seed)
        self.is_durable = random.random() < 0.6 or only_transactions
        self.config = broker_config(durability="fsync" if self.is_durable else "os")
        self.segment_bytes = random.choice([600, 3_000])
        disk = new_disk(is_recorded=True)
        assert disk.events is not None
        self.events: list[Event] = disk.events
        topics, groups = ((), ()) if only_transactions else (("a", "b"), ("g", "h"))
        self.topics = [TopicClient(name, random, self._count) for name in topics]
        self.groups = [GroupClient(name, _COMMITTED_TOPIC, random, self._count) for name in groups]
        self.producers = [TransactionClient(name, random, self._count) for name in ("p", "q")]
        with small_segments(self.segment_bytes), seeded_ids(random):
            self._live(disk)

    def disks(self) -> Iterator[tuple[int, Disk]]:
        return disks_at_events(self.events, 2)

    def examine(self, disk: Disk, point: Point) -> None:
        """Crash at a point, restart and check everything; raise on a violated guarantee."""
        event = self.events[point.event] if point.event < len(self.events) else None
        try:
            with small_segments(self.segment_bytes):
                self._examine(disk, point, event)
        except Exception as error:  # raised again with the point
            error.add_note(
                f"point {point}: {point.kind}, cut before event {point.event} of "
                f"{len(self.events)} ({shown(event)}), durability "
                f"{'fsync' if self.is_durable else 'os'}"
            )
            raise

    # -- the run -----------------------------------------------------------------------------

    def _count(self) -> int:
        return len(self.events)

    def _live(self, disk: Disk) -> None:
        """Run a broker three times; between the runs it is stopped, or killed while idle."""
        random = self._random
        for life in range(random.randint(1, 3)):
            broker = BrokerProcess(disk, self.config, random)
            try:
                self._live_once(broker, is_first=life == 0)
                is_stopped = random.random() < 0.5
                if is_stopped:
                    broker.stop()
            except BaseException:
                broker.kill()
                raise
            if is_stopped:
                broker.close()
            else:
                broker.kill()

    def _live_once(self, broker: BrokerProcess, *, is_first: bool) -> None:
        assert broker.start()
        if is_first:
            admin = TopicClient(_COMMITTED_TOPIC, self._random, self._count)
            broker.run(admin._create(broker))
            broker.run(create_transactions_topic(broker))
        broker.run(self._work(broker))
        assert not broker.errors, broker.errors

    async def _work(self, broker: BrokerProcess) -> None:
        random = self._random
        clients: list[TopicClient | GroupClient] = [*self.topics, *self.groups]
        await asyncio.gather(
            *[client.work(broker, random.randint(2, 14)) for client in clients],
            *[producer.work(broker, random.randint(1, 6)) for producer in self.producers],
        )

    # -- a point -----------------------------------------------------------------------------

    def _examine(self, disk: Disk, point: Point, event: Event | None) -> None:
        random = point.random
        loses_power = point.kind.loses_power
        disk = disk_after(disk, event, point, random)
        broker = None
        if random.random() < 0.15:
            writes = random.randint(1, _MOST_WRITES_OF_A_START)
            broker = BrokerProcess(disk, self.config, random, dies_at_write=writes)
            if not broker.start():
                broker.close()
                broker = None
                kind = random.choice([CrashKind.KILL, *POWER_LOSSES])
                loses_power = loses_power or kind.loses_power
                disk = crash(disk, kind, random)
            else:
                broker.files.dies_at_write = None
        if broker is None:
            broker = BrokerProcess(disk, self.config, random)
            assert broker.start()
        try:
            self._check(broker, point.event, is_kept=self.is_durable or not loses_power)
            assert not broker.errors, broker.errors
        finally:
            broker.kill()

    def _check(self, broker: BrokerProcess, event: int, *, is_kept: bool) -> None:
        # Records found above the recovery point are synced before they count as committed.
        broker.run(pause(_SYNCED_WITHIN_S))
        for client in self.topics:
            self._check_topic(broker, client, event, is_kept=is_kept)
        self._check_transactions(broker, event, is_kept=is_kept)
        for group in self.groups:
            done, started = group.book.at(event)
            committed = broker.run(group.committed(broker))
            allowed = {step.detail for step in started[len(done) :]}
            allowed.add(done[-1].detail if done else -1)
            if not is_kept:
                allowed |= {-1, *(step.detail for step in started)}
            assert committed in allowed, f"group {group.group} has {committed}, not {allowed}"

    def _check_transactions(self, broker: BrokerProcess, event: int, *, is_kept: bool) -> None:
        if TRANSACTIONS_TOPIC not in broker.broker.metadata.image.topics:
            assert all(not producer.book.at(event)[1] for producer in self.producers)
            return
        if not is_kept:
            # Partitions that kept their records refuse a coordinator that lost its last ones. It
            # then waits forever, as in Apache Kafka.
            return
        for shard in broker.broker.transactions.shards():
            for name, transaction in shard.recorded.items():
                assert not transaction.state.label.startswith("Prepare"), f"{name} is not completed"
        offsets = {}
        for producer in self.producers:
            broker.run(producer.init(broker))  # ends the open transaction
            offsets[producer] = broker.run(producer.committed(broker))
        broker.run(pause(1.0))
        visible = [
            value
            for index in range(PARTITIONS)
            for value in broker.run(visible_values(broker, index))
        ]
        assert len(visible) == len(set(visible)), "a record is there twice"
        for producer, offset in offsets.items():
            producer.check(event, set(visible), offset)

    def _check_topic(
        self, broker: BrokerProcess, client: TopicClient, event: int, *, is_kept: bool
    ) -> None:
        done, started = client.book.at(event)
        before, after = topic_after(done), topic_after(started)
        image = broker.broker.metadata.image
        topic = image.topics.get(client.name)
        if topic is None:
            assert not (before.exists and after.exists), f"topic {client.name} is lost"
            partitions, _ = broker.broker.replicas.find(client.name, b"", by_id=False)
            assert not partitions
            return
        actual = (
            len(topic.partitions),
            image.topic_config(client.name).get("retention.bytes"),
        )
        state = next(
            (
                state
                for state in (before, after)
                if state.exists and actual == (state.partition_count, state.retention)
            ),
            None,
        )
        assert state is not None, f"topic {client.name} is {actual}, neither {before} nor {after}"
        assert state.topic_id in {b"", topic.topic_id}
        partitions, _ = broker.broker.replicas.find(client.name, b"", by_id=False)
        assert sorted(partitions) == sorted(topic.partitions)
        for index, partition in partitions.items():
            self._check_partition(client, partition, (before, after, state), index, is_kept=is_kept)

    def _check_partition(
        self,
        client: TopicClient,
        partition: Partition,
        states: tuple[TopicState, TopicState, TopicState],
        index: int,
        *,
        is_kept: bool,
    ) -> None:
        before, _, state = states
        log = partition.log
        log.check()
        assert log.high_watermark == log.log_end_offset
        stored = stored_batches(log)
        for first, second in pairwise(stored):
            # A later segment may have reached the disk before this one (log_checks.py).
            is_hole = not is_kept and base_of(second) in log.segments.base_offsets
            assert end_of(first) == base_of(second) or is_hole, "offsets are not dense"
        values = {base_of(batch): values_in(batch)[0] for batch in stored}
        sent = {
            step.detail[2]
            for step in client.book.steps
            if step.kind == "produce" and step.detail[0] == index
        }
        mark = f"{client.name}/{state.life}/{index}/".encode()
        for offset, value in values.items():
            assert value is not None
            # Perhaps nothing of a topic was synced, not even its id or the rename of an earlier
            # one: then the new topic takes over the log with its name.
            assert value.startswith(mark) or not is_kept, (
                f"{value!r} at {offset} is from another life than {mark!r}"
            )
            assert value in sent
        assert len(set(values.values())) == len(values), "a record is there twice"
        # Acknowledged only with the checkpoint on disk, whatever the durability.
        if before.life == state.life:
            acknowledged = [offset for part, offset in before.starts if part == index]
            start = max(acknowledged, default=0)
            assert log.log_start_offset >= start, f"{log} starts below {start}"
        if is_kept and before.life == state.life:
            for part, offset, value in before.records:
                if part == index and offset >= log.log_start_offset:
                    assert values.get(offset) == value, f"{value!r} is lost at {offset}"
        random = Random(len(stored))
        for segment in log.segments:
            check_indexes(segment, random)
        check_lookups(log, stored, random)


async def create_transactions_topic(broker: BrokerProcess) -> None:
    topic = {
        "name": TRANSACTIONS_TOPIC,
        "num_partitions": PARTITIONS,
        "replication_factor": 1,
        # Each run has its own clock and files have no times, so retention would delete everything.
        "configs": [{"name": "retention.ms", "value": "-1"}],
    }
    request = {"topics": [topic], "timeout_ms": 30_000}
    answer = await broker.ask(ApiKey.CREATE_TOPICS, 7, request)
    assert answer.topics[0].error_code == ErrorCode.NONE, answer
