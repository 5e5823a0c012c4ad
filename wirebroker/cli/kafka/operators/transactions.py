"""`wirebroker kafka-transactions`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from wirebroker.base.clock import SystemClock
from wirebroker.cli.kafka.plumbing.script import ScriptFlags, run_script, script_flags
from wirebroker.cli.kafka.plumbing.subcommands import ScriptGroup
from wirebroker.cli.kafka.plumbing.tables import tabbed
from wirebroker.cli.plumbing.completed_names import TOPIC_NAME
from wirebroker.client.errors import ClientError
from wirebroker.client.topics.leaders import TopicPartition
from wirebroker.client.transactions.hanging import abort_at, hanging_producers, producer_at
from wirebroker.client.transactions.producer_states import producers_of, write_abort_marker
from wirebroker.client.transactions.transactions import (
    abort_transaction,
    describe_transaction,
    list_transactions,
)
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from typing import Unpack

    from wirebroker.cli.plumbing.output import Output
    from wirebroker.client.kafka_client import KafkaClient

_LIST_TITLES: Final = ("TransactionalId", "Coordinator", "ProducerId", "TransactionState")
_DESCRIBE_TITLES: Final = (
    *("CoordinatorId", "TransactionalId", "ProducerId", "ProducerEpoch", "TransactionState"),
    *("TransactionTimeoutMs", "CurrentTransactionStartTimeMs", "TransactionDurationMs"),
    "TopicPartitions",
)
_PRODUCER_TITLES: Final = (
    *("ProducerId", "ProducerEpoch", "LatestCoordinatorEpoch", "LastSequence", "LastTimestamp"),
    "CurrentTransactionStartOffset",
)
_HANGING_TITLES: Final = (
    *("Topic", "Partition", "ProducerId", "ProducerEpoch", "CoordinatorEpoch", "StartOffset"),
    *("LastTimestamp", "Duration(min)"),
)
_MINUTE_MS: Final = 60_000
_topic = click.option("--topic", required=True, type=TOPIC_NAME, metavar="TOPIC", help="The topic.")
_partition = click.option(
    "--partition", type=int, required=True, metavar="N", help="The partition."
)


@click.group(cls=ScriptGroup)
@script_flags
@click.pass_context
def kafka_transactions(context: click.Context, **flags: Unpack[ScriptFlags]) -> int:
    """Show transactions and end hanging ones, as kafka-transactions.sh."""
    context.obj = flags
    return 0


@kafka_transactions.command("list")
@click.option(
    "--duration-filter", type=int, default=-1, metavar="MS", help="Only those open for longer."
)
@click.option("--transactional-id-pattern", metavar="REGEX", help="Only ids that match.")
@click.pass_obj
def list_(flags: ScriptFlags, *, duration_filter: int, transactional_id_pattern: str | None) -> int:
    """List transactions."""

    async def work(client: KafkaClient, out: Output) -> None:
        transactions = await list_transactions(
            client, longer_than_ms=duration_filter, pattern=transactional_id_pattern
        )
        rows = [
            (
                transaction.transactional_id,
                transaction.coordinator_id,
                transaction.producer_id,
                transaction.state,
            )
            for transaction in transactions
        ]
        _print(out, _LIST_TITLES, rows)

    return _run(flags, work, "Failed to list transactions")


@kafka_transactions.command()
@click.option("--transactional-id", required=True, metavar="ID", help="The transaction.")
@click.pass_obj
def describe(flags: ScriptFlags, *, transactional_id: str) -> int:
    """Describe the transaction of a transactional id."""

    async def work(client: KafkaClient, out: Output) -> None:
        description = await describe_transaction(client, transactional_id)
        started_ms = description.started_ms
        times: tuple[object, ...] = ("None", "None")
        if started_ms is not None:
            times = (started_ms, SystemClock().now_ms() - started_ms)
        row = (
            *(
                description.coordinator_id,
                transactional_id,
                description.producer_id,
                description.producer_epoch,
            ),
            *(description.state, description.timeout_ms, *times, ",".join(description.partitions)),
        )
        _print(out, _DESCRIBE_TITLES, [row])

    failure = f"Failed to describe transaction state of transactional-id `{transactional_id}`"
    return _run(flags, work, failure)


@kafka_transactions.command("describe-producers")
@click.option("--broker-id", type=int, metavar="ID", help="The replica to ask, not the leader.")
@_topic
@_partition
@click.pass_obj
def describe_producers(
    flags: ScriptFlags, *, broker_id: int | None, topic: str, partition: int
) -> int:
    """Describe the active producers of a partition."""
    topic_partition = TopicPartition(topic, partition)

    async def work(client: KafkaClient, out: Output) -> None:
        rows = [
            (
                *(producer.producer_id, producer.producer_epoch, producer.coordinator_epoch),
                *(producer.last_sequence, producer.last_timestamp_ms),
                "None" if producer.start_offset is None else producer.start_offset,
            )
            for producer in await producers_of(client, [topic_partition], broker_id=broker_id)
        ]
        _print(out, _PRODUCER_TITLES, rows)

    replica = "leader" if broker_id is None else f"broker {broker_id}"
    return _run(
        flags, work, f"Failed to describe producers for partition {topic_partition} on {replica}"
    )


@kafka_transactions.command()
@_topic
@_partition
@click.option("--start-offset", type=int, metavar="N", help="Where the transaction begins.")
@click.option("--producer-id", type=int, metavar="ID", help="For brokers before 3.0.")
@click.option("--producer-epoch", type=int, metavar="N", help="For brokers before 3.0.")
@click.option("--coordinator-epoch", type=int, metavar="N", help="For brokers before 3.0.")
@click.pass_obj
def abort(
    flags: ScriptFlags,
    *,
    topic: str,
    partition: int,
    start_offset: int | None,
    producer_id: int | None,
    producer_epoch: int | None,
    coordinator_epoch: int | None,
) -> int:
    """Abort a hanging transaction in a partition."""
    topic_partition = TopicPartition(topic, partition)
    if start_offset is None:
        if producer_id is None:
            raise click.UsageError(
                "give --start-offset, or for brokers before 3.0 --producer-id, --producer-epoch and"
                " --coordinator-epoch"
            )
        if producer_epoch is None or coordinator_epoch is None:
            missing = "producer" if producer_epoch is None else "coordinator"
            raise click.UsageError(f"Missing required argument --{missing}-epoch")

    async def work(client: KafkaClient, out: Output) -> None:
        del out
        if start_offset is not None:
            await abort_at(client, await producer_at(client, topic_partition, start_offset))
            return
        producer = (producer_id or 0, producer_epoch or 0)
        epoch = max(0, coordinator_epoch or 0)
        await write_abort_marker(client, topic_partition, producer, epoch)

    return _run(flags, work, f"Failed to abort the transaction in {topic_partition}")


@kafka_transactions.command("find-hanging")
@click.option("--broker-id", type=int, metavar="ID", help="Search the partitions of this broker.")
@click.option(
    "--max-transaction-timeout",
    type=int,
    default=15,
    metavar="MINUTES",
    help="Only transactions that are open for longer. [default: 15]",
)
@click.option("--topic", type=TOPIC_NAME, metavar="TOPIC", help="Search this topic.")
@click.option("--partition", type=int, metavar="N", help="Search this partition of it.")
@click.pass_obj
def find_hanging(
    flags: ScriptFlags,
    *,
    broker_id: int | None,
    max_transaction_timeout: int,
    topic: str | None,
    partition: int | None,
) -> int:
    """Find open transactions that no coordinator will end."""
    if topic is None and broker_id is None:
        raise click.UsageError("find-hanging needs --topic or --broker-id")
    if partition is not None and topic is None:
        raise click.UsageError("The --partition argument requires --topic to be provided")

    async def work(client: KafkaClient, out: Output) -> None:
        hanging = await hanging_producers(
            client,
            topic=topic,
            partition=partition,
            broker_id=broker_id,
            longer_than_ms=max_transaction_timeout * _MINUTE_MS,
        )
        now_ms = client.clock.now_ms()
        rows = [
            (
                *producer.place,
                *(producer.producer_id, producer.producer_epoch, producer.coordinator_epoch),
                *(producer.start_offset, producer.last_timestamp_ms),
                (now_ms - producer.last_timestamp_ms) // _MINUTE_MS,
            )
            for producer in hanging
        ]
        _print(out, _HANGING_TITLES, rows)

    return _run(flags, work, "Failed to find hanging transactions")


@kafka_transactions.command("forceTerminateTransaction")
@click.option("--transactionalId", "transactional_id", required=True, metavar="ID", help="Its id.")
@click.pass_obj
def force_terminate(flags: ScriptFlags, *, transactional_id: str) -> int:
    """Abort the open transaction of a transactional id, and fence its producer."""

    async def work(client: KafkaClient, out: Output) -> None:
        del out
        try:
            await abort_transaction(client, transactional_id)
        except ClientError as error:
            if error.code != ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                raise

    return _run(flags, work, f"Failed to force terminate transactionalId `{transactional_id}`")


def _print(out: Output, titles: tuple[str, ...], rows: Sequence[tuple[object, ...]]) -> None:
    for line in tabbed(titles, rows):
        out.line(line)


def _run(
    flags: ScriptFlags, work: Callable[[KafkaClient, Output], Awaitable[None]], failure: str
) -> int:
    return run_script(flags, work, failed=lambda reason: f"{failure}: {reason}", to_stderr=True)
