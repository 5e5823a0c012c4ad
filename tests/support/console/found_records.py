"""Records as the console's pages show them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.console.records.queries import FoundRecord

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


def found_record(
    offset: int = 1,
    *,
    topic: str = "orders",
    key: bytes | None = b"key",
    value: bytes | None = b"value",
    header: str = "trace",
    **others: Any,
) -> FoundRecord:
    """Return a record with one header, whose value is its name."""
    found = FoundRecord(
        topic=topic,
        partition=0,
        offset=offset,
        timestamp_ms=1_795_000_000_000,
        timestamp_type="create",
        key=key,
        value=value,
        key_length=-1 if key is None else len(key),
        value_length=-1 if value is None else len(value),
        headers=((header, header.encode()),),
        header_count=1,
        producer_id=-1,
        producer_epoch=-1,
        is_transactional=False,
        control=None,
        is_aborted=False,
        leader_epoch=0,
        is_cut=False,
    )
    return found._replace(**others)


async def chunks_of(*chunks: bytes) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk
