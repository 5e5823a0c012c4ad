"""The records that a read_committed consumer takes from a Fetch response, as in Kafka."""

from __future__ import annotations

from typing import Any

from wirebroker.codecs.records.batch import iterate_batches, iterate_records

_ABORT_KEY = b"\x00\x00\x00\x00"


def committed_records_in(found: Any) -> list[tuple[int, bytes]]:
    """Return (offset, value) of the committed records in a partition's response.

    Records of the listed aborted transactions are left out, up to the next abort marker.
    """
    aborted = sorted(found.aborted_transactions or (), key=lambda entry: entry.first_offset)
    discarding: set[int] = set()
    values: list[tuple[int, bytes]] = []
    view = memoryview(found.records)
    for position, header in iterate_batches(view):
        while aborted and aborted[0].first_offset <= header.last_offset:
            discarding.add(aborted.pop(0).producer_id)
        records = list(iterate_records(view[position : position + header.size], header))
        if header.is_control:
            if records[0].key == _ABORT_KEY:
                discarding.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in discarding):
            values += [(record.offset, record.value or b"") for record in records]
    return values


def end_of_records(records: bytes) -> int:
    return max(header.last_offset for _, header in iterate_batches(memoryview(records))) + 1
