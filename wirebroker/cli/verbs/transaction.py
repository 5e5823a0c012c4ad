"""`wirebroker transaction …`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from wirebroker.base.clock import SystemClock
from wirebroker.cli.plumbing.flags import dry_run_hint, yes_flag
from wirebroker.cli.plumbing.output import tell
from wirebroker.cli.plumbing.running import ClusterFlags, cluster_flags, run_verb
from wirebroker.client.transactions.transactions import (
    abort_transaction,
    describe_transaction,
    list_transactions,
)

if TYPE_CHECKING:
    from typing import Unpack

    from wirebroker.cli.plumbing.output import Output
    from wirebroker.client.kafka_client import KafkaClient


@click.group()
def transaction() -> None:
    """Show the state of transactional producers, and abort hanging transactions.

    A transaction that stays open blocks read_committed consumers.
    """


@transaction.command("list")
@click.option(
    "--state",
    "states",
    multiple=True,
    metavar="STATE",
    help="Limit to this state, such as Ongoing (repeatable).",
)
@cluster_flags
def list_(*, states: tuple[str, ...], **flags: Unpack[ClusterFlags]) -> int:
    """List transactional ids with their states."""

    async def work(client: KafkaClient, out: Output) -> None:
        rows = [
            {
                "transactional_id": transaction.transactional_id,
                "state": transaction.state,
                "producer_id": transaction.producer_id,
                "coordinator": transaction.coordinator_id,
            }
            for transaction in await list_transactions(client, states=states)
        ]
        columns = ("transactional_id", "state", "producer_id", "coordinator")
        out.show(rows, out.table(rows, columns))

    return run_verb(flags, work)


@transaction.command()
@click.argument("transactional_id", metavar="ID")
@cluster_flags
def describe(*, transactional_id: str, **flags: Unpack[ClusterFlags]) -> int:
    """Show a transaction: its producer, how long it has been open, and its partitions."""

    async def work(client: KafkaClient, out: Output) -> None:
        description = await describe_transaction(client, transactional_id)
        open_ms = description.open_ms(SystemClock().now_ms())
        data = {**description._asdict(), "open_ms": open_ms}
        head = f"{out.title(description.transactional_id)} {description.state}"
        producer = f"producer {description.producer_id}, epoch {description.producer_epoch}"
        lines = [
            f"{head}, {producer}, coordinator {description.coordinator_id}",
            f"timeout {description.timeout_ms / 1000:g} s"
            + ("" if open_ms is None else f", open for {open_ms / 1000:.1f} s"),
        ]
        out.show(data, [*lines, *(f"  {partition}" for partition in description.partitions)])

    return run_verb(flags, work)


@transaction.command()
@click.argument("transactional_id", metavar="ID")
@yes_flag
@cluster_flags
def abort(*, transactional_id: str, yes: bool, **flags: Unpack[ClusterFlags]) -> int:
    """Abort an open transaction and fence its producer; without --yes only check it."""

    async def work(client: KafkaClient, out: Output) -> None:
        if not yes:
            await describe_transaction(client, transactional_id)
            tell(dry_run_hint(f"aborts the transaction of {transactional_id}"))
            return
        await abort_transaction(client, transactional_id)
        out.show({"transactional_id": transactional_id}, [f"{transactional_id} is aborted"])

    return run_verb(flags, work)
