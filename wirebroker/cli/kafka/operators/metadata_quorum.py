"""`wirebroker kafka-metadata-quorum`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from wirebroker.base.clock import SystemClock
from wirebroker.cli.kafka.plumbing.connection import ConnectionFlags, connection_flags, run_tool
from wirebroker.cli.kafka.plumbing.properties import properties_in
from wirebroker.cli.kafka.plumbing.subcommands import ScriptGroup
from wirebroker.cli.kafka.plumbing.tables import tabbed
from wirebroker.client.cluster.quorum import AddedVoter, add_voter, quorum_of, remove_voter
from wirebroker.client.cluster_nodes import BROKERS, CONTROLLERS, describe_cluster
from wirebroker.client.errors import ClientError
from wirebroker.codecs.primitives import uuid_from_text, uuid_text
from wirebroker.config.listeners.listeners import Address, parse_addresses
from wirebroker.config.rows.row import ConfigError
from wirebroker.net.client.settings import PeerAddress
from wirebroker.storage.meta_properties import parse_meta_properties

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Unpack

    from wirebroker.cli.plumbing.output import Output
    from wirebroker.client.cluster.quorum import DescribedQuorum, QuorumReplica
    from wirebroker.client.kafka_client import KafkaClient

_TITLES: Final = (
    *("NodeId", "DirectoryId", "LogEndOffset", "Lag"),
    *("LastFetchTimestamp", "LastCaughtUpTimestamp", "Status"),
)


@click.group(cls=ScriptGroup)
@connection_flags()
@click.pass_context
def kafka_metadata_quorum(context: click.Context, **flags: Unpack[ConnectionFlags]) -> int:
    """Show the quorum of controllers, add and remove voters, as kafka-metadata-quorum.sh."""
    context.obj = flags
    return 0


@kafka_metadata_quorum.command()
@click.option("--status", is_flag=True, help="Show a summary.")
@click.option("--replication", is_flag=True, help="Show how far each replica is.")
@click.option("--human-readable", is_flag=True, help="With --replication: show ages, not times.")
@click.pass_obj
def describe(
    flags: ConnectionFlags, *, status: bool, replication: bool, human_readable: bool
) -> int:
    """Describe the quorum."""
    if status and replication:
        raise click.UsageError("give one of --status and --replication")
    if not (status or replication):
        raise click.UsageError("give --status or --replication")
    if human_readable and not replication:
        raise click.UsageError("--human-readable needs --replication")

    async def work(client: KafkaClient, out: Output) -> None:
        if replication:
            for line in tabbed(_TITLES, _rows(await quorum_of(client), is_age=human_readable)):
                out.line(line)
            return
        kind = BROKERS if flags["bootstrap_controller"] is None else CONTROLLERS
        cluster = await describe_cluster(client, endpoint_type=kind)
        for line in _summary(cluster.cluster_id, await quorum_of(client)):
            out.line(line)

    return run_tool(flags, work)


@kafka_metadata_quorum.command("add-controller")
@click.option("--dry-run", is_flag=True, help="Print what would be done.")
@click.pass_obj
def add_controller(flags: ConnectionFlags, *, dry_run: bool) -> int:
    """Add the controller whose configuration is in --command-config to the voters."""
    file = flags["command_config"]
    if file is None:
        raise click.UsageError(
            "give the configuration file of the controller before add-controller: --command-config"
        )
    voter = voter_in(file)

    async def work(client: KafkaClient, out: Output) -> None:
        if not dry_run:
            await add_voter(client, voter)
        endpoints = ", ".join(
            f"{name}://{PeerAddress(address.host, address.port)}"
            for name, address in voter.endpoints.items()
        )
        out.line(
            f"{'DRY RUN of adding' if dry_run else 'Added'} controller {voter.node_id} with"
            f" directory id {uuid_text(voter.directory_id)} and endpoints: {endpoints}"
        )

    return run_tool(flags, work)


@kafka_metadata_quorum.command("remove-controller")
@click.option("-i", "--controller-id", type=int, required=True, metavar="ID", help="The node.")
@click.option(
    "-d", "--controller-directory-id", required=True, metavar="ID", help="Its metadata directory."
)
@click.option("--dry-run", is_flag=True, help="Print what would be done.")
@click.pass_obj
def remove_controller(
    flags: ConnectionFlags, *, controller_id: int, controller_directory_id: str, dry_run: bool
) -> int:
    """Remove a controller from the voters."""
    if controller_id < 0:
        raise click.UsageError(f"Invalid negative --controller-id: {controller_id}")
    try:
        directory_id = uuid_from_text(controller_directory_id)
    except ValueError as error:
        raise click.UsageError(f"Failed to parse --controller-directory-id: {error}") from None

    async def work(client: KafkaClient, out: Output) -> None:
        if not dry_run:
            await remove_voter(client, controller_id, directory_id)
        out.line(
            f"{'DRY RUN of removing' if dry_run else 'Removed'} KRaft controller {controller_id}"
            f" with directory id {uuid_text(directory_id)}"
        )

    return run_tool(flags, work)


def _leader(quorum: DescribedQuorum) -> QuorumReplica:
    for replica in quorum.replicas:
        if replica.is_voter and replica.node_id == quorum.leader_id:
            return replica
    raise ClientError("the quorum has no leader")


def _rows(quorum: DescribedQuorum, *, is_age: bool) -> list[tuple[object, ...]]:
    leader = _leader(quorum)
    kinds = {
        "Leader": [leader],
        "Follower": [
            replica for replica in quorum.replicas if replica.is_voter and replica is not leader
        ],
        "Observer": [replica for replica in quorum.replicas if not replica.is_voter],
    }
    now_ms = SystemClock().now_ms()

    def shown(time_ms: int | None) -> str:
        if time_ms is None:
            return "-1"
        return f"{max(0, now_ms - time_ms)} ms ago" if is_age else f"{time_ms}"

    return [
        (
            replica.node_id,
            uuid_text(replica.directory_id),
            replica.end_offset,
            leader.end_offset - replica.end_offset,
            shown(replica.fetched_ms),
            shown(replica.caught_up_ms),
            kind,
        )
        for kind, replicas in kinds.items()
        for replica in replicas
    ]


def _summary(cluster_id: str, quorum: DescribedQuorum) -> list[str]:
    leader = _leader(quorum)
    voters = [replica for replica in quorum.replicas if replica.is_voter]
    observers = [replica for replica in quorum.replicas if not replica.is_voter]
    last = min(voters, key=lambda replica: replica.end_offset)
    lag_ms = -1
    if last is leader:
        lag_ms = 0
    elif leader.caught_up_ms is not None and last.caught_up_ms is not None:
        lag_ms = leader.caught_up_ms - last.caught_up_ms
    return [
        f"ClusterId:              {cluster_id}",
        f"LeaderId:               {quorum.leader_id}",
        f"LeaderEpoch:            {quorum.leader_epoch}",
        f"HighWatermark:          {quorum.high_watermark}",
        f"MaxFollowerLag:         {leader.end_offset - last.end_offset}",
        f"MaxFollowerLagTimeMs:   {lag_ms}",
        f"CurrentVoters:          {_nodes(quorum, voters)}",
        f"CurrentObservers:       {_nodes(quorum, observers)}",
    ]


def _nodes(quorum: DescribedQuorum, replicas: list[QuorumReplica]) -> str:
    """Return replicas as Kafka 4.3 prints them, without unknown directories."""
    texts: list[str] = []
    for replica in replicas:
        fields = [f'"id": {replica.node_id}']
        if any(replica.directory_id):
            fields.append(f'"directoryId": "{uuid_text(replica.directory_id)}"')
        endpoints = quorum.endpoints.get(replica.node_id)
        if endpoints:
            endpoints_text = ", ".join(f'"{endpoint}"' for endpoint in endpoints)
            fields.append(f'"endpoints": [{endpoints_text}]')
        texts.append(f"{{{', '.join(fields)}}}")
    return f"[{', '.join(texts)}]"


# The voter in a controller's configuration file


def voter_in(file: Path) -> AddedVoter:
    """Return a controller's id, metadata directory and listeners.

    Raises:
        click.UsageError: The file is not a controller's, or its directory is not formatted.
    """
    properties = properties_in(file)

    def wrong(problem: str) -> click.UsageError:
        return click.UsageError(f"{problem} in {file}: is it the configuration of a controller?")

    node_id = properties.get("node.id", "")
    if not node_id.isdecimal():
        raise wrong("node.id is missing or no number")
    if "controller" not in properties.get("process.roles", ""):
        raise wrong("process.roles does not contain controller")
    log_dirs = properties.get("metadata.log.dir") or properties.get("log.dirs", "").split(",")[0]
    if not log_dirs:
        raise wrong("neither metadata.log.dir nor log.dirs is set")
    names = _listed(properties, "controller.listener.names")
    if not names:
        raise wrong("controller.listener.names is missing")
    try:
        addresses = {
            **parse_addresses("listeners", _listed(properties, "listeners")),
            **parse_addresses("advertised.listeners", _listed(properties, "advertised.listeners")),
        }
    except ConfigError as error:
        raise click.UsageError(f"{file} cannot be used: {error}") from None
    unknown = [name for name in names if name.upper() not in addresses]
    if unknown:
        raise wrong(f"no listener {unknown[0]}")
    endpoints = {name.upper(): addresses[name.upper()] for name in names}
    return AddedVoter(
        int(node_id),
        _directory_id(Path(log_dirs.strip())),
        {
            name: Address(address.host or "localhost", address.port)
            for name, address in endpoints.items()
        },
    )


def _listed(properties: Mapping[str, str], name: str) -> tuple[str, ...]:
    parts = (part.strip() for part in properties.get(name, "").split(","))
    return tuple(part for part in parts if part)


def _directory_id(directory: Path) -> bytes:
    file = directory / "meta.properties"
    try:
        properties = parse_meta_properties(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise click.UsageError(f"{file} cannot be read: {error}") from None
    if not any(properties.directory_id):
        raise click.UsageError(f"{file} has no directory.id: start the controller once")
    return properties.directory_id
