"""A log directory as lines of text, file by file, for a comparison with its twin.

Ids that a broker generates are replaced by names (`topic again 2`, `member 1`), times of its clock
by the word NOW. Everything else is included: positions, checksums, epochs, sizes.

    .log                      one line per batch with its header; of internal logs, one per record
    .index .timeindex         one line per entry
    .snapshot                 one line per producer
    *-checkpoint              its lines; rows of partitions by name: their order is a hash table's
    meta.properties           its properties by name
    all others                their text, or their bytes in hex

The metadata log's indexes hold positions of records, which are compared without offsets: for these
files only their presence counts.
"""

from __future__ import annotations

import hashlib
import json
import re
import struct
from typing import TYPE_CHECKING, Any

from compat_tests.twin.decoding import (
    Ids,
    control_lines,
    coordinator_lines,
    metadata_lines,
    transaction_lines,
)
from wirebroker.codecs.metadata_records import RecordType, decode_metadata_record
from wirebroker.codecs.records.batch import iterate_batches, iterate_records
from wirebroker.storage.log.producers.producer_snapshot import decode_snapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from wirebroker.codecs.records.batch import BatchHeader

# The stream's own times are earlier; later ones come from a broker's clock.
_CLOCK_MS = 1_710_000_000_000
METADATA = "__cluster_metadata-0"
OFFSETS = "__consumer_offsets"
TRANSACTIONS = "__transaction_state"
_MAX_BYTES = 64 << 20
# The single line for a file of which only the presence is compared.
PRESENT = "PRESENT"


def lines_of_directory(directory: Path) -> dict[str, list[str]]:
    ids = _ids_in(directory)
    files: dict[str, list[str]] = {}
    for path in sorted(directory.rglob("*")):
        name = path.relative_to(directory).as_posix()
        if path.is_file():
            files[_name(name)] = _lines_of_file(path, name, ids)
        elif not any(path.iterdir()):
            files[_name(name) + "/"] = [PRESENT]
    return files


def _ids_in(directory: Path) -> Ids:
    """Name the ids of topics and log directories after records of the metadata log."""
    ids = Ids()
    for log in sorted((directory / METADATA).glob("*.log")):
        view = memoryview(log.read_bytes())
        for header, batch in _batches(view):
            if header.is_control:
                continue
            for record in iterate_records(batch, header, max_bytes=_MAX_BYTES):
                decoded = decode_metadata_record(record.value or b"")
                if decoded.type is RecordType.TOPIC:
                    ids.add_topic(decoded.body.topic_id, decoded.body.name)
                elif decoded.type is RecordType.REGISTER_BROKER:
                    ids.broker_epochs.append(decoded.body.broker_epoch)
    return ids


def _name(name: str) -> str:
    return re.sub(r"\.[0-9a-f]{32}-", ".<uuid>-", name)


def _lines_of_file(path: Path, name: str, ids: Ids) -> list[str]:
    content = path.read_bytes()
    if name.startswith(METADATA) and name.endswith("index"):
        return [PRESENT]
    readers: list[tuple[str, Callable[[], list[str]]]] = [
        (".log", lambda: list(_log_lines(content, name, ids))),
        (".index", lambda: _index_lines(content)),
        (".timeindex", lambda: _time_index_lines(content)),
        (".snapshot", lambda: _producer_lines(content)),
        (".checkpoint", lambda: list(_log_lines(content, METADATA, ids))),
        ("leader-epoch-checkpoint", lambda: content.decode().split("\n")),
        ("-checkpoint", lambda: _sorted_rows(content.decode())),
        ("meta.properties", lambda: _properties(content.decode())),
        ("partition.metadata", lambda: ids.replace_texts(content.decode()).split("\n")),
        (".kafka_cleanshutdown", lambda: _json_lines(content, ids)),
        ("quorum-state", lambda: _json_lines(content, ids)),
    ]
    for suffix, read in readers:
        if name.endswith(suffix):
            return read()
    return [content.hex()] if content else []


def _batches(view: memoryview) -> Iterator[tuple[BatchHeader, memoryview]]:
    for position, header in iterate_batches(view):
        yield header, view[position : position + header.size]


def _log_lines(content: bytes, name: str, ids: Ids) -> Iterator[str]:
    """Describe each batch, or each record where the broker sets times and ids itself."""
    is_metadata = name.startswith(METADATA)
    for header, batch in _batches(memoryview(content)):
        records = list(iterate_records(batch, header, max_bytes=_MAX_BYTES))
        if header.is_control:
            yield from control_lines(header, records)
        elif is_metadata:
            yield from metadata_lines(header, records, ids)
        elif name.startswith(OFFSETS):
            yield from coordinator_lines(header, records, ids)
        elif name.startswith(TRANSACTIONS):
            yield from transaction_lines(header, records)
        else:
            digest = hashlib.sha256(batch).hexdigest()[:16]
            yield f"{header._replace(crc=0)} crc {header.crc:08x} sha256 {digest}"


def _index_lines(content: bytes) -> list[str]:
    extra_bytes = len(content) % 8
    lines = [
        f"offset + {offset} at {position}"
        for offset, position in struct.iter_unpack(">ii", content[: len(content) - extra_bytes])
    ]
    return lines + [f"{extra_bytes} bytes more"] * bool(extra_bytes)


def _producer_lines(content: bytes) -> list[str]:
    return [
        str(row._replace(timestamp_ms=0)) + f" {_time(row.timestamp_ms)}"
        for row in decode_snapshot(content)
    ]


def _time(timestamp_ms: int) -> str:
    return "NOW" if timestamp_ms > _CLOCK_MS else str(timestamp_ms)


def _time_index_lines(content: bytes) -> list[str]:
    """Describe each entry; for records with the broker's time, the latest one is random."""
    extra_bytes = len(content) % 12
    lines = [
        "NOW" if timestamp > _CLOCK_MS else f"{timestamp}: offset + {offset}"
        for timestamp, offset in struct.iter_unpack(">qi", content[: len(content) - extra_bytes])
    ]
    return lines + [f"{extra_bytes} bytes more"] * bool(extra_bytes)


def _sorted_rows(text: str) -> list[str]:
    version, count, *rows = text.split("\n")
    return [version, count, *sorted(rows[:-1]), rows[-1] if rows else ""]


def _properties(text: str) -> list[str]:
    lines = [line for line in text.split("\n") if not line.startswith("#")]
    return [*sorted(lines[:-1]), lines[-1]]


def _json_lines(content: bytes, ids: Ids) -> list[str]:
    values: dict[str, Any] = json.loads(content)
    if values.get("brokerEpoch") in ids.broker_epochs:
        values["brokerEpoch"] = "of the registration"
    return [f"{name}: {value}" for name, value in values.items()]
