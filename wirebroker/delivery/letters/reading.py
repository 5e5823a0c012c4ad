"""Dead-letter topics read with a client of the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wirebroker.client.errors import ClientError
from wirebroker.client.groups.groups import committed_rows
from wirebroker.client.records.consuming import PartitionsReader
from wirebroker.client.topics.leaders import (
    TopicPartition,
    delete_records,
    offsets_at,
    partitions_of,
)
from wirebroker.client.topics.topics import list_topics
from wirebroker.codecs.special_offsets import EARLIEST, LATEST
from wirebroker.delivery.letters.letter import LetterRecord
from wirebroker.delivery.letters.progress import RedriveProgress
from wirebroker.delivery.letters.redrive_group import redrive_group
from wirebroker.delivery.model.rules import DEAD_LETTERS

if TYPE_CHECKING:
    from wirebroker.client.kafka_client import KafkaClient
    from wirebroker.codecs.records.record import Record
    from wirebroker.delivery.letters.letter import LetterFilter

# The default of errors.deadletterqueue.topic.name.prefix.
_OF_SHARE_GROUPS: Final = "dlq."


def is_dead_letter_topic(name: str) -> bool:
    """Return whether a topic is named like one of dead letters."""
    return name.endswith(DEAD_LETTERS) or name.startswith(_OF_SHARE_GROUPS)


async def list_dead_letter_topics(client: KafkaClient) -> list[dict[str, Any]]:
    """Return the topics whose names are those of dead letters, with the number of records.

    Raises:
        ClientError: They cannot be listed.
    """
    names = [name for name in await list_topics(client) if is_dead_letter_topic(name)]
    rows: list[dict[str, Any]] = []
    for name in sorted(names):
        starts, ends = await _range(client, name)
        count = sum(ends[place] - starts[place] for place in ends)
        rows.append({"topic": name, "partitions": len(ends), "records": count})
    return rows


async def read_letters(
    client: KafkaClient,
    topic: str,
    wanted: LetterFilter,
    most: int,
    *,
    skips_redriven: bool = False,
) -> list[LetterRecord]:
    """Return up to `most` committed dead letters that match, in each partition the oldest first.

    With `skips_redriven`, those that a redrive has sent do not count.

    Raises:
        ClientError: The topic cannot be read.
    """
    starts, ends = await _range(client, topic)
    progress: dict[TopicPartition, RedriveProgress] = {}
    if skips_redriven:
        progress = await _progress(client, topic, starts, ends)
    if wanted.since_ms is not None:
        starts = await offsets_at(client, dict.fromkeys(starts, wanted.since_ms))
    found: list[LetterRecord] = []

    def take(place: TopicPartition, records: list[Record]) -> bool:
        done = progress.get(place)
        found.extend(
            letter
            for letter in (_letter(place, record) for record in records)
            if wanted.matches(letter) and not (done is not None and done.contains(letter.offset))
        )
        return len(found) < most

    await PartitionsReader(client, starts, take, until=ends, read_committed=True).run()
    return sorted(found[:most], key=lambda letter: (letter.partition, letter.offset))


async def _progress(
    client: KafkaClient,
    topic: str,
    starts: dict[TopicPartition, int],
    ends: dict[TopicPartition, int],
) -> dict[TopicPartition, RedriveProgress]:
    """Return the progress of the redrives of a topic."""
    group = redrive_group(topic)
    progress: dict[TopicPartition, RedriveProgress] = {}
    for place, row in (await committed_rows(client, group)).items():
        if place not in starts:
            continue
        # confluent-kafka appends a zero byte.
        metadata = (row.metadata or "").rstrip("\0")
        told = (row.committed_offset, metadata, starts[place], ends[place])
        try:
            progress[place] = RedriveProgress.within(*told)
        except ValueError as error:
            raise ClientError(f"the offsets of group {group} cannot be read: {error}") from None
    return progress


def _letter(place: TopicPartition, record: Record) -> LetterRecord:
    return LetterRecord(
        place.partition,
        record.offset,
        record.timestamp,
        record.key,
        record.value,
        record.headers,
    )


async def purge_limits(
    client: KafkaClient, topic: str, before_ms: int | None
) -> dict[TopicPartition, tuple[int, int]]:
    """Return for each partition the first offset, and the one before which it would be deleted.

    Raises:
        ClientError: The topic cannot be read, or a record in the range is not a dead letter.
    """
    starts, committed = await _range(client, topic)
    ends = committed
    if before_ms is not None:
        ends = await offsets_at(client, dict.fromkeys(committed, before_ms))
    # Records of open transactions cannot be checked, so they stay.
    ends = {place: max(starts[place], min(end, committed[place])) for place, end in ends.items()}
    await _check_letters(client, starts, ends)
    return {place: (starts[place], end) for place, end in ends.items()}


async def _check_letters(
    client: KafkaClient, starts: dict[TopicPartition, int], ends: dict[TopicPartition, int]
) -> None:
    others: list[str] = []

    def take(place: TopicPartition, records: list[Record]) -> bool:
        letters = (_letter(place, record) for record in records)
        others.extend(
            f"record {letter.offset} of {place} is not a dead letter"
            for letter in letters
            if not letter.is_letter
        )
        return not others

    await PartitionsReader(client, starts, take, until=ends, read_committed=True).run()
    if others:
        raise ClientError(
            f"{others[0]}: it has no headers __dlq.errors.*, nor those of a pipeline. To delete"
            " ordinary records, use `wirebroker topic trim`"
        )


async def purge(client: KafkaClient, limits: dict[TopicPartition, tuple[int, int]]) -> None:
    """Delete dead letters before offsets.

    Raises:
        ClientError: The cluster refuses it.
    """
    await delete_records(
        client, {place: end for place, (start, end) in limits.items() if end > start}
    )


async def _range(
    client: KafkaClient, topic: str
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
    places = list(await partitions_of(client, [topic]))
    starts = await offsets_at(client, dict.fromkeys(places, EARLIEST))
    ends = await offsets_at(client, dict.fromkeys(places, LATEST), read_committed=True)
    return starts, {place: max(end, starts[place]) for place, end in ends.items()}
