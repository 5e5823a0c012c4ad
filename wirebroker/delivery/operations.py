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
from wirebroker.client.topics.leaders import TopicPartition, offsets_at, partitions_of
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
    from wirebroker.codecs.records.record import Record
    from wirebroker.delivery.pending.store import StoredEntry

_COMMAND: Final = "command/"
_FOREVER_MS: Final = (1 << 62) - 1
# A larger partition is not searched for an id: a command for it is sent in any case.
MOST_SEARCHED_RECORDS: Final = 100_000
MOST_SEARCHED_BYTES: Final = 256 << 20


class _TooLargeError(Exception):
    """The records are more than may be read."""


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
        found = _find(partitions, delivery_id, entry)
        if found is None:
            return None
        number, stored = found
        decoded = decode_entry(stored.name, stored.value)
        assert isinstance(decoded, PendingEntry), "commands are not stored as entries"
        return _row(decoded, stored.due_ms, number)


def _find(
    partitions: dict[TopicPartition, PendingPartition], delivery_id: str | None, entry: str | None
) -> tuple[int, StoredEntry] | None:
    """Return the partition and the row of a record with an id or an entry's name, or None."""
    for place, partition in partitions.items():
        store = partition.store
        name = store.name_of(delivery_id) if delivery_id is not None else entry
        stored = None if name is None else store.entry(name)
        if stored is not None:
            return place.partition, stored
    return None


@asynccontextmanager
async def _snapshot(
    client: KafkaClient, topic: str, number: int | None = None
) -> AsyncGenerator[dict[TopicPartition, PendingPartition]]:
    """Read the committed state of a pending topic into temporary indexes.

    With `number`, read one partition, within bounds.

    Raises:
        _TooLargeError: The partition is larger.
    """
    places = [
        place for place in await partitions_of(client, [topic]) if number in {None, place.partition}
    ]
    starts = await offsets_at(client, dict.fromkeys(places, EARLIEST))
    ends = await offsets_at(client, dict.fromkeys(places, LATEST), read_committed=True)
    most_bytes = None
    if number is not None:
        most_bytes = MOST_SEARCHED_BYTES
        if sum(ends[place] - starts[place] for place in places) > MOST_SEARCHED_RECORDS:
            raise _TooLargeError
    with tempfile.TemporaryDirectory(prefix="wirebroker-pending-") as folder:
        partitions = {
            place: PendingPartition(
                place.partition, PendingStore(Path(folder) / f"{place.partition}.sqlite"), 0
            )
            for place in places
        }
        try:
            await _read(client, partitions, starts, ends, most_bytes)
            yield partitions
        finally:
            for partition in partitions.values():
                partition.store.close()


async def _read(
    client: KafkaClient,
    partitions: dict[TopicPartition, PendingPartition],
    starts: dict[TopicPartition, int],
    ends: dict[TopicPartition, int],
    most_bytes: int | None,
) -> None:
    size = 0

    def take(place: TopicPartition, records: list[Record]) -> bool:
        nonlocal size
        for record in records:
            size += len(record.key or b"") + len(record.value or b"")
            if most_bytes is not None and size > most_bytes:
                return False
            partitions[place].apply(record.offset, record.key, record.value)
        return True

    await PartitionsReader(client, starts, take, until=ends, read_committed=True).run()
    if most_bytes is not None and size > most_bytes:
        raise _TooLargeError


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


class CommandTarget(NamedTuple):
    """The partition of the pending topic that has a record, and whether it is known to be there."""

    partition: int
    is_pending: bool


async def find_target(
    client: KafkaClient, topic: str, *, delivery_id: str | None = None, entry: str | None = None
) -> CommandTarget:
    """Return where the pending record with an id, or an entry, is.

    A large partition is not searched for an id.

    Raises:
        ClientError: The topic cannot be read, or no such record is pending.
    """
    number = None if delivery_id is None else await _partition_of(client, topic, delivery_id)
    try:
        async with _snapshot(client, topic, number) as partitions:
            found = _find(partitions, delivery_id, entry)
    except _TooLargeError:
        assert number is not None, "the whole topic is read without a bound"
        return CommandTarget(number, is_pending=False)
    if found is not None:
        return CommandTarget(found[0], is_pending=True)
    if delivery_id is None:
        raise ClientError(f"no entry {entry} is pending in {topic}")
    raise ClientError(
        f"nothing with the id {delivery_id} is pending in {topic}; the service may not have read"
        " the record yet"
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

    `partition` is the record's in the pending topic. Without it, the topic is searched for an
    entry; a command for an id is sent in any case.

    Raises:
        ClientError: The topic does not exist, the entry is not pending, or writing is refused.
    """
    if partition is None and delivery_id is not None:
        partition = await _partition_of(client, topic, delivery_id)
    elif partition is None:
        partition = (await find_target(client, topic, entry=entry)).partition
    writer = TopicWriter(client, topic, Codec.NONE)
    await writer.open()
    command = EntryCommand(_COMMAND + uuid.uuid4().hex, kind, delivery_id, entry)
    record: Any = (command.name.encode(), encode_entry(command), ())
    await writer.write([(partition, record)])


async def _partition_of(client: KafkaClient, topic: str, delivery_id: str) -> int:
    return partition_for(delivery_id.encode(), len(await partitions_of(client, [topic])))
