"""A scripted workload of some logs, from one seed, recorded so that it can be cut anywhere.

After each step, the state of every log and the number of disk events are recorded.
"""

from __future__ import annotations

import struct
from random import Random
from typing import TYPE_CHECKING, NamedTuple, Self

from tests.crash.history import Facts, base_of, end_of
from tests.crash.store import Store, new_disk
from tests.support.records.clocks import HandClock
from wirebroker.codecs.records.batch import build_batch, iterate_batches, read_batch_header
from wirebroker.codecs.records.codec import Codec
from wirebroker.config.rows.topic import TopicSettings
from wirebroker.storage.log.append import AppendOrigin
from wirebroker.storage.log.markers import append_end_marker
from wirebroker.storage.log.removal import set_aside_segment
from wirebroker.storage.log.wall_clocks import ClockReading

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.storage.log.log import Log
    from wirebroker.storage.log.segment.segment import Segment

    LogStep = Callable[[int, Log], None]
    PlainRecord = tuple[bytes | None, bytes | None, tuple[()]]

PARTITIONS = (0, 1)
TRANSACTIONAL = (10, 11)
_STEPS = 45


class Moment(NamedTuple):
    """The state between two steps."""

    events: int  # disk events so far
    step: str  # the last step
    facts: dict[int, Facts]


class LogWorkload:
    """A run and its record.

    Attributes:
        settings: The topic's settings, with small segments, so that much happens.
        store: The process that is alive at the end.
    """

    def __init__(self, seed: int) -> None:
        random = self.random = Random(seed)
        self.settings = self._new_settings()
        self.clock = HandClock()
        self.disk = new_disk(is_recorded=True)
        self.facts: dict[int, Facts] = {partition: Facts() for partition in PARTITIONS}
        self.moments = [Moment(self._event_count, "the beginning", dict(self.facts))]
        self.leader_epoch = random.randrange(3)
        self.sequences: dict[tuple[int, int], int] = {}
        self.aside: list[Segment] = []
        self.store = self._start()
        self._note("start")

    @property
    def _event_count(self) -> int:
        return len(self.disk.events or ())

    def run(self) -> None:
        steps = self.steps()
        weights = [weight for weight, _ in steps]
        for _ in range(self.random.randrange(5, _STEPS)):
            self.take(self.random.choices([step for _, step in steps], weights)[0])

    def steps(self) -> list[tuple[float, LogStep]]:
        return [
            (10, self.append),
            (3, self.append_several),
            (1.5, self.append_after_gap),
            (3, self.append_in_transaction),
            (2, self.end_transaction),
            (1, self.delete_old_segments),
            (3, self.flush),
            (1.5, self.flush_meanwhile),
            (1, self.checkpoint),
            (1, self.roll),
            (1, self.begin_epoch),
            (0.6, self.truncate),
            (0.15, self.truncate_fully),
            (0.8, self.delete_records),
            (0.4, self.stop_and_start),
            (0.3, self.die_and_start),
        ]

    def take(self, step: LogStep) -> None:
        self.clock.passed_ms += self.random.randrange(100)
        partition = self.random.choice(PARTITIONS)
        step(partition, self.store.logs[partition])
        for log in self.store.logs.values():
            log.set_high_watermark(log.log_end_offset)
            log.check()
        self._note(f"{step.__name__} of {partition}")

    def continued(self, store: Store, facts: dict[int, Facts], random: Random) -> Self:
        """Return a workload that continues with the logs of another process."""
        work = type(self).__new__(type(self))
        work.random = random
        work.settings = self.settings
        work.clock = store.clock
        work.disk = store.disk
        work.facts = facts
        work.moments = []
        work.leader_epoch = self.leader_epoch + 1
        work.sequences = {}
        work.aside = []
        for partition, log in store.logs.items():
            work._continue_sequences(partition, log)
        work.store = store
        return work

    def step_after_crash(self) -> LogStep:
        """Return a step that shows that an opened log is usable."""
        return self.append

    # -- steps -------------------------------------------------------------------------------

    def append(self, partition: int, log: Log) -> None:
        result = log.append_as_leader(
            memoryview(self._batch(partition)),
            leader_epoch=self.leader_epoch,
            now_ms=self.clock.now_ms(),
        )
        assert not result.is_duplicate
        self._take_appended(partition, log, result.base_offset)

    def append_several(self, partition: int, log: Log) -> None:
        """Append several batches in one call, like a coordinator."""
        batches = [
            self._batch(partition, producer_id=-1) for _ in range(self.random.randrange(2, 5))
        ]
        result = log.append_as_leader(
            memoryview(bytearray(b"".join(batches))),
            leader_epoch=self.leader_epoch,
            now_ms=self.clock.now_ms(),
            origin=AppendOrigin.COORDINATOR,
        )
        self._take_appended(partition, log, result.base_offset)

    def append_after_gap(self, partition: int, log: Log) -> None:
        """Append like a follower whose source has deleted or compacted some records."""
        base_offset = log.log_end_offset + self.random.randrange(1, 20)
        batch = bytearray(self._batch(partition, producer_id=-1))
        # The batch's checksum covers neither field.
        struct.pack_into(">q", batch, 0, base_offset)
        struct.pack_into(">i", batch, 12, self.leader_epoch)
        log.append_as_follower(batch, now_ms=self.clock.now_ms())
        self._take_appended(partition, log, base_offset)

    def append_in_transaction(self, partition: int, log: Log) -> None:
        producer_id = self.random.choice(TRANSACTIONAL)
        batch = self._batch(partition, producer_id=producer_id, is_transactional=True)
        guard = log.producer_state.begin_verification(
            producer_id,
            sequence=read_batch_header(batch).base_sequence,
            producer_epoch=0,
            supports_epoch_bump=False,
            now_ms=self.clock.now_ms(),
        )
        result = log.append_as_leader(
            memoryview(batch),
            leader_epoch=self.leader_epoch,
            now_ms=self.clock.now_ms(),
            guard=guard,
        )
        assert not result.is_duplicate
        self._take_appended(partition, log, result.base_offset)

    def end_transaction(self, partition: int, log: Log) -> None:
        is_open = [
            row.producer_id
            for row in log.producer_state.as_rows()
            if row.current_txn_first_offset >= 0
        ]
        if not is_open:
            return
        result = append_end_marker(
            log,
            producer_id=self.random.choice(is_open),
            producer_epoch=0,
            coordinator_epoch=0,
            is_commit=self.random.random() < 0.4,
            transaction_version=1,
            leader_epoch=self.leader_epoch,
            now_ms=self.clock.now_ms(),
        )
        self._take_appended(partition, log, result.base_offset)

    def delete_old_segments(self, partition: int, log: Log) -> None:
        """Apply retention; files are removed immediately or later."""
        deleted = log.delete_old_segments(ClockReading(self.clock.now_ms(), uptime_ms=1 << 40))
        self._begins_at(partition, log.log_start_offset)
        for segment in deleted:
            set_aside_segment(log, segment)
        self.aside += deleted
        if self.random.random() < 0.5:
            for segment in self.aside:
                segment.remove()
            self.aside.clear()

    def flush(self, partition: int, log: Log) -> None:
        self.store.flush(log, log.flush_target())
        facts = self.facts[partition]
        self.facts[partition] = facts._replace(
            flushed=log.recovery_point, possible=frozenset(facts.lineage)
        )

    def flush_meanwhile(self, partition: int, log: Log) -> None:
        target = log.flush_target()
        for _ in range(self.random.randrange(3)):
            self.random.choice([self.append, self.append, self.roll, self.append_several])(
                partition, log
            )
            self._note(f"append during the flush of {partition}")
        if target is not None:
            self.store.flush(log, target)
            self.facts[partition] = self.facts[partition]._replace(flushed=log.recovery_point)

    def checkpoint(self, partition: int, log: Log) -> None:
        del partition, log
        self.store.checkpoint()
        self._start_offsets_are_safe()

    def roll(self, partition: int, log: Log) -> None:
        del partition
        log.roll(now_ms=self.clock.now_ms())

    def begin_epoch(self, partition: int, log: Log) -> None:
        del partition, log
        self.leader_epoch += self.random.randrange(1, 4)

    def truncate(self, partition: int, log: Log) -> None:
        """Truncate like a follower (storage/log/truncate.py has the order)."""
        facts = self.facts[partition]
        readable = [batch for batch in facts.lineage if base_of(batch) >= log.log_start_offset]
        if not readable:
            return
        offset = base_of(self.random.choice(readable[-5:]))
        self.leader_epoch += 1
        self.store.checkpoint({partition: min(offset, log.recovery_point)})
        self._start_offsets_are_safe()
        facts = self.facts[partition]
        log.truncate_to(offset, now_ms=self.clock.now_ms())
        lineage = tuple(batch for batch in facts.lineage if base_of(batch) < offset)
        self._cut(partition, log, facts._replace(lineage=lineage))

    def truncate_fully(self, partition: int, log: Log) -> None:
        """Restart at another offset, like an out-of-range follower."""
        offset = log.log_end_offset + self.random.randrange(5)
        self.leader_epoch += 1
        log.truncate_fully(offset, now_ms=self.clock.now_ms())
        self._cut(partition, log, self.facts[partition]._replace(lineage=()))

    def delete_records(self, partition: int, log: Log) -> None:
        offset = self.random.randrange(log.log_start_offset, log.high_watermark + 1)
        log.increment_log_start_offset(offset)
        self._begins_at(partition, log.log_start_offset)

    def stop_and_start(self, partition: int, log: Log) -> None:
        del partition, log
        self.store.stop()
        self.aside.clear()
        self.all_is_flushed()
        self._start_offsets_are_safe()
        self._note("clean stop")
        self.store = self._start()
        assert self.store.was_clean

    def die_and_start(self, partition: int, log: Log) -> None:
        """Die between two steps: the next process finds everything, but syncs nothing of it."""
        del partition, log
        self.aside.clear()
        self.store.files.is_dead = True
        self.store = self._start()
        assert not self.store.was_clean
        for key, now in self.store.logs.items():
            facts = self.facts[key]
            assert facts.flushed_start <= now.log_start_offset <= facts.log_start_offset
            self.facts[key] = facts._replace(log_start_offset=now.log_start_offset)

    # -- inside ------------------------------------------------------------------------------

    def _new_settings(self) -> TopicSettings:
        random = self.random
        return TopicSettings(
            segment_bytes=random.choice([700, 2_500, 9_000]),
            index_interval_bytes=random.choice([0, 150, 1_000]),
            segment_index_bytes=random.choice([24, 60, 1 << 20]),
            retention_bytes=random.choice([-1, 1_500, 6_000]),
        )

    def _new_record(self, most_bytes: int) -> PlainRecord:
        return None, self.random.randbytes(self.random.randrange(most_bytes)), ()

    def _start(self) -> Store:
        return Store(self.disk, self.settings, clock=self.clock, partitions=PARTITIONS)

    def _note(self, step: str) -> None:
        self.moments.append(Moment(self._event_count, step, dict(self.facts)))

    def _batch(
        self, partition: int, *, producer_id: int | None = None, is_transactional: bool = False
    ) -> bytearray:
        random = self.random
        count = random.randrange(1, 4)
        if producer_id is None:
            producer_id = random.choice([-1, 1, 2, 3])
        size = random.choices([40, 600, 1_500, 5_500], [12, 3, 1, 0.5])[0]
        size = min(size, self.settings.segment_bytes // 2 // count)
        key = (partition, producer_id)
        sequence = self.sequences.get(key, random.choice([0, 2**31 - 3]))
        if producer_id >= 0:
            self.sequences[key] = (sequence + count) % 2**31
        return bytearray(
            build_batch(
                [self._new_record(size) for _ in range(count)],
                timestamp_ms=self.clock.now_ms() - random.randrange(200),
                codec=random.choice([Codec.NONE, Codec.LZ4]),
                producer_id=producer_id,
                producer_epoch=0 if producer_id >= 0 else -1,
                base_sequence=sequence if producer_id >= 0 else -1,
                is_transactional=is_transactional,
            )
        )

    def _take_appended(self, partition: int, log: Log, base_offset: int) -> None:
        segment = log.segments.active
        content = segment.log.read_at(0, segment.size)
        new = tuple(
            content[position : position + header.size]
            for position, header in iterate_batches(content)
            if header.base_offset >= base_offset
        )
        assert end_of(new[-1]) == log.log_end_offset
        facts = self.facts[partition]
        self.facts[partition] = facts._replace(
            lineage=facts.lineage + new, possible=facts.possible.union(new)
        )

    def _cut(self, partition: int, log: Log, facts: Facts) -> None:
        self.facts[partition] = facts._replace(
            flushed=min(facts.flushed, log.recovery_point),
            log_start_offset=log.log_start_offset,
            flushed_start=min(facts.flushed_start, log.segments[0].base_offset),
            deleted_to=min(facts.deleted_to, log.log_end_offset),
        )
        self._continue_sequences(partition, log)
        self._note(f"cutting {partition}")
        self.flush(partition, log)

    def _continue_sequences(self, partition: int, log: Log) -> None:
        for key in [key for key in self.sequences if key[0] == partition]:
            del self.sequences[key]
        for row in log.producer_state.as_rows():
            self.sequences[partition, row.producer_id] = (row.last_sequence + 1) % 2**31

    def all_is_flushed(self) -> None:
        for partition, facts in self.facts.items():
            self.facts[partition] = facts._replace(
                flushed=facts.end, possible=frozenset(facts.lineage)
            )

    def _begins_at(self, partition: int, log_start_offset: int) -> None:
        facts = self.facts[partition]
        self.facts[partition] = facts._replace(
            log_start_offset=log_start_offset,
            deleted_to=max(facts.deleted_to, log_start_offset),
        )

    def _start_offsets_are_safe(self) -> None:
        for partition, facts in self.facts.items():
            self.facts[partition] = facts._replace(flushed_start=facts.log_start_offset)
