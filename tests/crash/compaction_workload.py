"""A scripted workload of compacted logs, with the steps of maintenance/compactor.py.

Other steps run while the worker reads and between the steps of each swap.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tests.crash.history import base_of, end_of, stored_batches
from tests.crash.log_workload import LogWorkload
from wirebroker.codecs.records.batch import iterate_batches
from wirebroker.storage.compaction.compaction import Compaction
from wirebroker.storage.compaction.map import OffsetMap
from wirebroker.storage.compaction.range import dirty_range, make_job
from wirebroker.storage.compaction.segment_swap import (
    begin_swap,
    discard_cleaned,
    enter_swapped,
    finish_swap,
    is_written,
    old_segments,
    set_aside_old,
    undo_swap,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random
    from typing import Self

    from tests.crash.history import Facts
    from tests.crash.log_workload import LogStep, PlainRecord
    from tests.crash.store import Store
    from wirebroker.config.rows.topic import TopicSettings
    from wirebroker.storage.compaction.compaction import CleanedGroup
    from wirebroker.storage.log.log import Log

_KEYS = 9
_FOREVER_MS = 1 << 40
_DIGEST_BYTES = 24


class CompactionWorkload(LogWorkload):
    """A run of keyed logs.

    Attributes:
        other_shapes: For a log whose segments are being replaced: their start and end offsets, and
            other contents that a start may find there.
    """

    def __init__(self, seed: int) -> None:
        self.other_shapes: dict[int, tuple[int, int, list[tuple[bytes, ...]]]] = {}
        super().__init__(seed)

    def steps(self) -> list[tuple[float, LogStep]]:
        left_out = (self.truncate, self.truncate_fully, self.begin_epoch)
        steps = [(weight, step) for weight, step in super().steps() if step not in left_out]
        return [*steps, (5, self.compact), (2, self.roll)]

    def step_after_crash(self) -> LogStep:
        return self.random.choice([self.append, self.end_transaction, self.roll, self.compact])

    def continued(self, store: Store, facts: dict[int, Facts], random: Random) -> Self:
        work = super().continued(store, facts, random)
        if random.random() < 0.5:  # the checkpoint did not reach the disk
            work.facts = {
                key: log_facts._replace(clean_to=None) for key, log_facts in facts.items()
            }
        work.other_shapes = {}
        return work

    # -- steps -------------------------------------------------------------------------------

    def compact(self, partition: int, log: Log) -> None:
        """Compact a log, unless retention interferes."""
        if log.recovery_point < log.log_end_offset:
            # The newest batch of a producer, and markers, decide about earlier batches.
            self.flush(partition, log)
            self._note(f"flush before a compaction of {partition}")
        dirty = dirty_range(log, self.facts[partition].clean_to, now_ms=self.clock.now_ms())
        if not dirty.dirty_bytes:
            return
        most_keys = self.random.choice([3, 50])
        compaction = Compaction(
            make_job(log, dirty, now_ms=self.clock.now_ms()),
            self.store.files,
            OffsetMap(_DIGEST_BYTES * most_keys, load_factor=0.9, secret=bytes(16)),
            on_read=lambda _: self._go_on_meanwhile(partition, log, 0.02),
        )
        try:
            for group in compaction.run():
                if not self._swap(partition, log, group):
                    return
            facts = self.facts[partition]
            self.facts[partition] = facts._replace(clean_to=compaction.next_dirty_offset)
        except FileNotFoundError:
            # Retention deleted records first.
            assert log.log_start_offset > dirty.first_dirty_offset or self.aside
        finally:
            self.other_shapes.pop(partition, None)
            discard_cleaned(self.store.files, log.directory)

    def _swap(self, partition: int, log: Log, group: CleanedGroup) -> bool:
        """Run the steps of maintenance/compaction_swap.py; return False if the log has changed."""
        files, base_offset = self.store.files, group.base_offsets[0]
        old = old_segments(log, group.base_offsets)
        if old is None or not is_written(files, log.directory, base_offset, group.bytes_after):
            return False
        end = log.segments[log.segments.floor_index(group.base_offsets[-1]) + 1].base_offset
        before = stored_batches(log)
        cleaned = files.data(f"{log.directory}/{base_offset:020}.log.cleaned")
        new = cleaned.read_at(0, group.bytes_after)
        cleaned.close()
        starts = _completed_by_a_start(group.base_offsets, _batches(new), before, end)
        self.other_shapes[partition] = base_offset, end, starts
        self._note(f"before a swap in {partition}")
        begin_swap(files, log.directory, base_offset)
        files.sync_directory(log.directory)
        self._go_on_meanwhile(partition, log, 0.3)
        old = old_segments(log, group.base_offsets)
        if old is None:
            undo_swap(files, log.directory, base_offset)
            return False
        swapped = enter_swapped(log, files, old)
        starts.append(_within(base_offset, end, before))
        for segment in old:
            set_aside_old(log, segment)
        self._go_on_meanwhile(partition, log, 0.2)
        files.sync_directory(log.directory)
        finish_swap(log, files, swapped)
        self.aside += old
        self._go_on_meanwhile(partition, log, 0.2)
        files.sync_directory(log.directory)
        del self.other_shapes[partition]
        self._note(f"after a swap in {partition}")
        return True

    # -- inside ------------------------------------------------------------------------------

    def _go_on_meanwhile(self, partition: int, log: Log, probability: float) -> None:
        if self.random.random() >= probability:
            return
        steps = [(self.append, 8), (self.append_in_transaction, 3), (self.end_transaction, 3)]
        steps += [(self.roll, 2), (self.flush, 2), (self.checkpoint, 2)]
        steps += [(self.delete_records, 1), (self.delete_old_segments, 1)]
        step = self.random.choices(*zip(*steps, strict=True))[0]
        step(partition, log)
        log.set_high_watermark(log.log_end_offset)
        self._note(f"{step.__name__} during a compaction of {partition}")

    def _note(self, step: str) -> None:
        for partition, log in self.store.logs.items():
            stored = tuple(stored_batches(log))
            shapes = [stored]
            if partition in self.other_shapes:
                start, end, alternatives = self.other_shapes[partition]
                before = [batch for batch in stored if base_of(batch) < start]
                after = [batch for batch in stored if base_of(batch) >= end]
                shapes += [(*before, *batches, *after) for batches in alternatives]
            self.facts[partition] = self.facts[partition]._replace(shapes=tuple(shapes))
        super()._note(step)

    def _new_settings(self) -> TopicSettings:
        random = self.random
        return replace(
            super()._new_settings(),
            cleanup_policy=random.choice([("compact",), ("compact", "delete")]),
            delete_retention_ms=random.choice([0, 300, _FOREVER_MS]),
        )

    def _new_record(self, most_bytes: int) -> PlainRecord:
        random = self.random
        value = None if random.random() < 0.15 else random.randbytes(random.randrange(most_bytes))
        return b"key-%d" % random.randrange(_KEYS), value, ()


def _completed_by_a_start(
    old_offsets: Sequence[int], new: tuple[bytes, ...], before: Sequence[bytes], end: int
) -> list[tuple[bytes, ...]]:
    """Return the possible contents after a start that completes a group's new segment.

    As in Apache Kafka, old segments after the new one's last batch stay unless they are already
    set aside, which happens from the first on. So the batches that compaction removed return
    together with those that made them obsolete.
    """
    new_end = end_of(new[-1]) if new else old_offsets[0]
    stay = [offset for offset in old_offsets[1:] if offset >= new_end]
    return [new, *((*new, *_within(offset, end, before)) for offset in stay)]


def _within(start: int, end: int, batches: Sequence[bytes]) -> tuple[bytes, ...]:
    return tuple(batch for batch in batches if start <= base_of(batch) < end)


def _batches(content: bytes) -> tuple[bytes, ...]:
    return tuple(
        content[position : position + header.size] for position, header in iterate_batches(content)
    )
