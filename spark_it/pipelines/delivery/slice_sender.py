"""One slice of a batch, sent once: a transaction with its records and its position.

    init_transactions      ends what an earlier attempt left open, and fences that attempt
    position > batch       an earlier attempt was whole: nothing is sent
    records, position, commit

The transactional id is the slice's, `JOB.TOPIC.SLICE`, whichever process sends it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from confluent_kafka import KafkaException, Producer

from wirebroker.pipelines.delivery.positions import NOWHERE, REQUEST_MS, WAIT_S
from wirebroker.pipelines.job.errors import PositionError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wirebroker.pipelines.delivery.positions import Positions
    from wirebroker.pipelines.rows.placed_rows import PlacedRow

# What a broker that dies and comes back takes, with room; then the batch is done again.
_DELIVERY_MS: Final = 120_000
_TRANSACTION_MS: Final = 300_000
_POLLED_EVERY: Final = 1_000


class SliceWish(NamedTuple):
    """What is the same for each slice of a batch.

    Attributes:
        kafka: Settings of clients.
        job: The job's name.
        topic: Where its positions are: the topic that most records go to.
        identity: The checkpoint's.
        batch: The batch's number.
    """

    kafka: dict[str, str]
    job: str
    topic: str
    identity: str
    batch: int


class SliceSent(NamedTuple):
    """What became of a slice.

    Attributes:
        slice: Its number.
        records: Sent now, without dead letters.
        dead_letters: Sent now.
        sent_bytes: Keys and values of both.
        was_sent: Whether an earlier attempt had sent it.
        damaged_files: How many of the dead letters are for damaged files.
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
    wish: SliceWish, number: int, rows: Iterable[PlacedRow], positions: Positions
) -> SliceSent:
    """Send a slice, if it has not been sent, as the job's positions tell.

    Raises:
        PositionError: The slice has no position, or another checkpoint's.
        KafkaException: The broker; nothing of the slice is there, or all of it: ask again.
    """
    producer = end_open_transaction(wish, number)
    position = positions.read([number])[number]
    if position > wish.batch:
        return SliceSent(number, 0, 0, 0, was_sent=True)
    if position == NOWHERE:
        raise lost_position(wish.job, wish.topic, number)
    producer.begin_transaction()
    try:
        sent = _produce(producer, number, rows)
        offsets = positions.offsets({number: wish.batch + 1})
        producer.send_offsets_to_transaction(offsets, positions.group(), WAIT_S)
        producer.commit_transaction(_DELIVERY_MS / 1000)
    except KafkaException as error:
        _abort(producer, error)
        raise
    return sent


def end_open_transaction(wish: SliceWish, number: int) -> Producer:
    """Return a slice's producer; fence an earlier attempt and abort its open transaction.

    Raises:
        KafkaException: The broker.
    """
    producer = Producer(
        {
            "transaction.timeout.ms": _TRANSACTION_MS,
            "message.timeout.ms": _DELIVERY_MS,
            "socket.timeout.ms": REQUEST_MS,
            "linger.ms": 20,
            **wish.kafka,
            "transactional.id": f"{wish.job}.{wish.topic}.{number}",
        }
    )
    producer.init_transactions(WAIT_S)
    return producer


def lost_position(job: str, topic: str, number: int) -> PositionError:
    """Return the error of a slice without a position, in a batch that was begun."""
    return PositionError(
        f"group {job} has no position for slice {number} of {topic}, and part of the batch may "
        f"have been sent: the group was deleted, or its offsets expired while the job was broken "
        f"off (offsets.retention.minutes). See what {topic} has, then go on with a new name and "
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
    more: dict[str, Any] = {} if row.timestamp is None else {"timestamp": row.timestamp}
    headers = [(each["key"], each["value"]) for each in row.headers or ()]
    while True:
        try:
            producer.produce(
                row.topic, row.value, row.key, partition=row.partition, headers=headers, **more
            )
        except BufferError:
            # The queue is full: wait until the broker has taken some.
            producer.poll(0.5)
        else:
            return


def _abort(producer: Producer, error: KafkaException) -> None:
    """Take back what was sent, where the transaction allows it; else its next owner does."""
    if error.args[0].fatal():
        return
    try:
        producer.abort_transaction(WAIT_S)
    except KafkaException:
        # init_transactions of the next attempt ends it, or the broker by transaction.timeout.ms.
        return
