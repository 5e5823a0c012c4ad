"""The append path of a log (hot path): prepare, write and commit, and rolling of full segments.

The caller runs one append per log at a time, and no other change between write and commit.

Source: Kafka's UnifiedLog.append, LocalLog.append and roll.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.records.layout import CONTROL_FLAG
from wirebroker.codecs.records.plain_batch import place
from wirebroker.storage.log.append import (
    AppendOrigin,
    AppendPlan,
    AppendResult,
    check_fetched,
    check_room,
    must_roll,
    number_batches,
)
from wirebroker.storage.log.producers.producer_replay import apply_batch, find_aborts
from wirebroker.storage.log.read import ReadableLog
from wirebroker.storage.log.segment.segment import Segment
from wirebroker.storage.log.validation.batch_validation import BatchValidator

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from wirebroker.config.rows.topic import TopicSettings
    from wirebroker.storage.files import Buffer, Files
    from wirebroker.storage.log.index.transaction_index import AbortedTransaction
    from wirebroker.storage.log.producers.verification import VerificationGuard
    from wirebroker.storage.log.validation.record_validation import Walked


class AppendableLog(ReadableLog):
    """A log and the rules for appending to it.

    Attributes:
        appended_bytes: Since the log was opened, as appended_records.
        walks_records: Whether the records of every batch are validated.
    """

    __slots__ = (
        "_is_index_full",
        "_settings",
        "_validator",
        "appended_bytes",
        "appended_records",
        "walks_records",
    )

    def __init__(
        self,
        directory: str,
        files: Files,
        *,
        settings: TopicSettings,
        producer_id_expiration_ms: int,
        walks_records: bool,
    ) -> None:
        super().__init__(directory, files, producer_id_expiration_ms=producer_id_expiration_ms)
        self._settings = settings
        self.walks_records = walks_records
        self._validator = BatchValidator(settings, directory=directory, walks_all=walks_records)
        self._is_index_full: bool | None = None  # of the active segment, if known
        self.appended_bytes = 0
        self.appended_records = 0

    @property
    def settings(self) -> TopicSettings:
        """The topic's current settings; assignable."""
        return self._settings

    @settings.setter
    def settings(self, settings: TopicSettings) -> None:
        self._settings = settings
        self._validator = BatchValidator(
            settings, directory=self.directory, walks_all=self.walks_records
        )
        self._is_index_full = None

    def prepare_append(
        self,
        records: memoryview,
        *,
        leader_epoch: int,
        now_ms: int,
        request_version: int = 13,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        guard: VerificationGuard | None = None,
        is_brief: bool = False,
        walked: Walked | None = None,
    ) -> AppendPlan:
        """Validate batches and assign their offsets; changes nothing but bytes of `records`.

        The plan uses the writable view `records` until write() has returned. Only a client's batch
        is fully validated; see BatchValidator.validate, and ProducerState.check_append for `guard`.

        Raises:
            TakesLongError: `is_brief`, but the validation takes long.
            KafkaError: RefusedBatchError; RECORD_LIST_TOO_LARGE above segment.bytes; errors of
                ProducerState.check_append.
        """
        base_offset = self.log_end_offset
        check_room(base_offset)
        log_append_time_ms = -1
        if origin is not AppendOrigin.CLIENT:
            headers = number_batches(records, base_offset, leader_epoch)
            for header in headers:
                if header.is_transactional and not header.is_control:
                    self.producer_state.check_verified(header, guard)
        else:
            records, header = self._validator.validate(
                records,
                now_ms=now_ms,
                request_version=request_version,
                is_brief=is_brief,
                walked=walked,
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

    def is_recompressed(self, attributes: int) -> bool:
        """See BatchValidator.is_recompressed."""
        return self._validator.is_recompressed(attributes)

    def walk(self, records: memoryview, now_ms: int) -> Generator[None, None, Walked | None]:
        """See BatchValidator.walk."""
        return self._validator.walk(records, now_ms)

    def write(self, plan: AppendPlan) -> None:
        """Write a plan's batches to the active segment's files; roll first if it is full.

        May run in a thread.

        Raises:
            OSError: The log is unchanged, except perhaps for a new, empty segment.
        """
        if plan.duplicate_of is not None:
            return
        assert plan.base_offset >= self.log_end_offset, "appends go one at a time"
        epochs = self.leader_epochs
        for header in plan.headers:
            if header.leader_epoch != epochs.latest_recorded_epoch and header.leader_epoch >= 0:
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
                # The index may be a new file, whose loss would go unnoticed.
                self.is_directory_dirty = True
        plan.segment_write = segment.write(
            plan.records,
            headers,
            index_interval_bytes=self._settings.index_interval_bytes,
            aborted=aborted,
        )
        plan.segment = segment

    def commit(self, plan: AppendPlan) -> AppendResult:
        """Make the written batches part of the log; cannot fail."""
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
        self.appended_bytes += segment_write.end_position - segment_write.position
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
        self.appended_records += next_offset - plan.base_offset
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
        is_brief: bool = False,
        walked: Walked | None = None,
    ) -> AppendResult:
        """Prepare, write and commit; `records` may be reused afterwards."""
        plan = self.prepare_append(
            records,
            leader_epoch=leader_epoch,
            now_ms=now_ms,
            request_version=request_version,
            origin=origin,
            guard=guard,
            is_brief=is_brief,
            walked=walked,
        )
        self.write(plan)
        return self.commit(plan)

    def append_as_follower(
        self, records: Buffer, *, now_ms: int, leader_epoch: int | None = None
    ) -> AppendResult | None:
        """Append a leader's batches unchanged; return None if there is no whole one.

        Batches from the first one above the sender's `leader_epoch` on are ignored (Kafka:
        hasHigherPartitionLeaderEpoch).

        Raises:
            KafkaError: CORRUPT_MESSAGE; UNKNOWN_SERVER_ERROR for an offset below the log's end.
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
        """Begin a new segment, unless an empty one begins there already."""
        start = self.log_end_offset if base_offset is None else base_offset
        active = self.segments.active
        if active.base_offset == start:
            assert active.size == 0, f"{active} already begins at {start}"
            return active
        active.on_roll()
        state = self.producer_state
        state.end_offset = start
        state.take_snapshot()
        segment = Segment(self.files, self.directory, start, created_ms=now_ms)
        segment.create(self.settings)
        self.segments.add(segment)
        self.mark_touched()
        self._note_roll()
        return segment

    def _note_roll(self) -> None:
        """See Log.on_roll."""

    def mark_touched(self) -> None:
        """Record that files were created, replaced or removed."""
        self._is_index_full = None
        self._is_touched = True
        self.is_directory_dirty = True
