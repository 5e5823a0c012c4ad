"""Checks of a partition's segments: batches, offsets, epochs, indexes, producers.

With a running broker, findings of a segment are dropped if its files were replaced or removed
during the check, and offsets above the stable offset are skipped: they may be incomplete.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from wirebroker.inspect.rows.batch_walk import BatchWalk, Damage
from wirebroker.inspect.verify.batch_checks import check_batch, has_gap_inside
from wirebroker.inspect.verify.findings import FileReport, Finding
from wirebroker.inspect.verify.index_checks import OffsetIndexCheck, TimeIndexCheck
from wirebroker.inspect.verify.producer_checks import ProducerCheck, check_transaction_index
from wirebroker.storage.log.segment.segment_files import (
    INDEX_SUFFIX,
    LOG_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    segment_path,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.codecs.records.batch import BatchHeader
    from wirebroker.inspect.rows.batch_walk import WalkedBatch
    from wirebroker.inspect.rows.decoded_records import Decoder
    from wirebroker.inspect.views.read_only_files import ReadOnlyFiles
    from wirebroker.storage.files import DataFile

_SEGMENT_SUFFIXES = (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX)


class LogFacts(NamedTuple):
    """Facts about a log from other files.

    Attributes:
        log_start_offset: From the checkpoint; lower offsets may be older than all known epochs.
        epochs: (epoch, start offset); None if the checkpoint is missing or damaged.
        stable_offset: Where a running broker may be writing; None without one.
        mended_from: The recovery point after an unclean stop, or None.
        was_closed: Whether its last segment was closed.
    """

    folder: str
    log_start_offset: int
    epochs: list[tuple[int, int]] | None
    stable_offset: int | None
    mended_from: int | None
    was_closed: bool
    is_compacted: bool | None
    decoder: Decoder | None


class LogCheck:
    """One partition's log.

    Attributes:
        end_offset: Offset after the last batch; None if unknown (damage, removal).
        highest_end: Offset after the last valid batch.
    """

    def __init__(
        self,
        files: ReadOnlyFiles,
        facts: LogFacts,
        producers: ProducerCheck,
        emit: Callable[[Finding], None],
        on_bytes: Callable[[int], None],
    ) -> None:
        self.files = files
        self.facts = facts
        self.producers = producers
        self._emit = emit
        self.on_bytes = on_bytes
        self.end_offset: int | None = None
        self.highest_end = 0
        self.last_epoch = -1

    def check_segment(self, base_offset: int, next_base: int | None) -> None:
        """Check one segment; `next_base` is the following one's base offset."""
        is_running = self.facts.stable_offset is not None
        if not is_running:
            _SegmentCheck(self, base_offset, next_base, self._emit).run()
            return
        paths = [
            segment_path(self.facts.folder, base_offset, suffix) for suffix in _SEGMENT_SUFFIXES
        ]
        findings: list[Finding] = []
        before = [self.files.identity(path) for path in paths]
        try:
            _SegmentCheck(self, base_offset, next_base, findings.append).run()
            after = [self.files.identity(path) for path in paths]
        except FileNotFoundError:
            after = []
        if next_base is None:  # appends change a file, but not its identity
            before, after = before[:1], after[:1]
            is_same = bool(after) and _inode(before[0]) == _inode(after[0]) is not None
        else:
            is_same = before == after and before[0] is not None
        if not is_same:  # replaced by retention or compaction
            self.end_offset = None
            self.producers.lose()
            return
        for finding in findings:
            self._emit(finding)


class _SegmentCheck:
    def __init__(
        self,
        log: LogCheck,
        base_offset: int,
        next_base: int | None,
        emit: Callable[[Finding], None],
    ) -> None:
        facts = log.facts
        self._log = log
        self._base_offset = base_offset
        self._next_base = next_base
        stable = facts.stable_offset
        self._stable_offset = stable if next_base is None else None
        self._reports = {
            suffix: FileReport(
                segment_path(facts.folder, base_offset, suffix),
                emit,
                mended_from=facts.mended_from,
            )
            for suffix in _SEGMENT_SUFFIXES
        }
        self._offset_index = OffsetIndexCheck(
            self._data(INDEX_SUFFIX), self._reports[INDEX_SUFFIX], base_offset
        )
        self._time_index = TimeIndexCheck(
            self._data(TIME_INDEX_SUFFIX), self._reports[TIME_INDEX_SUFFIX], base_offset
        )

    def _data(self, suffix: str) -> DataFile:
        return self._log.files.data(segment_path(self._log.facts.folder, self._base_offset, suffix))

    def run(self) -> None:
        log, report = self._log, self._reports[LOG_SUFFIX]
        file = self._data(LOG_SUFFIX)
        log.producers.aborted.clear()
        start = log.end_offset
        log.highest_end = max(log.highest_end, self._base_offset)
        if start is None:
            log.end_offset = self._base_offset
        elif self._base_offset < start:
            report.error(f"the segment before ends at {start}", offset=self._base_offset)
        elif self._base_offset > start:
            self._report_gap(start, self._base_offset, 0)
        is_whole = True
        for walked in BatchWalk(file, on_bytes=log.on_bytes).walk():
            if self._is_above_stable(walked):
                is_whole = False
                break
            if isinstance(walked, Damage):
                self._on_damage(walked)
            else:
                self._on_batch(walked)
        # A running broker's indexes may have entries for batches appended after the walk began.
        if is_whole and self._stable_offset is None:
            self._finish(file.size())
        file.close()

    def _is_above_stable(self, walked: WalkedBatch | Damage) -> bool:
        if self._stable_offset is None:
            return False
        end = self._log.end_offset or 0
        if isinstance(walked, Damage):
            return end >= self._stable_offset
        return walked.header.last_offset >= self._stable_offset

    def _on_damage(self, damage: Damage) -> None:
        log = self._log
        self._reports[LOG_SUFFIX].error(
            f"{damage.length} bytes are not a batch: {damage.message}",
            position=damage.position,
            offset=log.end_offset,
        )
        self._offset_index.on_damage(damage.position, damage.position + damage.length)
        self._time_index.on_damage()
        log.producers.lose()
        log.end_offset = None

    def _on_batch(self, walked: WalkedBatch) -> None:
        header, position = walked.header, walked.position
        log, report = self._log, self._reports[LOG_SUFFIX]
        if not walked.is_valid_crc:
            report.error("the CRC-32C does not match", position=position, offset=log.end_offset)
            self._offset_index.on_damage(position, position + header.size)
            self._time_index.on_damage()
            log.producers.lose()
            log.end_offset = None
            return
        self._check_offsets(header, position)
        self._check_epoch(header, position)
        check_batch(walked, report, log.facts.decoder)
        self._offset_index.on_batch(position, header)
        self._time_index.on_batch(position, header)
        if has_gap_inside(header):
            log.producers.lose()
        log.producers.on_batch(walked, report)
        log.end_offset = max(log.end_offset or 0, header.last_offset + 1)
        log.highest_end = max(log.highest_end, header.last_offset + 1)
        log.last_epoch = max(log.last_epoch, header.leader_epoch)

    def _check_offsets(self, header: BatchHeader, position: int) -> None:
        report, expected = self._reports[LOG_SUFFIX], self._log.end_offset
        first, last = header.base_offset, header.last_offset
        if last < first or first < self._base_offset:
            report.error(f"offsets {first} to {last}", position=position, offset=first)
        elif self._next_base is not None and last >= self._next_base:
            report.error(
                f"offsets {first} to {last} reach into the next segment",
                position=position,
                offset=first,
            )
        elif expected is not None and first < expected:
            report.error(f"expected offset {expected}", position=position, offset=first)
        elif expected is not None and first > expected:
            self._report_gap(expected, first, position)

    def _report_gap(self, expected: int, actual: int, position: int) -> None:
        self._log.producers.lose()
        if self._log.facts.is_compacted:
            return
        message = f"the offsets {expected} to {actual - 1} are missing"
        if self._log.facts.is_compacted is None:
            message += " (valid if the topic is or was compacted)"
        else:
            message += " (valid only if the topic was compacted earlier)"
        self._reports[LOG_SUFFIX].warning(message, position=position, offset=expected)

    def _check_epoch(self, header: BatchHeader, position: int) -> None:
        report, epochs = self._reports[LOG_SUFFIX], self._log.facts.epochs
        epoch, offset = header.leader_epoch, header.base_offset
        if epoch < self._log.last_epoch:
            report.error(
                f"leader epoch {epoch} comes after {self._log.last_epoch}",
                position=position,
                offset=offset,
            )
        elif epochs is not None and epoch >= 0:
            index = (
                bisect_right(epochs, (offset, 1 << 62), key=lambda entry: (entry[1], entry[0])) - 1
            )
            if index >= 0 and epochs[index][0] != epoch:
                report.error(
                    f"leader epoch {epoch}, but the checkpoint has {epochs[index][0]}",
                    position=position,
                    offset=offset,
                )
            elif index < 0 and offset >= self._log.facts.log_start_offset:
                report.error(
                    f"leader epoch {epoch} begins later in the checkpoint",
                    position=position,
                    offset=offset,
                )

    def _finish(self, size: int) -> None:
        log = self._log
        is_active = self._next_base is None
        for suffix in (INDEX_SUFFIX, TIME_INDEX_SUFFIX):
            # An active segment's indexes are created with the first entry: after a kill they may be
            # missing.
            is_due = size and not (is_active and log.facts.mended_from is not None)
            if is_due and not log.files.exists(self._reports[suffix].path):
                self._reports[suffix].warning("it is missing; the next start rebuilds it")
        self._offset_index.finish()
        self._time_index.finish(is_closed=not is_active or log.facts.was_closed)
        end = log.end_offset
        if end is not None:
            log.producers.up_to(end)
            check_transaction_index(
                self._data(TXN_INDEX_SUFFIX),
                self._reports[TXN_INDEX_SUFFIX],
                log.producers,
                self._base_offset,
                end,
            )


def _inode(identity: tuple[int, int, int, int] | None) -> tuple[int, int] | None:
    return identity and identity[:2]
