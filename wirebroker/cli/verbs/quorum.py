"""`wirebroker quorum`: the quorum of controllers and its voters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from wirebroker.cli.plumbing.flags import dry_run_hint, yes_flag
from wirebroker.cli.plumbing.output import tell
from wirebroker.cli.plumbing.running import (
    ClusterFlags,
    cluster_or_controller_flags,
    run_verb,
    use_in_subcommand,
)
from wirebroker.client.cluster.quorum import add_voter, has_no_leader, quorum_of, remove_voter
from wirebroker.client.cluster.voter_changes import planned_addition, planned_removal
from wirebroker.client.cluster.voter_states import SILENT_STEP, advice_of, summary_of, voters_of
from wirebroker.client.errors import ClientError
from wirebroker.net.client.settings import PeerAddress

if TYPE_CHECKING:
    from typing import Any, Unpack

    from wirebroker.cli.plumbing.output import Output
    from wirebroker.client.cluster.quorum import DescribedQuorum
    from wirebroker.client.kafka_client import KafkaClient


@click.group(invoke_without_command=True)
@click.pass_context
@cluster_or_controller_flags
def quorum(context: click.Context, **flags: Unpack[ClusterFlags]) -> int:
    """Show the quorum of controllers; add and remove voters."""
    if context.invoked_subcommand is None:
        return _show(flags)
    use_in_subcommand(context, flags)
    return 0


@quorum.command()
@cluster_or_controller_flags
def describe(**flags: Unpack[ClusterFlags]) -> int:
    """Show the leader, the voters and the observers, as `wirebroker quorum` does."""
    return _show(flags)


def _node_address(
    _context: click.Context, _argument: click.Parameter, text: str
) -> tuple[int, PeerAddress]:
    from wirebroker.config.quorum import parse_address  # noqa: PLC0415 - for this verb
    from wirebroker.config.rows.row import ConfigError  # noqa: PLC0415

    node_id, _, address = text.partition("@")
    try:
        parsed = parse_address(address, "the controller")
    except ConfigError:
        parsed = None
    if parsed is None or not (node_id.isascii() and node_id.isdigit()):
        raise click.BadParameter(f"{text}: write ID@HOST:PORT, of its controller listener")
    return int(node_id), PeerAddress(*parsed)


@quorum.command("add-voter")
@click.argument("controller", metavar="ID@HOST:PORT", callback=_node_address)
@yes_flag
@cluster_or_controller_flags
def add_voter_(
    *, controller: tuple[int, PeerAddress], yes: bool, **flags: Unpack[ClusterFlags]
) -> int:
    """Make a running controller a voter; without --yes only show the change.

    Start the controller first, with controller.quorum.bootstrap.servers and a directory formatted
    with --no-initial-controllers. HOST:PORT is the address of its controller listener.
    """

    async def work(client: KafkaClient, out: Output) -> None:
        node_id, address = controller
        change = await planned_addition(client, node_id, address)
        if yes:
            await add_voter(client, change.voter)
        _report(out, change.sentence, {"voters": change.voters_after, "node": node_id}, yes=yes)
        if not yes:
            tell(dry_run_hint(f"adds controller {node_id} to the voters"))

    return run_verb(flags, work)


@quorum.command("remove-voter")
@click.argument("node_id", type=int, metavar="ID")
@yes_flag
@cluster_or_controller_flags
def remove_voter_(*, node_id: int, yes: bool, **flags: Unpack[ClusterFlags]) -> int:
    """Remove a controller from the voters; without --yes only show the change.

    A removed controller that still runs continues as an observer. With
    controller.quorum.auto.join.enable=true, which `join --voter` sets, it adds itself again: stop
    it first.
    """

    async def work(client: KafkaClient, out: Output) -> None:
        change = await planned_removal(client, node_id)
        if yes:
            await remove_voter(client, node_id, change.voter.directory_id)
        _report(out, change.sentence, {"voters": change.voters_after, "node": node_id}, yes=yes)
        if not yes:
            tell(dry_run_hint(f"removes controller {node_id} from the voters"))

    return run_verb(flags, work)


def _report(out: Output, sentence: str, data: dict[str, Any], *, yes: bool) -> None:
    out.show({**data, "is_changed": yes}, [sentence])


def _show(flags: ClusterFlags) -> int:
    async def work(client: KafkaClient, out: Output) -> None:
        description = await _quorum_of(client)
        rows = _rows(description)
        voters = voters_of(description)
        advice = advice_of(description)
        data = {
            "leader_id": description.leader_id,
            "leader_epoch": description.leader_epoch,
            "high_watermark": description.high_watermark,
            "voters": voters.ids,
            "missing_voters": voters.missing_ids,
            "next_steps": advice,
            "replicas": rows,
        }
        head = f"leader {description.leader_id}, epoch {description.leader_epoch}"
        lines = [
            f"{out.title('quorum')} {head}, high watermark {description.high_watermark}",
            summary_of(description),
            *out.table(rows, ("node", "role", "end", "lag", "lag_ms", "endpoints")),
            *(f"next: {step}" for step in advice),
        ]
        out.show(data, lines)

    return run_verb(flags, work)


async def _quorum_of(client: KafkaClient) -> DescribedQuorum:
    try:
        return await quorum_of(client)
    except ClientError as error:
        if has_no_leader(client, error):
            raise ClientError(
                f"{error}\nnext: {SILENT_STEP}", code=error.code, broker_message=error.told
            ) from error
        raise


def _rows(description: DescribedQuorum) -> list[dict[str, Any]]:
    missing_ids = set(voters_of(description).missing_ids)
    return [
        {
            "node": replica.node_id,
            "role": _role(
                replica.node_id, description.leader_id, missing_ids, is_voter=replica.is_voter
            ),
            "end": replica.end_offset,
            "lag": replica.lag,
            "lag_ms": replica.lag_ms,
            "endpoints": ", ".join(description.endpoints.get(replica.node_id, ())),
        }
        for replica in description.replicas
    ]


def _role(node_id: int, leader_id: int, missing_ids: set[int], *, is_voter: bool) -> str:
    if not is_voter:
        return "observer"
    if node_id == leader_id:
        return "leader"
    return "missing" if node_id in missing_ids else "voter"
