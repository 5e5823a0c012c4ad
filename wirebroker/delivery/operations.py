"""Operations on the pending records of a service, with a client of the cluster.

Commands are entries of the pending topic (entry.py). The service carries them out in order, so a
command that comes too late has no effect.
"""

from __future__ import annotations

import tempfile
import uuid
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from wirebroker.client.errors import ClientError
from wirebroker.client.records.consuming import PartitionsReader
from wirebroker.client.records.partitioning import partition_for
from wirebroker.client.records.producing import TopicWriter
from wirebroker.client.topics.leaders import offsets_at, partitions_of
from wirebroker.codecs.records.codec import Codec
from wirebroker.codecs.special_offsets import EARLIEST, LATEST
from wirebroker.delivery.model.entry import (
    EntryCommand,
    EntryKind,
    PendingEntry,
    decode_entry,
    encode_entry,
)
from wirebroker.delivery.pending.partition import PendingPartition
from wirebroker.delivery.pending.store import PendingStore

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from wirebroker.client.kafka_client import KafkaClient
    from wirebroker.client.topics.leaders import TopicPartition
    from wirebroker.codecs.records.record import Record

_COMMAND: Final = "command/"
_FOREVER_MS: Final = (1 << 62) - 1


class PendingRow(NamedTuple):
    """A pending record, as operators see it."""

    entry: str
    delivery_id: str | None
    due_ms: int
    target: str
    attempt: int
    key: str | None
    value_bytes: int
    partition: int


async def pending_rows(
    client: KafkaClient, topic: str, *, target: str | None, most: int
) -> tuple[list[PendingRow], int]:
    """Return the pending records that are due next, and the number of all for the target.

    Args:
        client: The cluster.
        topic: The pending topic.
        target: Only records for this topic; None for all.
        most: The most rows.

    Raises:
        ClientError: The topic cannot be read.
    """
    async with _snapshot(client, topic) as partitions:
        return _rows(partitions, target, most)


async def find_pending(
    client: KafkaClient, topic: str, *, delivery_id: str | None = None, entry: str | None = None
) -> PendingRow | None:
    """Return the pending record with an id or an entry's name; None if it is not pending.

    Raises:
        ClientError: The topic cannot be read.
    """
    async with _snapshot(client, topic) as partitions:
        for place, partition in partitions.items():
            store = partition.store
            name = store.name_of(delivery_id) if delivery_id is not None else entry
            stored = None if name is None else store.entry(name)
            if stored is None:
                continue
            decoded = decode_entry(stored.name, stored.value)
            assert isinstance(decoded, PendingEntry), "commands are not stored as entries"
            return _row(decoded, stored.due_ms, place.partition)
    return None


@asynccontextmanager
async def _snapshot(
    client: KafkaClient, topic: str
) -> AsyncGenerator[dict[TopicPartition, PendingPartition]]:
    """Read the committed state of a pending topic into temporary indexes."""
    places = list(await partitions_of(client, [topic]))
    starts = await offsets_at(client, dict.fromkeys(places, EARLIEST))
    ends = await offsets_at(client, dict.fromkeys(places, LATEST), read_committed=True)
    with tempfile.TemporaryDirectory(prefix="wirebroker-pending-") as folder:
        partitions = {
            place: PendingPartition(
                place.partition, PendingStore(Path(folder) / f"{place.partition}.sqlite"), 0
            )
            for place in places
        }
        try:
            await _read(client, partitions, starts, ends)
            yield partitions
        finally:
            for partition in partitions.values():
                partition.store.close()


async def _read(
    client: KafkaClient,
    partitions: dict[TopicPartition, PendingPartition],
    starts: dict[TopicPartition, int],
    ends: dict[TopicPartition, int],
) -> None:
    def take(place: TopicPartition, records: list[Record]) -> bool:
        for record in records:
            partitions[place].apply(record.offset, record.key, record.value)
        return True

    await PartitionsReader(client, starts, take, until=ends, read_committed=True).run()


def _rows(
    partitions: dict[TopicPartition, PendingPartition], target: str | None, most: int
) -> tuple[list[PendingRow], int]:
    rows: list[PendingRow] = []
    total = 0
    for place, partition in partitions.items():
        (count,) = partition.store.due_counts([_FOREVER_MS])
        found = 0
        for row in partition.store.due(_FOREVER_MS, count if target else most):
            entry = decode_entry(row.name, row.value)
            assert isinstance(entry, PendingEntry), "commands are not stored as entries"
            if target not in {None, entry.target}:
                continue
            found += 1
            if found <= most:
                rows.append(_row(entry, row.due_ms, place.partition))
        total += found if target else count
    return sorted(rows, key=lambda row: row.due_ms)[:most], total


def _row(entry: PendingEntry, due_ms: int, partition: int) -> PendingRow:
    return PendingRow(
        entry=entry.name,
        delivery_id=entry.delivery_id,
        due_ms=due_ms,
        target=entry.target,
        attempt=entry.attempt,
        key=None if entry.key is None else entry.key.decode(errors="replace"),
        value_bytes=len(entry.value or b""),
        partition=partition,
    )


async def send_command(
    client: KafkaClient,
    topic: str,
    kind: EntryKind,
    *,
    delivery_id: str | None = None,
    entry: str | None = None,
    partition: int | None = None,
) -> None:
    """Send a command for the pending record with an id, or for an entry.

    `partition` is the entry's in the pending topic; without it, the topic is searched.

    Raises:
        ClientError: The topic does not exist, the entry is not pending, or writing is refused.
    """
    writer = TopicWriter(client, topic, Codec.NONE)
    places = list(await partitions_of(client, [topic]))
    if delivery_id is not None:
        number = partition_for(delivery_id.encode(), len(places))
    elif partition is not None:
        number = partition
    else:
        async with _snapshot(client, topic) as partitions:
            numbers = [
                place.partition
                for place, partition in partitions.items()
                if entry is not None and partition.store.has(entry)
            ]
        if not numbers:
            raise ClientError(f"no entry {entry} is pending in {topic}")
        number = numbers[0]
    await writer.open()
    command = EntryCommand(_COMMAND + uuid.uuid4().hex, kind, delivery_id, entry)
    record: Any = (command.name.encode(), encode_entry(command), ())
    await writer.write([(number, record)])
