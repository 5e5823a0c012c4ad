"""Exactly-once sending of a slice: one transaction with its records and its position."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from confluent_kafka import KafkaException, Producer

from wirebroker.pipelines.delivery.positions import NOWHERE, REQUEST_MS, WAIT_S
from wirebroker.pipelines.job.errors import PositionError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wirebroker.pipelines.delivery.positions import Positions
    from wirebroker.pipelines.rows.placed_rows import PlacedRow

# Enough for a broker's restart; later the batch is repeated.
_DELIVERY_MS: Final = 120_000
_TRANSACTION_MS: Final = 300_000
_POLLED_EVERY: Final = 1_000


class SliceOptions(NamedTuple):
    """Parameters that the slices of a batch share."""

    kafka: dict[str, str]
    job: str
    topic: str
    identity: str
    batch: int


class SliceSent(NamedTuple):
    """The result of sending a slice.

    `records` excludes dead letters; `sent_bytes` are keys and values of both. `was_sent` shows that
    an earlier attempt sent the slice.
    """

    slice: int
    records: int
    dead_letters: int
    sent_bytes: int
    was_sent: bool
    damaged_files: int = 0


SENT_COLUMNS: Final = (
    "slice LONG, records LONG, dead_letters LONG, sent_bytes LONG, was_sent BOOLEAN,"
    " damaged_files LONG"
)


def send_slice(
    settings: SliceOptions, number: int, rows: Iterable[PlacedRow], positions: Positions
) -> SliceSent:
    """Send a slice unless its position shows that it was sent.

    Raises:
        PositionError: The slice has no position, or one of another checkpoint.
        KafkaException: A request failed; all or nothing is sent, so retry.
    """
    producer = end_open_transaction(settings, number)
    position = positions.read([number])[number]
    if position > settings.batch:
        return SliceSent(number, 0, 0, 0, was_sent=True)
    if position == NOWHERE:
        raise lost_position(settings.job, settings.topic, number)
    producer.begin_transaction()
    try:
        sent = _produce(producer, number, rows)
        offsets = positions.offsets({number: settings.batch + 1})
        producer.send_offsets_to_transaction(offsets, positions.group(), WAIT_S)
        producer.commit_transaction(_DELIVERY_MS / 1000)
    except KafkaException as error:
        _abort(producer, error)
        raise
    return sent


def end_open_transaction(settings: SliceOptions, number: int) -> Producer:
    """Return a slice's producer, which has ended an earlier attempt's transaction."""
    producer = Producer(
        {
            "transaction.timeout.ms": _TRANSACTION_MS,
            "message.timeout.ms": _DELIVERY_MS,
            "socket.timeout.ms": REQUEST_MS,
            "linger.ms": 20,
            **settings.kafka,
            "transactional.id": f"{settings.job}.{settings.topic}.{number}",
        }
    )
    producer.init_transactions(WAIT_S)
    return producer


def lost_position(job: str, topic: str, number: int) -> PositionError:
    """Return the error for a slice without a position in a begun batch."""
    return PositionError(
        f"group {job} has no position for slice {number} of {topic}, and part of the batch may "
        f"have been sent: the group was deleted, or its offsets expired while the job was "
        f"stopped (offsets.retention.minutes). Check {topic}, then continue with a new name and "
        f"checkpoint"
    )


def _produce(producer: Producer, number: int, rows: Iterable[PlacedRow]) -> SliceSent:
    records = dead_letters = sent_bytes = damaged = 0
    for count, row in enumerate(rows, 1):
        _produce_one(producer, row)
        if not count % _POLLED_EVERY:
            producer.poll(0)
        dead_letters += row.is_dead
        records += not row.is_dead
        damaged += row.is_damage
        sent_bytes += len(row.key or b"") + len(row.value or b"")
    return SliceSent(
        number, records, dead_letters, sent_bytes, was_sent=False, damaged_files=damaged
    )


def _produce_one(producer: Producer, row: PlacedRow) -> None:
    timestamp_argument: dict[str, Any] = (
        {} if row.timestamp is None else {"timestamp": row.timestamp}
    )
    headers = [(header["key"], header["value"]) for header in row.headers or ()]
    while True:
        try:
            producer.produce(
                row.topic,
                row.value,
                row.key,
                partition=row.partition,
                headers=headers,
                **timestamp_argument,
            )
        except BufferError:
            # The queue is full.
            producer.poll(0.5)
        else:
            return


def _abort(producer: Producer, error: KafkaException) -> None:
    if error.args[0].fatal():
        return
    try:
        producer.abort_transaction(WAIT_S)
    except KafkaException:
        # init_transactions aborts it later, or the broker after transaction.timeout.ms.
        return
