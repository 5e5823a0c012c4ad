"""Checks of one partition's folder."""

from __future__ import annotations

from collections import Counter
from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple

from wirebroker.base.text import counted
from wirebroker.codecs.primitives import uuid_text
from wirebroker.inspect.rows.decoded_records import decoder_for
from wirebroker.inspect.rows.file_kinds import LEFTOVERS, METADATA_TOPIC, FileKind, kind_of
from wirebroker.inspect.rows.small_file_rows import small_file_rows
from wirebroker.inspect.verify.findings import FileReport
from wirebroker.inspect.verify.log_check import LogCheck, LogFacts
from wirebroker.inspect.verify.producer_checks import ProducerCheck
from wirebroker.inspect.verify.snapshot_check import check_metadata_snapshot
from wirebroker.storage.log.leader_epochs import FILE_NAME as LEADER_EPOCHS
from wirebroker.storage.log.leader_epochs import LeaderEpochs
from wirebroker.storage.log.producers.producer_snapshot import snapshot_name, snapshot_offset
from wirebroker.storage.log.segment.segment_files import segment_base_offsets
from wirebroker.storage.partition_metadata import PARTITION_METADATA

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.inspect.verify.findings import Finding
    from wirebroker.inspect.views.read_only_files import ReadOnlyFiles
    from wirebroker.storage.file_names import PartitionName


class PartitionFacts(NamedTuple):
    """Facts about a partition from checkpoints and metadata, None if unknown.

    Attributes:
        is_running: Whether a broker uses the directory.
    """

    folder: str
    name: PartitionName
    recovery_point: int | None
    high_watermark: int | None
    log_start_offset: int | None
    was_clean: bool
    is_running: bool
    topic_id: bytes | None
    is_compacted: bool | None


class PartitionCheck:
    """The checks of a folder."""

    def __init__(
        self,
        files: ReadOnlyFiles,
        facts: PartitionFacts,
        emit: Callable[[Finding], None],
        on_bytes: Callable[[int], None],
    ) -> None:
        self._files = files
        self._facts = facts
        self._emit = emit
        self._on_bytes = on_bytes
        self._of_snapshots: list[Finding] = []
        self._is_metadata = facts.name.topic == METADATA_TOPIC

    def run(self) -> LogCheck:
        """Make all checks; return facts about the log."""
        facts = self._facts
        names = self._files.list_files(facts.folder)
        self._check_names(names)
        self._check_topic_id()
        epochs = self._epochs(names)
        bases = segment_base_offsets(names)
        log = LogCheck(
            self._files,
            self._log_facts(epochs),
            self._producers(names, bases),
            self._emit,
            self._on_bytes,
        )
        for base, following in zip_longest(bases, bases[1:]):
            log.check_segment(base, following)
        if bases and not facts.is_running:
            log.producers.finish(log.highest_end)
        # If segments were removed meanwhile, the batches are incomplete.
        if not facts.is_running or log.producers.knows_all:
            for finding in self._of_snapshots:
                self._emit(finding)
        self._check_bounds(bases, log)
        for name in names:
            if kind_of(name) is FileKind.METADATA_SNAPSHOT and not name.endswith(LEFTOVERS):
                check_metadata_snapshot(self._files, self._report(name), self._on_bytes)
        return log

    def _log_facts(self, epochs: list[tuple[int, int]] | None) -> LogFacts:
        facts = self._facts
        mended_from: int | None = None
        if not facts.was_clean and not facts.is_running:
            mended_from = 0 if self._is_metadata else facts.recovery_point or 0
        stable = None
        if facts.is_running:
            stable = max(facts.high_watermark or 0, facts.recovery_point or 0)
        return LogFacts(
            folder=facts.folder,
            log_start_offset=facts.log_start_offset or 0,
            epochs=epochs,
            stable_offset=stable,
            mended_from=mended_from,
            # Apache Kafka closes the metadata log after it has written the marker.
            was_closed=facts.was_clean and not facts.is_running and not self._is_metadata,
            is_compacted=False if self._is_metadata else facts.is_compacted,
            decoder=decoder_for(METADATA_TOPIC) if self._is_metadata else None,
        )

    def _producers(self, names: list[str], bases: list[int]) -> ProducerCheck:
        offsets = (snapshot_offset(name) for name in names)
        reports = {
            offset: FileReport(
                f"{self._facts.folder}/{snapshot_name(offset)}", self._of_snapshots.append
            )
            for offset in offsets
            if offset is not None
        }
        return ProducerCheck(self._files, self._facts.folder, reports, bases[0] if bases else 0)

    def _report(self, name: str) -> FileReport:
        return FileReport(f"{self._facts.folder}/{name}", self._emit)

    def _check_names(self, names: list[str]) -> None:
        bases = {name[:20] for name in names if name.endswith(".log")}
        leftovers = Counter(name.rpartition(".")[2] for name in names if name.endswith(LEFTOVERS))
        if not self._facts.is_running:
            for suffix, count in sorted(leftovers.items()):
                FileReport(self._facts.folder, self._emit).note(
                    f"left over: {counted(count, 'file')} .{suffix}; the next start handles them"
                )
        for name in sorted(names):
            kind = kind_of(name)
            if name.endswith(LEFTOVERS):
                continue
            if kind is None:
                self._report(name).note("not a Kafka file")
            elif (
                kind in {FileKind.OFFSET_INDEX, FileKind.TIME_INDEX, FileKind.TRANSACTION_INDEX}
                and name[:20] not in bases
                and not self._facts.is_running
            ):
                self._report(name).warning("its .log is missing; the next start removes it")

    def _check_topic_id(self) -> None:
        path = f"{self._facts.folder}/{PARTITION_METADATA}"
        report = self._report(PARTITION_METADATA)
        if not self._files.exists(path):
            if not self._facts.is_running:
                report.warning("it is missing; the next start writes it")
            return
        row = next(small_file_rows(self._files, path, FileKind.PARTITION_METADATA))
        if row["type"] == "damage":
            report.error(row["message"], position=0)
        elif self._facts.topic_id not in {None, b""}:
            expected = uuid_text(self._facts.topic_id or b"")
            if row["topic_id"] != expected:
                report.error(f"topic id {row['topic_id']}, but the metadata has {expected}")

    def _epochs(self, names: list[str]) -> list[tuple[int, int]] | None:
        report = self._report(LEADER_EPOCHS)
        has_batches = any(
            self._files.data(f"{self._facts.folder}/{name}").size()
            for name in names
            if name.endswith(".log")
        )
        if LEADER_EPOCHS not in names:
            if has_batches and not self._facts.is_running:
                report.warning("it is missing, but the batches have leader epochs")
            return None
        epochs: list[tuple[int, int]] = []
        for row in small_file_rows(
            self._files, f"{self._facts.folder}/{LEADER_EPOCHS}", FileKind.LEADER_EPOCHS
        ):
            if row["type"] == "damage":
                report.error(row["message"], position=0)
                return None
            entry = (row["epoch"], row["start_offset"])
            if epochs and not (entry[0] > epochs[-1][0] and entry[1] > epochs[-1][1]):
                report.error(f"epoch and offset {entry} come after {epochs[-1]}")
                return None
            epochs.append(entry)
        stored = LeaderEpochs(self._files, self._facts.folder)
        if stored.entries != epochs or stored.was_unreadable:
            report.error("it is damaged: its lines are not a checkpoint", position=0)
            return None
        if not epochs and has_batches:
            if not self._facts.is_running:
                report.warning("it is empty, but the batches have leader epochs")
            return None
        return epochs

    def _check_bounds(self, bases: list[int], log: LogCheck) -> None:
        facts = self._facts
        if self._is_metadata or facts.is_running or not bases or log.end_offset is None:
            return
        end, report = log.highest_end, FileReport(facts.folder, self._emit)
        if facts.recovery_point is not None:
            if facts.recovery_point > end:
                report.error(f"the recovery point is {facts.recovery_point}, the log ends at {end}")
            elif facts.was_clean and facts.recovery_point < end:
                report.warning(
                    f"the recovery point is {facts.recovery_point}, the log ends at {end}, "
                    "though the broker stopped cleanly"
                )
        if facts.high_watermark is not None and facts.high_watermark > end:
            # From a deleted topic of the same name, or the end was lost: a start uses the log's
            # end.
            report.warning(f"the high watermark is {facts.high_watermark}, the log ends at {end}")
        if facts.log_start_offset is not None and facts.log_start_offset > end:
            report.error(f"the log start is {facts.log_start_offset}, the log ends at {end}")
        if (facts.log_start_offset or 0) < bases[0] and facts.log_start_offset is not None:
            report.note(
                f"the log start is {facts.log_start_offset}, the first segment's {bases[0]}"
            )
        epochs = log.facts.epochs
        if epochs and epochs[-1][1] > end:
            self._report(LEADER_EPOCHS).error(
                f"epoch {epochs[-1][0]} begins at {epochs[-1][1]}, the log ends at {end}"
            )
