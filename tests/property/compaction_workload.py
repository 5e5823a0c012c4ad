"""A log with random producers and compactions, compared with a model.

The model is the list of all committed records; compaction removes nothing from it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.simulation.machine.disk import Disk
from tests.simulation.machine.simulated_files import SimulatedFiles
from tests.support.records.clocks import HandClock
from tests.support.storage.compaction import (
    append,
    append_marker,
    batches_of,
    committed_records_of,
    compact,
    map_of,
)
from wirebroker.codecs.records.batch import build_batch
from wirebroker.codecs.records.codec import Codec
from wirebroker.codecs.records.record import Record
from wirebroker.config.rows.topic import TopicSettings
from wirebroker.storage.log.log import Log
from wirebroker.storage.recovery.log_recovery import load_log

if TYPE_CHECKING:
    from random import Random

DIRECTORY: Final = "/data/topic-0"
RETENTION_MS: Final = 1_000
SETTINGS: Final = TopicSettings(
    segment_bytes=2_000,
    index_interval_bytes=200,
    cleanup_policy=("compact",),
    delete_retention_ms=RETENTION_MS,
)
PLAIN = -1


class Workload:
    """One log in memory.

    Attributes:
        committed: The model, ordered by offset after `check`.
        checkpoint: The first dirty offset.
    """

    def __init__(self, random: Random, *, is_recorded: bool = False) -> None:
        self.random = random
        self.disk = Disk(is_recorded=is_recorded)
        self.clock = HandClock()
        self.files = SimulatedFiles(self.disk, self.clock, lambda: None)
        self.files.make_directory(DIRECTORY)
        self.files.sync_directory("/data")
        self.files.sync_directory("/")
        self.log = open_log(self.files)
        self.committed: list[Record] = []
        self.checkpoint: int | None = None
        self._open: dict[int, list[Record]] = {}
        self._sequences: dict[int, int] = {}
        # Earliest time at which a compaction may have seen a tombstone; no horizon is before it.
        self._met_ms: dict[int, int] = {}

    def step(self) -> None:
        luck = self.random.random()
        self.clock.passed_ms += self.random.randrange(30)
        if luck < 0.9:
            self.append()
        elif luck < 0.97:
            self.end_transaction()
        else:
            self.log.roll(now_ms=self.clock.now_ms())

    def append(self) -> None:
        random, log = self.random, self.log
        producer = random.choice([PLAIN, PLAIN, 1, 2, 3, 4])
        is_transactional = producer > 2
        start = log.log_end_offset
        times = [
            self.clock.now_ms() + random.randrange(-50, 50) for _ in range(random.randrange(1, 6))
        ]
        records = [
            Record(
                start + number,
                times[number],
                b"key-%d" % min(random.randrange(40), random.randrange(40)),
                None if random.random() < 0.15 else random.randbytes(random.randrange(40)),
                (("h", b"1"),) if random.random() < 0.1 else (),
            )
            for number in range(len(times))
        ]
        sequence = self._sequences.get(producer, 0)
        batch = build_batch(
            records,
            base_offset=start,
            codec=random.choice([Codec.NONE, Codec.NONE, *Codec]),
            producer_id=producer,
            producer_epoch=-1 if producer == PLAIN else 0,
            base_sequence=-1 if producer == PLAIN else sequence,
            is_transactional=is_transactional,
        )
        append(log, batch, now_ms=self.clock.now_ms())
        if producer != PLAIN:
            self._sequences[producer] = sequence + len(records)
        if is_transactional:
            self._open.setdefault(producer, []).extend(records)
        else:
            self.committed += records

    def end_transaction(self) -> None:
        if self._open:
            producer = self.random.choice(list(self._open))
            is_commit = self.random.random() < 0.5
            append_marker(self.log, producer, is_commit=is_commit, now_ms=self.clock.now_ms())
            records = self._open.pop(producer)
            if is_commit:
                self.committed += records

    def end_all_transactions(self) -> None:
        while self._open:
            self.end_transaction()

    def compact(self) -> None:
        """Compact the log, with a random amount of memory for keys."""
        for record in self.committed:
            self._met_ms.setdefault(record.offset, self.clock.now_ms())
        self.checkpoint = compact(
            self.log,
            self.files,
            self.checkpoint if self.random.random() < 0.8 else 0,
            now_ms=self.clock.now_ms(),
            map_bytes=self.random.choice([24 * 3, 24 * 15, 1 << 16]),
        )

    def check(self, log: Log | None = None) -> None:
        """Compare the view of a read_committed consumer with the model, from several offsets."""
        log = log or self.log
        log.check()
        self.committed.sort()
        stable = log.last_stable_offset
        model = [record for record in self.committed if record.offset < stable]
        records = [record for record in committed_records_of(log) if record.offset < stable]
        by_offset = {record.offset: record for record in model}
        for record in records:
            assert by_offset[record.offset]._replace(headers=()) == record._replace(headers=())
            assert list(by_offset[record.offset].headers) == list(record.headers)
        for start in {0, *(self.random.randrange(stable + 1) for _ in range(3))}:
            actual = map_of([record for record in records if record.offset >= start])
            assert actual == map_of([record for record in model if record.offset >= start])
        self._check_tombstones(model, {record.offset for record in records})

    def _check_tombstones(self, model: list[Record], offsets: set[int]) -> None:
        last = {record.key: record for record in model}
        for record in last.values():
            if record.value is None and record.offset not in offsets:
                assert self.clock.now_ms() >= self._met_ms[record.offset] + RETENTION_MS

    def everything(self) -> bytes:
        """Return all batches, concatenated."""
        return b"".join(batch for _, batch in batches_of(self.log))


def open_log(files: SimulatedFiles, *, recovery_point: int = 0) -> Log:
    """Open a disk's log as after an unclean stop, with all records committed."""
    log = Log(
        DIRECTORY,
        files,
        topic="topic",
        partition=0,
        topic_id=bytes(16),
        settings=SETTINGS,
        producer_id_expiration_ms=1 << 60,
    )
    load_log(log, recovery_point=recovery_point, clean=False, now_ms=files.now_ms())
    log.set_high_watermark(log.log_end_offset)
    return log
