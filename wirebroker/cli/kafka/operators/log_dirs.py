"""`wirebroker kafka-log-dirs`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from wirebroker.cli.kafka.plumbing.java_map import in_hash_order, in_map_order, partition_hash
from wirebroker.cli.kafka.plumbing.java_words import thrown_class
from wirebroker.cli.kafka.plumbing.script import (
    ScriptCommand,
    ScriptFlags,
    run_script,
    script_flags,
)
from wirebroker.client.cluster.brokers import described_log_dirs
from wirebroker.client.errors import ClientError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from typing import Unpack

    from wirebroker.cli.plumbing.output import Output
    from wirebroker.client.kafka_client import KafkaClient


@click.command(cls=ScriptCommand)
@click.option("--describe", is_flag=True, required=True, help="Describe the directories.")
@click.option("--topic-list", default="", metavar="TOPIC,...", help="Only these topics.")
@click.option("--broker-list", default="", metavar="ID,...", help="Only these brokers.")
@script_flags
def kafka_log_dirs(
    *, describe: bool, topic_list: str, broker_list: str, **flags: Unpack[ScriptFlags]
) -> int:
    """Show the data directories of brokers with their partitions, as kafka-log-dirs.sh."""
    if not describe:
        raise click.UsageError("--describe is missing")
    topics = frozenset(topic for topic in topic_list.split(",") if topic)
    try:
        requested = sorted({int(broker_id) for broker_id in broker_list.split(",") if broker_id})
    except ValueError:
        raise click.UsageError(f"--broker-list {broker_list}: write ids, as 1,2,3") from None

    async def work(client: KafkaClient, out: Output) -> None:
        running = await client.broker_ids()
        missing = [broker_id for broker_id in requested if broker_id not in running]
        if missing:
            raise ClientError(
                f"ERROR: The given brokers do not exist from --broker-list: {_listed(missing)}."
                f" Current existent brokers: {_listed(running)}"
            )
        queried = requested or running
        out.line("Querying brokers for log directories information")
        by_broker = await described_log_dirs(client, queried)
        out.line(f"Received log directory information from brokers {_listed(queried)}")
        brokers = [
            {"broker": broker, "logDirs": _directories(results, topics)}
            for broker, results in by_broker.items()
        ]
        out.line(_json({"brokers": brokers, "version": 1}))

    return run_script(flags, work, failed=str, to_stderr=True)


def _directories(results: list[Any], topics: Collection[str]) -> list[dict[str, Any]]:
    return [
        {
            "partitions": _partitions(result, topics),
            "error": thrown_class(result.error_code) if result.error_code else None,
            "logDir": result.log_dir,
        }
        for result in in_map_order(results, lambda result: str(result.log_dir))
    ]


def _partitions(result: Any, topics: Collection[str]) -> list[dict[str, Any]]:
    logs = in_hash_order(
        [
            (topic.name, log)
            for topic in result.topics
            if not topics or topic.name in topics
            for log in topic.partitions
        ],
        lambda pair: partition_hash(pair[0], pair[1].partition_index),
    )
    return [
        {
            "partition": f"{name}-{log.partition_index}",
            "size": log.partition_size,
            "offsetLag": log.offset_lag,
            "isFuture": log.is_future_key,
        }
        for name, log in logs
    ]


def _listed(numbers: Iterable[int]) -> str:
    return ",".join(map(str, numbers))


def _json(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))
