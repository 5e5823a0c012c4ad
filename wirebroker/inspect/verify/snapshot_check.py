"""Checks of a metadata snapshot: a header, readable records, a footer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.codecs.errors import KafkaError
from wirebroker.codecs.records.batch import iterate_records
from wirebroker.codecs.records.control import (
    MAX_CONTROL_BYTES,
    ControlRecord,
    SnapshotFooter,
    SnapshotHeader,
    decode_control_record,
)
from wirebroker.inspect.rows.batch_walk import BatchWalk, Damage
from wirebroker.inspect.rows.decoded_records import metadata
from wirebroker.inspect.verify.batch_checks import check_batch

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.inspect.rows.batch_walk import WalkedBatch
    from wirebroker.inspect.verify.findings import FileReport
    from wirebroker.storage.files import Files


def check_metadata_snapshot(
    files: Files, report: FileReport, on_bytes: Callable[[int], None]
) -> None:
    """Check a snapshot, unless it was removed."""
    controls: list[ControlRecord | None] = []
    end = -1
    epoch: int | None = None
    try:
        for walked in BatchWalk(files.data(report.path), on_bytes=on_bytes).walk():
            if isinstance(walked, Damage):
                message = f"{walked.length} bytes are not a batch: {walked.message}"
                report.error(message, position=walked.position)
                continue
            header = walked.header
            if not walked.is_valid_crc:
                report.error("the CRC-32C does not match", position=walked.position)
                continue
            if header.base_offset != end and end >= 0:
                report.error(
                    f"offset {header.base_offset}, expected {end}", position=walked.position
                )
            if epoch not in {None, header.leader_epoch}:
                report.error(
                    f"leader epoch {header.leader_epoch} after {epoch}", position=walked.position
                )
            end, epoch = header.last_offset + 1, header.leader_epoch
            check_batch(walked, report, metadata)
            if header.is_control:
                controls += _controls(walked)
            elif not controls:
                report.error("records come before the header", position=walked.position)
    except FileNotFoundError:
        return
    if not controls or not isinstance(controls[0], SnapshotHeader):
        report.error("the snapshot's header is missing", position=0)
    if not controls or not isinstance(controls[-1], SnapshotFooter):
        report.error("the snapshot's footer is missing")


def _controls(walked: WalkedBatch) -> list[ControlRecord | None]:
    try:
        return [
            decode_control_record(record.key, record.value)
            for record in iterate_records(walked.batch, walked.header, max_bytes=MAX_CONTROL_BYTES)
        ]
    except KafkaError:
        return []  # check_batch has reported it
