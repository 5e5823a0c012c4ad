"""Snapshots of the metadata log in Kafka's format: the records of the image at one offset.

    <end offset, 20 digits>-<epoch, 10 digits>.checkpoint

    control batch   SnapshotHeader (timestamp of the last record contained),
                    with dynamic voters also KRaftVersion and KRaftVoters
    batches         records that rebuild the image; offsets count from 0
    control batch   SnapshotFooter: without it the file is incomplete

`bootstrap.checkpoint`, next to the log's directory, has this format and the first feature levels.

Source: KIP-630; Kafka's RecordsSnapshotWriter and BootstrapDirectory.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from wirebroker.base.clock import Slices
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.records.batch import batch_crc, iterate_batches, iterate_records
from wirebroker.codecs.records.control import (
    MAX_CONTROL_BYTES,
    ControlRecord,
    ControlType,
    KRaftVersion,
    KRaftVoters,
    SnapshotFooter,
    SnapshotHeader,
    control_type,
    decode_control_record,
)
from wirebroker.coordinator.controller.features.feature_control import new_cluster_levels
from wirebroker.coordinator.controller.image.cluster_image import ClusterImage, to_records
from wirebroker.quorum.log.metadata_batches import BatchBuilder, decode_batch
from wirebroker.storage.file_names import offset_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from wirebroker.base.clock import Clock
    from wirebroker.codecs.metadata_records import MetadataRecord
    from wirebroker.codecs.primitives import Buffer
    from wirebroker.codecs.records.batch import BatchHeader

SUFFIX = ".checkpoint"
BOOTSTRAP_FILE = "bootstrap.checkpoint"
_NAME = re.compile(r"([0-9]{20})-([0-9]{10})\.checkpoint")


class SnapshotId(NamedTuple):
    """A snapshot of all records before `end_offset`, the last one of `epoch`."""

    end_offset: int
    epoch: int

    @property
    def file_name(self) -> str:
        """The file's name."""
        return f"{self.end_offset:020d}-{self.epoch:010d}{SUFFIX}"


# Written by Apache Kafka's storage tool.
FORMATTED = SnapshotId(0, 0)


def snapshot_ids(names: Iterable[str]) -> list[SnapshotId]:
    """Return the snapshots among file names, oldest first."""
    matches = (_NAME.fullmatch(name) for name in names)
    return sorted(
        SnapshotId(offset, int(match[2]))
        for match in matches
        if match and (offset := offset_of(match[1])) is not None and int(match[2]) < 1 << 31
    )


async def encode_snapshot(
    image: ClusterImage, *, voters: Sequence[ControlRecord], timestamp_ms: int, clock: Clock
) -> list[bytearray]:
    """Return a snapshot's contents, encoded in slices.

    `voters` are the log's KRaftVersion and KRaftVoters, none with static voters; `timestamp_ms` is
    that of the last record.
    """
    slices = Slices(clock)
    builder = BatchBuilder(base_offset=0, leader_epoch=image.epoch, timestamp_ms=timestamp_ms)
    builder.add_control([SnapshotHeader(timestamp_ms), *voters])
    for record in to_records(image):
        builder.add(record)
        await slices.turn()
    builder.add_control([SnapshotFooter()])
    return builder.batches.buffers


def encode_bootstrap(timestamp_ms: int, metadata_level: int) -> bytes:
    """Return `bootstrap.checkpoint` for a level of metadata.version."""
    return encode_first_snapshot(timestamp_ms, new_cluster_levels(metadata_level))


def encode_first_snapshot(
    timestamp_ms: int,
    records: Iterable[MetadataRecord],
    *,
    voters: Sequence[ControlRecord] = (),
) -> bytes:
    """Return a snapshot of the first records of a cluster: feature levels and users."""
    builder = BatchBuilder(base_offset=0, leader_epoch=0, timestamp_ms=timestamp_ms)
    builder.add_control([SnapshotHeader(timestamp_ms), *voters])
    for record in records:
        builder.add(record)
    builder.add_control([SnapshotFooter()])
    return b"".join(builder.batches.buffers)


def bootstrap_records(content: bytes) -> list[MetadataRecord]:
    """Return the records of `bootstrap.checkpoint`.

    Raises:
        KafkaError: CORRUPT_MESSAGE, as in read_snapshot; UNSUPPORTED_VERSION for unknown records.
    """
    return [
        record
        for header, batch in read_snapshot(content).batches
        for record in decode_batch(batch, header)
    ]


class SnapshotContents(NamedTuple):
    """A complete snapshot."""

    batches: list[tuple[BatchHeader, memoryview]]
    voters: list[ControlRecord]
    timestamp_ms: int


def read_snapshot(content: bytes) -> SnapshotContents:
    """Check a snapshot and return its contents.

    Raises:
        KafkaError: CORRUPT_MESSAGE if any part is missing or damaged.
    """
    view = memoryview(content)
    batches: list[tuple[BatchHeader, memoryview]] = []
    controls: list[ControlRecord] = []
    for position, header in iterate_batches(view):
        if batch_crc(view, position, header.size) != header.crc:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"the CRC-32C does not match at {position}")
        batch = view[position : position + header.size]
        if header.is_control:
            controls += control_records(batch, header)
        else:
            batches.append((header, batch))
    if not controls or not isinstance(controls[0], SnapshotHeader):
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, "the snapshot has no header")
    if not isinstance(controls[-1], SnapshotFooter):
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, "the snapshot ends before its footer")
    voters = [record for record in controls if isinstance(record, KRaftVersion | KRaftVoters)]
    return SnapshotContents(batches, list(voters), controls[0].last_contained_log_timestamp)


def control_records(batch: Buffer, header: BatchHeader) -> Iterator[ControlRecord]:
    """Yield the known control records of a control batch."""
    for record in iterate_records(batch, header, max_bytes=MAX_CONTROL_BYTES):
        if control_type(record.key) in (ControlType.ABORT, ControlType.COMMIT):
            continue
        decoded = decode_control_record(record.key, record.value)
        if decoded is not None:
            yield decoded
