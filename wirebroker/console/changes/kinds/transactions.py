"""Transactions that are aborted, and producers that are fenced."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.base.text import counted
from wirebroker.client.topics.leaders import TopicPartition, offsets_at
from wirebroker.client.transactions.hanging import abort_at, hanging_producers, producer_at
from wirebroker.client.transactions.producer_states import producers_of
from wirebroker.client.transactions.transactions import abort_transaction, describe_transaction
from wirebroker.codecs.special_offsets import LATEST
from wirebroker.console.changes.change import (
    ChangeError,
    ChangeKind,
    ConsoleRole,
    Field,
    FieldKind,
    PreparedChange,
)
from wirebroker.console.changes.command_line import kafka_line, verb_line
from wirebroker.console.changes.numbers import required_number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from wirebroker.client.kafka_client import KafkaClient
    from wirebroker.client.transactions.transactions import DescribedTransaction
    from wirebroker.console.model.collector import Collector

# Partitions whose records a plan counts.
_MOST_PARTITIONS: Final = 50
_MOST_PARTITION: Final = (1 << 31) - 1
_MOST_OFFSET: Final = (1 << 63) - 1
# Also for records with timestamps in the future.
_ANY_AGE_MS: Final = -(1 << 62)
_OFFSETS_TOPIC: Final = "__consumer_offsets"
_ID: Final = Field("transactional_id", "Transactional id")


def _place(text: str) -> TopicPartition:
    topic, _, partition = text.rpartition("-")
    return TopicPartition(topic, int(partition))


async def _lost(
    client: KafkaClient, transaction: DescribedTransaction
) -> tuple[list[str], list[str]]:
    """Return what an abort discards: where its records begin, and at most how many there are."""
    places = [_place(text) for text in transaction.partitions[:_MOST_PARTITIONS]]
    starts = {
        producer.place: producer.start_offset
        for producer in await producers_of(client, places)
        if producer.producer_id == transaction.producer_id and producer.start_offset is not None
    }
    ends = await offsets_at(client, dict.fromkeys(starts, LATEST))
    lines = [
        "offsets that it committed are discarded"
        if place.topic == _OFFSETS_TOPIC
        else f"{place}: its records from offset {start} on are discarded"
        for place, start in sorted(starts.items())
    ]
    if len(transaction.partitions) > _MOST_PARTITIONS:
        more = counted(len(transaction.partitions) - _MOST_PARTITIONS, "partition")
        lines.append(f"its records in {more} more are discarded")
    notes = [
        f"{place}: at most {counted(ends[place] - start, 'record')} now"
        for place, start in sorted(starts.items())
        if place.topic != _OFFSETS_TOPIC
    ]
    return list(dict.fromkeys(lines)), notes


def _fenced(transaction: DescribedTransaction) -> str:
    return (
        f"producer {transaction.producer_id} with epoch {transaction.producer_epoch} is fenced:"
        " its client gets an error and must be restarted"
    )


async def _abort(collector: Collector, values: Mapping[str, str]) -> PreparedChange:
    name = values["transactional_id"]
    transaction = await describe_transaction(collector.client, name)
    if not transaction.is_open:
        raise ChangeError(f"{name} has no open transaction: it is {transaction.state}")
    lines, notes = await _lost(collector.client, transaction)

    async def apply() -> str:
        await abort_transaction(collector.client, name)
        return f"the transaction of {name} is aborted"

    return PreparedChange(
        f"Abort the open transaction of {name}",
        (*lines, _fenced(transaction)),
        verb_line(collector.settings, "transaction abort", ("--yes",), [name]),
        apply,
        ("consumers with isolation.level=read_committed never see the discarded records",),
        notes=tuple(notes),
    )


async def _fence(collector: Collector, values: Mapping[str, str]) -> PreparedChange:
    name = values["transactional_id"]
    transaction = await describe_transaction(collector.client, name)
    lines: Sequence[str] = ()
    notes: Sequence[str] = ()
    if transaction.is_open:
        lines, notes = await _lost(collector.client, transaction)

    async def apply() -> str:
        await abort_transaction(collector.client, name)
        return f"the producer of {name} is fenced"

    flags = ("forceTerminateTransaction", "--transactionalId", name)
    return PreparedChange(
        f"Terminate the producer of {name}",
        (*lines, _fenced(transaction)),
        kafka_line(collector.settings, "kafka-transactions", flags),
        apply,
        ("its open transaction is aborted",) if transaction.is_open else (),
        notes=tuple(notes),
    )


async def _abort_hanging(collector: Collector, values: Mapping[str, str]) -> PreparedChange:
    client = collector.client
    place = TopicPartition(
        values["topic"], required_number(values, "partition", 0, _MOST_PARTITION)
    )
    start_offset = required_number(values, "start_offset", 0, _MOST_OFFSET)
    producer = await producer_at(client, place, start_offset)
    hanging = await hanging_producers(
        client, topic=place.topic, partition=place.partition, longer_than_ms=_ANY_AGE_MS
    )
    if producer.producer_id not in {row.producer_id for row in hanging}:
        raise ChangeError(
            f"the transaction at offset {start_offset} of {place} does not hang: its coordinator"
            " has it, and aborts it after its timeout. Abort it by its transactional id"
        )

    async def apply() -> str:
        current = await producer_at(client, place, start_offset)
        await abort_at(client, current)
        return f"the transaction at offset {start_offset} of {place} is aborted"

    (end,) = (await offsets_at(client, {place: LATEST})).values()
    flags = ("--topic", place.topic, "--partition", str(place.partition))
    return PreparedChange(
        f"Abort the hanging transaction at offset {start_offset} of {place}",
        (
            f"records of producer {producer.producer_id} with epoch {producer.producer_epoch} from"
            f" offset {start_offset} on are discarded",
            "consumers with isolation.level=read_committed continue",
        ),
        kafka_line(
            collector.settings,
            "kafka-transactions",
            ("abort", *flags, "--start-offset", str(start_offset)),
        ),
        apply,
        ("consumers with isolation.level=read_committed never see the discarded records",),
        notes=(f"at most {counted(end - start_offset, 'record')} now",),
    )


KINDS: Final[tuple[ChangeKind, ...]] = (
    ChangeKind(
        "abort-transaction",
        "Abort a transaction",
        ConsoleRole.ADMIN,
        (_ID,),
        "transactional_id",
        _abort,
        "transactions",
    ),
    ChangeKind(
        "terminate-transaction",
        "Terminate a transactional producer",
        ConsoleRole.ADMIN,
        (_ID,),
        "transactional_id",
        _fence,
        "transactions",
    ),
    ChangeKind(
        "abort-hanging-transaction",
        "Abort a hanging transaction",
        ConsoleRole.ADMIN,
        (
            Field("topic", "Topic"),
            Field("partition", "Partition", FieldKind.NUMBER),
            Field(
                "start_offset",
                "Start offset",
                FieldKind.NUMBER,
                help="Where the transaction begins, from the list of hanging transactions.",
            ),
        ),
        "topic",
        _abort_hanging,
        "transactions",
    ),
)
