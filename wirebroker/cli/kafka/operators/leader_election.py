"""`wirebroker kafka-leader-election`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypedDict

import click

from wirebroker.cli.kafka.plumbing.java_map import in_hash_order, partition_hash
from wirebroker.cli.kafka.plumbing.java_words import thrown_for
from wirebroker.cli.kafka.plumbing.script import (
    ScriptCommand,
    ScriptFlags,
    run_script,
    script_flags,
)
from wirebroker.cli.plumbing.completed_names import TOPIC_NAME
from wirebroker.cli.plumbing.file_path import FilePath
from wirebroker.client.errors import ClientError
from wirebroker.client.replicas.elections import PREFERRED, UNCLEAN, Elected, elect_leaders
from wirebroker.client.topics.leaders import TopicPartition
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.json_text import parse_json

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Unpack

    from wirebroker.cli.plumbing.output import Output
    from wirebroker.client.kafka_client import KafkaClient

_KINDS: Final = {"PREFERRED": PREFERRED, "UNCLEAN": UNCLEAN}
# Printed before the tool fails.
_MESSAGES: Final[dict[int, str]] = {
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "Not authorized to perform leader election",
    ErrorCode.REQUEST_TIMED_OUT: "Timeout waiting for election results",
}


class _PartitionFlags(TypedDict):
    topic: str | None
    partition: int | None
    all_topic_partitions: bool
    path_to_json_file: Path | None


class _Flags(ScriptFlags, _PartitionFlags):
    pass


@click.command(cls=ScriptCommand)
@click.option(
    "--election-type",
    "election",
    type=click.Choice(["preferred", "unclean"], case_sensitive=False),
    required=True,
    help="The first replica if it is in sync, or any live replica if there is no leader.",
)
@click.option("--topic", type=TOPIC_NAME, metavar="TOPIC", help="The topic of one partition.")
@click.option("--partition", type=int, metavar="N", help="The number of that partition.")
@click.option("--all-topic-partitions", is_flag=True, help="All partitions that need an election.")
@click.option(
    "--path-to-json-file",
    type=FilePath(exists=True, dir_okay=False),
    metavar="FILE",
    help='{"partitions": [{"topic": "t", "partition": 0}]}',
)
@click.option("--admin.config", "admin_config", type=FilePath(exists=True), hidden=True)
@script_flags
def kafka_leader_election(
    *, election: str, admin_config: Path | None, **flags: Unpack[_Flags]
) -> int:
    """Elect leaders of partitions, as kafka-leader-election.sh."""
    topic_partitions = _requested_partitions(flags)
    kind = election.upper()
    connection: ScriptFlags = {
        "bootstrap_server": flags["bootstrap_server"],
        "command_config": flags["command_config"] or admin_config,
    }

    async def work(client: KafkaClient, out: Output) -> None:
        try:
            results = await elect_leaders(client, _KINDS[kind], topic_partitions)
        except ClientError as error:
            if error.code in _MESSAGES:
                out.line(_MESSAGES[error.code])
            raise
        _print(out, results, kind)

    return run_script(connection, work, failed=str, to_stderr=True)


def _requested_partitions(flags: _PartitionFlags) -> list[TopicPartition] | None:
    topic, partition, file = flags["topic"], flags["partition"], flags["path_to_json_file"]
    if [topic is not None, flags["all_topic_partitions"], file is not None].count(True) != 1:
        raise click.UsageError(
            "One and only one of the following options is required: topic, all-topic-partitions,"
            " path-to-json-file"
        )
    if topic is None and partition is not None:
        raise click.UsageError("Option partition is only allowed if topic is used")
    if file is not None:
        return _read(file)
    if topic is None:
        return None
    if partition is None:
        raise click.UsageError("Missing required option(s): partition")
    return [TopicPartition(topic, partition)]


def _read(file: Path) -> list[TopicPartition]:
    try:
        document: Any = parse_json(file.read_text(encoding="utf-8"))
        topic_partitions = [
            TopicPartition(str(row["topic"]), int(row["partition"]))
            for row in document["partitions"]
        ]
    except (ValueError, TypeError) as error:
        raise click.UsageError(f"{file} cannot be read: {error}") from None
    except KeyError as error:
        raise click.UsageError(f"Replica election data is missing {error} field") from None
    if len(set(topic_partitions)) < len(topic_partitions):
        raise click.UsageError("Replica election data contains duplicate partitions")
    return topic_partitions


def _print(out: Output, results: list[Elected], kind: str) -> None:
    ordered = in_hash_order(results, lambda result: partition_hash(*result.place))
    elected = [f"{result.place}" for result in ordered if not result.code]
    if elected:
        elected_text = ", ".join(elected)
        out.line(f"Successfully completed leader election ({kind}) for partitions {elected_text}")
    valid = [
        f"{result.place}" for result in ordered if result.code == ErrorCode.ELECTION_NOT_NEEDED
    ]
    if valid:
        out.line(f"Valid replica already elected for partitions {', '.join(valid)}")
    refused = [result for result in ordered if result.is_refused]
    for result in refused:
        out.line(
            f"Error completing leader election ({kind}) for partition: {result.place}:"
            f" {thrown_for(result.code, result.told)}"
        )
    if refused:
        raise ClientError(f"{len(refused)} replica(s) could not be elected")
