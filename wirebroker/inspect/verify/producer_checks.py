"""Comparison of producer snapshots and the transaction index with a replay of the batches.

Only if the replay is complete: from the log's beginning or a valid snapshot, without batches lost
to damage or compaction. A snapshot may lack expired producers; its others must agree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.codecs.errors import KafkaError
from wirebroker.inspect.rows.index_rows import ABORTED_ENTRY, entries
from wirebroker.inspect.views.overlay_files import OverlayFiles
from wirebroker.storage.log.index.transaction_index import AbortedTransaction
from wirebroker.storage.log.producers.producer_entry import to_row
from wirebroker.storage.log.producers.producer_replay import apply_batch
from wirebroker.storage.log.producers.producer_snapshot import (
    CorruptSnapshotError,
    SnapshotRow,
    decode_snapshot,
    snapshot_name,
)
from wirebroker.storage.log.producers.producer_state import ProducerState

if TYPE_CHECKING:
    from wirebroker.inspect.rows.batch_walk import WalkedBatch
    from wirebroker.inspect.verify.findings import FileReport
    from wirebroker.storage.files import DataFile, Files

_FOREVER_MS = 1 << 62


class ProducerCheck:
    """The producers of one partition from the first segment (`start`) on.

    `reports` take the findings of each snapshot, by offset.
    """

    def __init__(
        self, files: Files, folder: str, reports: dict[int, FileReport], start: int
    ) -> None:
        self._files = files
        self._folder = folder
        self._reports = reports
        self._due = sorted(offset for offset in reports if offset >= start)
        for offset in sorted(reports):
            if offset < start:  # a leftover without batches to compare
                self._read(offset)
        self._state = ProducerState(OverlayFiles(), folder, expiration_ms=_FOREVER_MS)
        self._knows_all = start == 0
        self._is_lost = False
        self.aborted: set[AbortedTransaction] = set()  # of this segment
        if start in reports and start:
            rows = self._read(start)
            self._knows_all = rows is not None
            self._state.snapshots.use([start] if rows is not None else [])
        self._state.reload(log_start_offset=0, end_offset=start, now_ms=0)

    def lose(self) -> None:
        """Stop comparing, because batches are missing."""
        self._is_lost = True

    @property
    def knows_all(self) -> bool:
        """Return whether the replay is complete."""
        return self._knows_all and not self._is_lost

    def on_batch(self, walked: WalkedBatch, report: FileReport) -> None:
        """Replay a batch."""
        self.up_to(walked.header.base_offset)
        if walked.header.producer_id < 0 or not walked.batch:
            return
        try:
            completed = apply_batch(self._state, walked.header, walked.batch)
        except KafkaError as error:
            report.error(
                f"a transaction marker cannot be read: {error.message}",
                position=walked.position,
                offset=walked.header.base_offset,
            )
            self.lose()
            return
        if completed is not None and completed.is_aborted:
            self.aborted.add(self._state.transactions.aborted_entry(completed))

    def up_to(self, offset: int) -> None:
        """Compare the snapshots up to an offset, to which all batches were replayed."""
        while self._due and self._due[0] <= offset:
            self._compare(self._due.pop(0))

    def finish(self, end_offset: int) -> None:
        """Compare the remaining snapshots; those beyond the end are wrong."""
        self.up_to(end_offset)
        for offset in self._due:
            self._reports[offset].warning(f"the log ends before it, at {end_offset}")
            self._read(offset)

    def _read(self, offset: int) -> list[SnapshotRow] | None:
        path = f"{self._folder}/{snapshot_name(offset)}"
        try:
            return decode_snapshot(self._files.read_file(path))
        except FileNotFoundError:
            return None
        except CorruptSnapshotError as error:
            self._reports[offset].error(f"it is damaged: {error}", position=0)
            return None

    def _compare(self, offset: int) -> None:
        rows = self._read(offset)
        if rows is None or not self.knows_all:
            return
        producers = self._state.producers
        for row in rows:
            entry = producers.get(row.producer_id)
            if entry is None:
                self._reports[offset].warning(f"no batch has its producer {row.producer_id}")
            elif (expected := to_row(row.producer_id, entry)) != row:
                self._reports[offset].warning(f"it has {row}, but the batches have {expected}")


def check_transaction_index(
    file: DataFile, report: FileReport, producers: ProducerCheck, base_offset: int, end_offset: int
) -> None:
    """Compare a `.txnindex` with the aborted transactions of the segment's batches.

    A missing index counts as empty; `producers` is the state after the last batch.
    """
    missing = set(producers.aborted)
    previous = -1
    for position, (version, *fields) in entries(file, ABORTED_ENTRY):
        transaction = AbortedTransaction(*fields)
        first, last, stable = (
            transaction.first_offset,
            transaction.last_offset,
            transaction.last_stable_offset,
        )
        is_sane = version == 0 and 0 <= first <= last and 0 <= stable <= last + 1
        if not is_sane or not base_offset <= last < end_offset:
            report.error(
                f"not a valid aborted transaction of this segment: {transaction}",
                position=position,
            )
        elif last <= previous:
            report.error(f"{last} comes after {previous}", position=position, offset=last)
        elif producers.knows_all and transaction not in missing:
            report.error(f"no marker matches {transaction}", position=position, offset=last)
        missing.discard(transaction)
        previous = max(previous, last)
    if file.size() % ABORTED_ENTRY.size:
        report.warning(f"{file.size()} bytes are not a multiple of {ABORTED_ENTRY.size}")
    if producers.knows_all:
        for missing_transaction in sorted(missing, key=lambda transaction: transaction.last_offset):
            report.error(
                f"{missing_transaction} is missing", offset=missing_transaction.last_offset
            )
