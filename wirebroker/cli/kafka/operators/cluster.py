"""`wirebroker kafka-cluster`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from wirebroker.cli.kafka.operators.broker_api_versions import print_api_versions
from wirebroker.cli.kafka.plumbing.connection import ConnectionFlags, connection_flags, run_tool
from wirebroker.cli.kafka.plumbing.subcommands import ScriptGroup
from wirebroker.cli.kafka.plumbing.tables import padded
from wirebroker.client.cluster.brokers import unregister_broker, unregister_controller
from wirebroker.client.cluster_nodes import BROKERS, CONTROLLERS, describe_cluster

if TYPE_CHECKING:
    from typing import Unpack

    from wirebroker.cli.plumbing.output import Output
    from wirebroker.client.kafka_client import KafkaClient

_WIDTHS: Final = (10, 9, 10, 10, 10, 15)


@click.group(cls=ScriptGroup)
def kafka_cluster() -> None:
    """Show a cluster's id and nodes, unregister a broker, as kafka-cluster.sh."""


@kafka_cluster.command("cluster-id")
@connection_flags(short=True)
def cluster_id(**flags: Unpack[ConnectionFlags]) -> int:
    """Print the id of the cluster."""

    async def work(client: KafkaClient, out: Output) -> None:
        cluster = await describe_cluster(client, endpoint_type=_endpoint_type(flags))
        out.line(f"Cluster ID: {cluster.cluster_id}")

    return run_tool(flags, work)


@kafka_cluster.command()
@connection_flags(short=True)
@click.option("-i", "--id", "broker_id", type=int, required=True, metavar="ID", help="The broker.")
def unregister(*, broker_id: int, **flags: Unpack[ConnectionFlags]) -> int:
    """Unregister a permanently stopped broker."""

    async def work(client: KafkaClient, out: Output) -> None:
        await unregister_broker(client, broker_id)
        out.line(f"Broker {broker_id} is no longer registered.")

    return run_tool(flags, work)


@kafka_cluster.command("unregister-controller")
@connection_flags(short=True)
@click.option(
    "-i",
    "--id",
    "controller_id",
    type=int,
    required=True,
    metavar="ID",
    help="Id of the controller.",
)
def unregister_controller_(*, controller_id: int, **flags: Unpack[ConnectionFlags]) -> int:
    """Unregister a permanently stopped controller."""

    async def work(client: KafkaClient, out: Output) -> None:
        await unregister_controller(client, controller_id)
        out.line(f"Controller {controller_id} is no longer registered.")

    return run_tool(flags, work)


@kafka_cluster.command("list-endpoints")
@connection_flags(short=True)
@click.option("--include-fenced-brokers", "fenced", is_flag=True, help="List fenced brokers too.")
def list_endpoints(*, fenced: bool, **flags: Unpack[ConnectionFlags]) -> int:
    """List the addresses of brokers or controllers."""
    endpoint_type = _endpoint_type(flags)
    if fenced and endpoint_type == CONTROLLERS:
        raise click.UsageError("--include-fenced-brokers needs --bootstrap-server")

    async def work(client: KafkaClient, out: Output) -> None:
        cluster = await describe_cluster(client, endpoint_type=endpoint_type, fenced=fenced)
        for line in _endpoint_lines(cluster.brokers, endpoint_type):
            out.line(line)

    return run_tool(flags, work)


@kafka_cluster.command("api-versions")
@connection_flags(short=True)
def api_versions(**flags: Unpack[ConnectionFlags]) -> int:
    """Print the API versions of brokers or controllers."""
    endpoint_type = _endpoint_type(flags)

    async def work(client: KafkaClient, out: Output) -> None:
        await print_api_versions(client, out, endpoint_type=endpoint_type)

    return run_tool(flags, work)


def _endpoint_type(flags: ConnectionFlags) -> int:
    return BROKERS if flags["bootstrap_controller"] is None else CONTROLLERS


def _endpoint_lines(nodes: list[Any], endpoint_type: int) -> list[str]:
    has_state = endpoint_type == BROKERS
    titles = ("ID", "HOST", "PORT", "RACK", *(["STATE"] if has_state else []), "ENDPOINT_TYPE")
    kind = "broker" if has_state else "controller"
    rows: list[tuple[object, ...]] = [titles]
    for node in sorted(nodes, key=lambda node: node.broker_id):
        fenced = "fenced" if getattr(node, "is_fenced", False) else "unfenced"
        state = [fenced] if has_state else []
        rows.append((node.broker_id, node.host, node.port, node.rack, *state, kind))
    return padded(rows, _WIDTHS if has_state else (*_WIDTHS[:4], _WIDTHS[-1]))
