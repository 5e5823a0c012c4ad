"""`wirebroker kafka-broker-api-versions`; kafka-cluster api-versions prints the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from wirebroker.cli.kafka.plumbing.script import (
    ScriptCommand,
    ScriptFlags,
    run_script,
    script_flags,
)
from wirebroker.client.cluster.api_versions import api_versions_of, version_lines
from wirebroker.client.cluster_nodes import BROKERS, describe_cluster
from wirebroker.client.errors import ClientError

if TYPE_CHECKING:
    from typing import Unpack

    from wirebroker.cli.plumbing.output import Output
    from wirebroker.client.kafka_client import KafkaClient


@click.command(cls=ScriptCommand)
@script_flags
def kafka_broker_api_versions(**flags: Unpack[ScriptFlags]) -> int:
    """Print the API versions of brokers, as kafka-broker-api-versions.sh."""
    return run_script(flags, print_api_versions, failed=str, to_stderr=True)


async def print_api_versions(
    client: KafkaClient, out: Output, *, endpoint_type: int = BROKERS
) -> None:
    """Print each node's API versions, or its error."""
    if endpoint_type == BROKERS:
        await client.broker_ids()
    cluster = await describe_cluster(client, endpoint_type=endpoint_type)
    for node in sorted(cluster.brokers, key=lambda broker: broker.broker_id):
        rack = "null" if node.rack is None else node.rack
        label = f"{node.host}:{node.port} (id: {node.broker_id} rack: {rack} isFenced: false)"
        try:
            answer = await api_versions_of(client, node.broker_id)
        except ClientError as error:
            out.line(f"{label} -> ERROR: {error}")
            continue
        lines = ",\n\t".join(version_lines(answer))
        out.line(f"{label} -> (\n\t{lines}\n)")
