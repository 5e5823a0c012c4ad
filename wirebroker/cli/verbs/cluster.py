"""`wirebroker cluster`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from wirebroker.base.text import counted
from wirebroker.cli.plumbing.flags import dry_run_hint, yes_flag
from wirebroker.cli.plumbing.output import tell
from wirebroker.cli.plumbing.running import (
    ClusterFlags,
    cluster_flags,
    cluster_or_controller_flags,
    run_verb,
    use_in_subcommand,
)
from wirebroker.client.checks.dry_runs import (
    check_broker_unregistration,
    check_controller_unregistration,
)
from wirebroker.client.cluster.brokers import (
    log_dirs_of,
    responding_brokers,
    unregister_broker,
    unregister_controller,
)
from wirebroker.client.cluster.quorum import controller_of
from wirebroker.client.cluster.voter_states import SILENT_STEP, advice_of, summary_of, voters_of
from wirebroker.client.cluster_nodes import CONTROLLERS, describe_cluster

if TYPE_CHECKING:
    from typing import Unpack

    from wirebroker.cli.plumbing.output import Output
    from wirebroker.client.cluster.quorum import ActiveNode
    from wirebroker.client.kafka_client import KafkaClient

_OUTDATED: Final = (
    "the state below is the last one received from the controller; it may list brokers that have"
    " died since"
)


@click.group(invoke_without_command=True)
@click.pass_context
@cluster_or_controller_flags
def cluster(context: click.Context, **flags: Unpack[ClusterFlags]) -> int:
    """Show a cluster and its brokers."""
    if context.invoked_subcommand is None:
        return _show(flags)
    use_in_subcommand(context, flags)
    return 0


@cluster.command()
@cluster_or_controller_flags
def info(**flags: Unpack[ClusterFlags]) -> int:
    """Show the cluster and its brokers, as `wirebroker cluster` does."""
    return _show(flags)


@cluster.command("log-dirs")
@click.option(
    "--broker",
    "brokers",
    type=int,
    multiple=True,
    metavar="ID",
    help="Limit to this broker (repeatable).",
)
@cluster_flags
def log_dirs(*, brokers: tuple[int, ...], **flags: Unpack[ClusterFlags]) -> int:
    """Show the data directories of brokers and their usage."""

    async def work(client: KafkaClient, out: Output) -> None:
        rows = [directory._asdict() for directory in await log_dirs_of(client, brokers)]
        columns = (
            *("broker_id", "path", "error", "replica_count"),
            *("size_bytes", "usable_bytes", "total_bytes"),
        )
        out.show(rows, out.table(rows, columns))

    return run_verb(flags, work)


@cluster.command()
@click.argument("broker_id", type=int, metavar="ID")
@yes_flag
@cluster_flags
def unregister(*, broker_id: int, yes: bool, **flags: Unpack[ClusterFlags]) -> int:
    """Unregister a permanently stopped broker; without --yes only show the change.

    Its replicas are not moved: do that first (`wirebroker reassign`).
    """

    async def work(client: KafkaClient, out: Output) -> None:
        if not yes:
            await check_broker_unregistration(client, broker_id)
            tell(dry_run_hint(f"unregisters broker {broker_id}"))
            return
        await unregister_broker(client, broker_id)
        out.show({"broker_id": broker_id}, [f"broker {broker_id} is no longer registered"])

    return run_verb(flags, work)


@cluster.command(name="unregister-controller")
@click.argument("controller_id", type=int, metavar="ID")
@yes_flag
@cluster_flags
def unregister_controller_(*, controller_id: int, yes: bool, **flags: Unpack[ClusterFlags]) -> int:
    """Unregister a permanently stopped controller; without --yes only show the change.

    If it is a voter, remove it from the quorum first (`wirebroker quorum remove-voter`).
    """

    async def work(client: KafkaClient, out: Output) -> None:
        if not yes:
            await check_controller_unregistration(client, controller_id)
            tell(dry_run_hint(f"unregisters controller {controller_id}"))
            return
        await unregister_controller(client, controller_id)
        lines = [f"controller {controller_id} is no longer registered"]
        out.show({"controller_id": controller_id}, lines)

    return run_verb(flags, work)


def _show(flags: ClusterFlags) -> int:
    async def work(client: KafkaClient, out: Output) -> None:
        if client.uses_controllers:
            await _show_controllers(client, out)
            return
        metadata = await client.metadata()
        controller = await controller_of(client, metadata.controller_id)
        rows = [
            {
                "broker": broker.node_id,
                "host": broker.host,
                "port": broker.port,
                "rack": broker.rack,
            }
            for broker in sorted(metadata.brokers, key=lambda broker: broker.node_id)
        ]
        columns = ["broker", "host", "port", "rack"]
        if controller.is_silent:
            # Dead brokers may still be listed: only a controller removes them.
            answers = await responding_brokers(client, [row["broker"] for row in rows])
            rows = [{**row, "answers": answers[row["broker"]]} for row in rows]
            columns.append("answers")
        summary = _summary_of(metadata, controller, rows)
        lines = [
            f"{out.title('cluster')} {metadata.cluster_id}, {_named(controller)}",
            f"{counted(summary['topic_count'], 'topic')},"
            f" {counted(summary['partition_count'], 'partition')}:"
            f" {summary['leaderless_count']} without a leader,"
            f" {summary['under_replicated_count']} under-replicated",
        ]
        if controller.is_silent:
            lines += [f"next: {SILENT_STEP}", _OUTDATED]
        elif controller.quorum is not None:
            lines += [f"next: {step}" for step in advice_of(controller.quorum)]
        out.show(summary, [*lines, *out.table(rows, columns)])

    return run_verb(flags, work)


async def _show_controllers(client: KafkaClient, out: Output) -> None:
    described = await describe_cluster(client, endpoint_type=CONTROLLERS)
    controller = await controller_of(client, described.controller_id)
    rows = [
        {"controller": node.broker_id, "host": node.host, "port": node.port}
        for node in described.brokers
    ]
    lines = [f"{out.title('cluster')} {described.cluster_id}, {_named(controller)}"]
    if controller.is_silent:
        lines.append(f"next: {SILENT_STEP}")
    elif controller.quorum is not None:
        lines += [f"next: {step}" for step in advice_of(controller.quorum)]
    summary = {
        "cluster_id": described.cluster_id,
        **_state_of(controller),
        "controllers": rows,
    }
    out.show(summary, [*lines, *out.table(rows, ("controller", "host", "port"))])


def _named(controller: ActiveNode) -> str:
    if controller.quorum is not None and voters_of(controller.quorum).total > 1:
        return f"controller {controller.node_id}, {summary_of(controller.quorum)}"
    if controller.problem is None:
        return f"controller {controller.node_id}"
    summary = "no controller responds" if controller.is_silent else "its controller is not known"
    return f"{summary}: {controller.problem}"


def _summary_of(
    metadata: Any, controller: ActiveNode, rows: list[dict[str, Any]]
) -> dict[str, Any]:
    partitions = [part for topic in metadata.topics for part in topic.partitions]
    return {
        "cluster_id": metadata.cluster_id,
        **_state_of(controller),
        "brokers": rows,
        "topic_count": len(metadata.topics),
        "partition_count": len(partitions),
        "leaderless_count": sum(partition.leader_id < 0 for partition in partitions),
        "under_replicated_count": sum(
            len(partition.isr_nodes) < len(partition.replica_nodes) for partition in partitions
        ),
    }


def _state_of(controller: ActiveNode) -> dict[str, Any]:
    voters = None if controller.quorum is None else voters_of(controller.quorum)
    return {
        "controller_id": controller.node_id,
        "controller_problem": controller.problem,
        "voters": [] if voters is None else voters.ids,
        "missing_voters": [] if voters is None else voters.missing_ids,
    }
