"""The log of one partition: append, read, roll, flush, truncate, retain.

    log_start_offset <= last_stable_offset <= high_watermark <= log_end_offset
    recovery_point <= log_end_offset          what is below it has been fdatasynced

An append has three steps, so that a large one can run in a thread and one that fails leaves no
trace: prepare_append (checks, assigns offsets in place, changes no state), write (files only; rolls
first if the segment is full), commit (cannot fail: indexes, producers, end offset). The caller
lets one append at a time through a log, and nothing else that changes it between write and commit.

The high watermark is moved only by its owner (cluster/partition). Files are opened when needed;
load() of a cleanly stopped log reads nothing but the directory. Times are arguments.

Source: Kafka's UnifiedLog and LocalLog; on-disk format in storage/README.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.plain_batch import place
from wirebroker.codecs.record_batch import CONTROL_FLAG
from wirebroker.storage.batch_validation import BatchValidator
from wirebroker.storage.leader_epochs import LeaderEpochs
from wirebroker.storage.log_append import (
    AppendOrigin,
    AppendPlan,
    AppendResult,
    check_fetched,
    must_roll,
    number_batches,
)
from wirebroker.storage.log_flush import FlushTarget, closed_flush_target, flush_target
from wirebroker.storage.log_read import (
    LogRead,
    find_aborted,
    find_max_timestamp,
    find_offset_for_timestamp,
    read_log,
)
from wirebroker.storage.log_recovery import load_log
from wirebroker.storage.log_retention import delete_old_segments
from wirebroker.storage.log_truncate import truncate_log, truncate_log_fully
from wirebroker.storage.producer_replay import apply_batch, find_aborts
from wirebroker.storage.producer_state import ProducerState
from wirebroker.storage.segment import Segment, TimestampedOffset
from wirebroker.storage.segments import Segments

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from wirebroker.config_topic import TopicSettings
    from wirebroker.storage.files import Buffer, Files
    from wirebroker.storage.transaction_index import AbortedTransaction
    from wirebroker.storage.verification import VerificationGuard
    from wirebroker.storage.wall_clocks import Moment

_DAY_MS: Final = 86_400_000


class Log:
    """One partition's log.

    Attributes:
        segments: At least one; the last is active.
        producer_state: Idempotent and transactional producers.
        leader_epochs: Which epoch began where.
        log_start_offset: The first offset that may be read.
        log_end_offset: The next offset to be assigned.
        high_watermark: Consumers see what is below it.
        recovery_point: Everything below it is on the disk.
        is_directory_dirty: Names in the directory changed since the last flush.
        on_roll: Called when a segment was rolled, perhaps in a thread: what is closed may be
            flushed (closed_flush_target).
    """

    __slots__ = (
        "_files",
        "_is_index_full",
        "_is_touched",
        "_settings",
        "_validator",
        "directory",
        "high_watermark",
        "is_directory_dirty",
        "leader_epochs",
        "log_end_offset",
        "log_start_offset",
        "on_roll",
        "partition",
        "producer_state",
        "recovery_point",
        "segments",
        "topic",
        "topic_id",
    )

    def __init__(
        self,
        directory: str,
        files: Files,
        *,
        topic: str,
        partition: int,
        topic_id: bytes,
        settings: TopicSettings,
        producer_id_expiration_ms: int = _DAY_MS,
    ) -> None:
        self.directory = directory
        self.topic = topic
        self.partition = partition
        self.topic_id = topic_id
        self._files = files
        self._settings = settings
        self._validator = BatchValidator(settings)
        self.segments = Segments()
        self.producer_state = ProducerState(
            files, directory, expiration_ms=producer_id_expiration_ms
        )
        self.leader_epochs = LeaderEpochs(files, directory)
        self.log_start_offset = 0
        self.log_end_offset = 0
        self.high_watermark = 0
        self.recovery_point = 0
        self.on_roll: Callable[[Log], None] | None = None
        self.is_directory_dirty = False
        self._is_index_full: bool | None = None  # of the active segment; None: not looked yet
        self._is_touched = False  # files may differ from what a clean stop left

    @property
    def settings(self) -> TopicSettings:
        """The topic's settings in force; assign new ones when its configs change."""
        return self._settings

    @settings.setter
    def settings(self, settings: TopicSettings) -> None:
        self._settings = settings
        self._validator = BatchValidator(settings)
        self._is_index_full = None

    @property
    def size_bytes(self) -> int:
        """Bytes of batches in all segments."""
        return self.segments.size_bytes

    @property
    def last_stable_offset(self) -> int:
        """Where read_committed ends: before the first transaction that is not decided."""
        first_unstable = self.producer_state.first_unstable_offset(self.high_watermark)
        if first_unstable is None or first_unstable >= self.high_watermark:
            return self.high_watermark
        return max(first_unstable, self.log_start_offset)

    def load(
        self,
        *,
        recovery_point: int,
        clean: bool,
        now_ms: int,
        log_start_offset: int = 0,
    ) -> None:
        """Open what the directory holds (it exists; an empty one becomes an empty log).

        Args:
            recovery_point: From the checkpoint; 0 if it has none.
            clean: The last stop was clean: nothing is checked, nearly nothing read.
            now_ms: The time now.
            log_start_offset: From the checkpoint; 0 if it has none.

        Raises:
            OSError: The disk failed.
            KafkaError: UNSUPPORTED_FOR_MESSAGE_FORMAT: there are flushed batches of magic 0 or 1.
        """
        end_offset, self.recovery_point, self.log_start_offset = load_log(
            self,
            self._files,
            recovery_point=recovery_point,
            clean=clean,
            now_ms=now_ms,
            log_start_offset=log_start_offset,
        )
        self.log_end_offset = end_offset
        self.high_watermark = self.log_start_offset

    # -- append ----------------------------------------------------------------------------

    def prepare_append(
        self,
        records: memoryview,
        *,
        leader_epoch: int,
        now_ms: int,
        request_version: int = 13,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        guard: VerificationGuard | None = None,
    ) -> AppendPlan:
        """Check batches and assign their offsets; changes nothing but bytes of `records`.

        Args:
            records: Writable; the plan keeps the view, so it stays valid until write() is done.
            leader_epoch: Under which this replica leads.
            now_ms: The time now.
            request_version: Of the Produce request.
            origin: CLIENT (one batch, everything is checked) or COORDINATOR (this broker's own).
            guard: From producer_state.begin_verification: what begins a transaction needs one.

        Raises:
            KafkaError: RefusedBatchError; RECORD_LIST_TOO_LARGE if it exceeds segment.bytes; what
                ProducerState.check_append raises.
        """
        base_offset = self.log_end_offset
        log_append_time_ms = -1
        if origin is not AppendOrigin.CLIENT:
            headers = number_batches(records, base_offset, leader_epoch)
            for header in headers:
                if header.is_transactional and not header.is_control:
                    self.producer_state.check_verified(header, guard)
        else:
            records, header = self._validator.validate(
                records, now_ms=now_ms, request_version=request_version
            )
            if len(records) > self._settings.segment_bytes:
                raise KafkaError(
                    ErrorCode.RECORD_LIST_TOO_LARGE,
                    f"the batch has {len(records)} bytes, "
                    f"segment.bytes is {self._settings.segment_bytes}",
                )
            if header.producer_id >= 0:
                duplicate = self.producer_state.check_append(header, guard=guard)
                if duplicate is not None:
                    return AppendPlan(records, (header,), now_ms=now_ms, duplicate_of=duplicate)
            headers = (place(records, header, base_offset, leader_epoch),)
            if self._settings.message_timestamp_type == "LogAppendTime":
                log_append_time_ms = now_ms
        return AppendPlan(records, headers, now_ms=now_ms, log_append_time_ms=log_append_time_ms)

    def write(self, plan: AppendPlan) -> None:
        """Put a plan's batches into the active segment's files, rolling before if it is full.

        May run in a thread. Nobody sees the batches before commit().

        Raises:
            OSError: The log is as before (perhaps with a new, empty segment).
        """
        if plan.duplicate_of is not None:
            return
        assert plan.base_offset >= self.log_end_offset, "appends go one at a time"
        epochs = self.leader_epochs
        for header in plan.headers:
            if header.leader_epoch != epochs.latest_epoch and header.leader_epoch >= 0:
                epochs.assign(header.leader_epoch, header.base_offset)
        if epochs.is_dirty:
            epochs.persist()
            self.is_directory_dirty = True
        self._is_touched = True
        segment = self.segments.active
        if self._is_index_full is None:
            self._is_index_full = segment.is_index_full(self._settings.segment_index_bytes)
        if self._is_index_full or must_roll(segment, plan, self._settings):
            segment = self.roll(now_ms=plan.now_ms, base_offset=plan.base_offset)
        headers = plan.headers
        first = headers[0]
        aborted: Sequence[AbortedTransaction] = ()
        if len(headers) > 1 or first.attributes & CONTROL_FLAG:
            aborted = find_aborts(self.producer_state, headers, plan.records)
            if aborted:
                # Its index may be a new file, which nobody would miss if its name got lost.
                self.is_directory_dirty = True
        plan.segment_write = segment.write(
            plan.records,
            headers,
            index_interval_bytes=self._settings.index_interval_bytes,
            aborted=aborted,
        )
        plan.segment = segment

    def commit(self, plan: AppendPlan) -> AppendResult:
        """Make what was written part of the log."""
        duplicate = plan.duplicate_of
        if duplicate is not None:
            return AppendResult(
                duplicate.base_offset,
                duplicate.last_offset,
                duplicate.timestamp_ms,
                self.log_start_offset,
                is_duplicate=True,
            )
        segment, segment_write = plan.segment, plan.segment_write
        assert segment is not None, "write() comes before commit()"
        assert segment_write is not None
        segment.commit(segment_write)
        if segment_write.offset_entry_count:
            self._is_index_full = None
        state = self.producer_state
        first = plan.headers[0]
        if len(plan.headers) == 1 and not first.attributes & CONTROL_FLAG:
            if first.producer_id >= 0:
                state.append(first)
        else:
            position = 0
            for header in plan.headers:
                apply_batch(state, header, plan.records[position : position + header.size])
                position += header.size
        next_offset = plan.last_offset + 1
        state.end_offset = next_offset
        self.log_end_offset = next_offset
        return AppendResult(
            plan.base_offset,
            plan.last_offset,
            plan.log_append_time_ms,
            self.log_start_offset,
            is_duplicate=False,
        )

    def append_as_leader(
        self,
        records: memoryview,
        *,
        leader_epoch: int,
        now_ms: int,
        request_version: int = 13,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        guard: VerificationGuard | None = None,
    ) -> AppendResult:
        """Take all three steps at once; `records` may be reused afterwards.

        Raises:
            KafkaError: As prepare_append. OSError as write.
        """
        plan = self.prepare_append(
            records,
            leader_epoch=leader_epoch,
            now_ms=now_ms,
            request_version=request_version,
            origin=origin,
            guard=guard,
        )
        self.write(plan)
        return self.commit(plan)

    def append_as_follower(
        self, records: Buffer, *, now_ms: int, leader_epoch: int | None = None
    ) -> AppendResult | None:
        """Append a leader's batches as they are, offsets and epochs included.

        Args:
            records: As fetched; a batch that is cut off at the end is left out.
            now_ms: The time now.
            leader_epoch: Of the leader that sent them: batches of a later epoch, and all behind
                them, are left out (Kafka: hasHigherPartitionLeaderEpoch). None takes all.

        Returns:
            None if no whole batch was left.

        Raises:
            KafkaError: CORRUPT_MESSAGE. An offset below the log's end is UNKNOWN_SERVER_ERROR.
        """
        view = memoryview(records)
        headers = check_fetched(view, self.log_end_offset, leader_epoch)
        if not headers:
            return None
        size = sum(header.size for header in headers)
        plan = AppendPlan(view[:size], tuple(headers), now_ms=now_ms)
        self.write(plan)
        return self.commit(plan)

    def roll(self, *, now_ms: int, base_offset: int | None = None) -> Segment:
        """Begin a new segment; an active one that is empty and at the right place stays.

        Args:
            now_ms: The time now.
            base_offset: Of the new segment: the first offset to come; None for log_end_offset.
        """
        start = self.log_end_offset if base_offset is None else base_offset
        active = self.segments.active
        if active.base_offset == start:
            assert active.size == 0, f"{active} already begins at {start}"
            return active
        active.on_roll()
        state = self.producer_state
        state.end_offset = start
        state.take_snapshot()
        segment = Segment(self._files, self.directory, start, created_ms=now_ms)
        segment.delete()  # what a crash may have left under these names
        segment.create()
        self.segments.add(segment)
        self.mark_touched()
        if self.on_roll is not None:
            self.on_roll(self)
        return segment

    # -- read ------------------------------------------------------------------------------

    def read(
        self, offset: int, max_bytes: int, *, up_to_offset: int, min_one: bool = False
    ) -> LogRead:
        """Find the bytes that answer a Fetch; reads no payload.

        Args:
            offset: Where to begin: the batch that holds it comes whole.
            max_bytes: At most so many.
            up_to_offset: Batches at or above it stay hidden (high watermark, last stable offset).
            min_one: Give the first batch whole even if it exceeds max_bytes.

        Raises:
            KafkaError: OFFSET_OUT_OF_RANGE below log_start_offset or above log_end_offset.
        """
        return read_log(self, offset, max_bytes, up_to_offset=up_to_offset, min_one=min_one)

    def aborted_transactions(
        self, fetch_offset: int, up_to_offset: int
    ) -> list[AbortedTransaction]:
        """Return the transactions that records in [fetch_offset, up_to_offset) may belong to.

        Raises:
            KafkaError: UNKNOWN_SERVER_ERROR: an index is of another version. OSError: the disk.
        """
        return find_aborted(self, fetch_offset, up_to_offset)

    def offset_for_timestamp(
        self, timestamp_ms: int, *, up_to_offset: int
    ) -> TimestampedOffset | None:
        """Find the first record not earlier than `timestamp_ms`, if it is below `up_to_offset`."""
        return find_offset_for_timestamp(self, timestamp_ms, up_to_offset=up_to_offset)

    def offset_of_max_timestamp(self, *, up_to_offset: int) -> TimestampedOffset | None:
        """Find the first record with the largest timestamp, if it is below `up_to_offset`."""
        return find_max_timestamp(self, up_to_offset=up_to_offset)

    def earliest(self) -> tuple[int, int | None]:
        """Return (log_start_offset, its leader epoch if known): ListOffsets -2."""
        earliest = self.leader_epochs.earliest
        is_known = earliest is not None and earliest[1] <= self.log_start_offset
        return self.log_start_offset, earliest[0] if earliest and is_known else None

    def end_offset_for_epoch(self, leader_epoch: int) -> tuple[int, int]:
        """Return (epoch, end offset) for OffsetForLeaderEpoch; (-1, -1) if nothing is known."""
        return self.leader_epochs.end_offset_for(leader_epoch, self.log_end_offset)

    # -- bounds ----------------------------------------------------------------------------

    def set_high_watermark(self, offset: int) -> None:
        """Move the high watermark, kept between log_start_offset and log_end_offset."""
        if not self.log_start_offset <= offset <= self.log_end_offset:
            offset = min(max(offset, self.log_start_offset), self.log_end_offset)
        self.high_watermark = offset
        self.producer_state.forget_decided(offset)

    def increment_log_start_offset(self, offset: int) -> bool:
        """Hide the records below `offset` (DeleteRecords, a leader's answer).

        Raises:
            KafkaError: OFFSET_OUT_OF_RANGE above the high watermark.
        """
        if offset > self.high_watermark:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{offset} is above the high watermark {self.high_watermark}",
            )
        if offset <= self.log_start_offset:
            return False
        self.log_start_offset = offset
        self.leader_epochs.truncate_from_start(offset)
        return True

    def truncate_to(self, offset: int, *, now_ms: int) -> bool:
        """Drop every batch that holds `offset` or comes after it (a follower that diverged).

        Returns:
            False if the log already ended there or before.
        """
        return truncate_log(self, offset, now_ms=now_ms)

    def truncate_fully(self, offset: int, *, now_ms: int) -> None:
        """Drop everything and go on at `offset`."""
        truncate_log_fully(self, self._files, offset, now_ms=now_ms)

    def delete_old_segments(self, moment: Moment) -> list[Segment]:
        """Let go of the segments that retention or DeleteRecords has done with.

        They are no longer part of the log, whose start has moved; what is left to do for each, in
        this order, is `set_aside_segment`, and `remove` after file.delete.delay.ms. If there are
        MOST_SEGMENTS (retention.py), there may be more to delete.

        Raises:
            OSError: A last segment that has expired too could not be rolled; all are still there.
        """
        return delete_old_segments(self, moment)

    # -- flush and close -------------------------------------------------------------------

    @property
    def unflushed_count(self) -> int:
        """Records above the recovery point (flush.messages goes by it)."""
        return self.log_end_offset - self.recovery_point

    def flush_target(self) -> FlushTarget | None:
        """Return what to sync so that everything committed by now is on the disk; None if nothing.

        Call its sync(), in a thread if you like, then mark_flushed(its offset).
        """
        return flush_target(self, self._files)

    def closed_flush_target(self) -> FlushTarget | None:
        """Return what to sync so that all but the active segment is on the disk; None if it is.

        May go on beside other flushes: it takes nothing off their hands. Use as flush_target.
        """
        return closed_flush_target(self, self._files)

    def mark_touched(self) -> None:
        """Note that files were created, replaced or removed: the next flush syncs the directory."""
        self._is_index_full = None
        self._is_touched = True
        self.is_directory_dirty = True

    def mark_flushed(self, offset: int) -> None:
        """Note that everything below `offset` is on the disk."""
        self.recovery_point = max(self.recovery_point, min(offset, self.log_end_offset))

    def flush(self) -> None:
        """Sync everything, here and now. Blocks."""
        target = self.flush_target()
        if target is not None:
            target.sync()
            self.mark_flushed(target.offset)

    def close(self, *, clean: bool, sync: bool = True) -> None:
        """Let go of the files.

        Args:
            clean: Leave the directory as Kafka does after a clean stop: everything synced, a
                producer snapshot at the end, indexes of exact length. Then the next load() reads
                nothing. Blocks. Otherwise (the disk failed, the log is to be deleted) nothing is
                written.
            sync: Wait for the disk, some 8 ms for a log that was written to. Else the caller syncs
                the whole file system before it writes the recovery point and the marker of a
                clean stop: for thousands of logs that is the only quick way.
        """
        if clean and (self._is_touched or self.leader_epochs.is_dirty):
            self.producer_state.take_snapshot()
            for segment in self.segments.since_flush(self.recovery_point):
                segment.finish()
            self.is_directory_dirty = True
            target = self.flush_target()
            if target is not None and sync:
                target.sync()
            self.recovery_point = self.log_end_offset
            self._is_touched = False
        for segment in self.segments:
            segment.close_files()

    def check(self) -> None:
        """Assert the laws that stand at the top of this file."""
        assert self.log_start_offset <= self.high_watermark <= self.log_end_offset, self
        assert self.log_start_offset <= self.last_stable_offset <= self.high_watermark
        assert 0 <= self.recovery_point <= self.log_end_offset
        assert self.segments.active.base_offset <= self.log_end_offset
        assert self.producer_state.end_offset == self.log_end_offset
        self.producer_state.check()
        self.leader_epochs.check()
