"""`wirebroker kafka-reassign-partitions`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from wirebroker.cli.kafka.operators.reassignment_steps import (
    Plan,
    cancel_plan,
    current_json,
    execute_plan,
    reassignment_json,
    verify_plan,
)
from wirebroker.cli.kafka.plumbing.connection import ConnectionFlags, connection_flags, run_tool
from wirebroker.cli.kafka.plumbing.script import ScriptCommand, version_flag
from wirebroker.cli.plumbing.file_path import FilePath
from wirebroker.client.errors import ClientError
from wirebroker.client.replicas.reassignment_plan import (
    plan_directories,
    planned_replicas,
    read_plan,
)
from wirebroker.client.replicas.reassignments import list_reassignments, replicas_of
from wirebroker.codecs.json_text import parse_json

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path
    from typing import Unpack

    from wirebroker.cli.plumbing.output import Output
    from wirebroker.client.kafka_client import KafkaClient

_ACTIONS: Final = ("generate", "execute", "verify", "cancel", "list")
_FLAGS: Final = {
    "generate": {"topics_file", "broker_list", "disable_rack_aware"},
    "execute": {
        "plan_file",
        "additional",
        "keeps_factor",
        "throttle",
        "directory_throttle",
        "timeout",
    },
    "verify": {"plan_file", "preserve_throttles"},
    "cancel": {"plan_file", "preserve_throttles", "timeout"},
    "list": set[str](),
}
_NAMES: Final = {
    "plan_file": "reassignment-json-file",
    "keeps_factor": "disallow-replication-factor-change",
    "topics_file": "topics-to-move-json-file",
    "directory_throttle": "replica-alter-log-dirs-throttle",
}


class _Flags(ConnectionFlags):
    generate: bool
    execute: bool
    verify: bool
    cancel: bool
    list: bool
    plan_file: Path | None
    topics_file: Path | None
    broker_list: str | None
    disable_rack_aware: bool
    throttle: int | None
    directory_throttle: int | None
    timeout: int | None
    additional: bool
    keeps_factor: bool
    preserve_throttles: bool


class _GenerateRequest(NamedTuple):
    topics: list[str]
    brokers: list[int]


@click.command(cls=ScriptCommand)
@click.option("--generate", is_flag=True, help="Propose a plan for topics.")
@click.option("--execute", is_flag=True, help="Start the moves of a plan.")
@click.option("--verify", is_flag=True, help="Show how far a plan is; clear throttles after it.")
@click.option("--cancel", is_flag=True, help="Cancel the moves of a plan.")
@click.option("--list", is_flag=True, help="List the moves that are in progress.")
@click.option(
    "--reassignment-json-file",
    "plan_file",
    type=FilePath(exists=True, dir_okay=False),
    metavar="FILE",
    help='{"partitions": [{"topic": "t", "partition": 0, "replicas": [1]}], "version": 1}',
)
@click.option(
    "--topics-to-move-json-file",
    "topics_file",
    type=FilePath(exists=True, dir_okay=False),
    metavar="FILE",
    help='The topics to plan for: {"topics": [{"topic": "t"}], "version": 1}',
)
@click.option("--broker-list", metavar="ID,...", help="With --generate: the brokers to use.")
@click.option("--disable-rack-aware", is_flag=True, help="Has no effect: plans ignore racks.")
@click.option("--throttle", type=int, metavar="BYTES", help="Bytes/s between two brokers.")
@click.option(
    "--replica-alter-log-dirs-throttle",
    "directory_throttle",
    type=int,
    metavar="BYTES",
    help="Bytes/s between two directories of a broker.",
)
@click.option("--timeout", type=int, metavar="MS", help="How long to wait for directories' moves.")
@click.option("--additional", is_flag=True, help="Start moves although others are in progress.")
@click.option(
    "--disallow-replication-factor-change",
    "keeps_factor",
    is_flag=True,
    help="With --execute: refuse moves that change the replication factor of a partition.",
)
@click.option("--preserve-throttles", is_flag=True, help="Keep throttles.")
@connection_flags()
@version_flag
def kafka_reassign_partitions(**flags: Unpack[_Flags]) -> int:
    """Move replicas to other brokers, as kafka-reassign-partitions.sh."""
    values: dict[str, object] = {**flags}
    chosen = [action for action in _ACTIONS if values[action]]
    if len(chosen) != 1:
        actions_text = ", ".join(f"--{action}" for action in _ACTIONS)
        raise click.UsageError(f"Command must include exactly one action: {actions_text}")
    _check_flags(chosen[0], flags)
    return run_tool(flags, _work(chosen[0], flags), failed=_failed, to_stderr=False)


def _failed(message: str) -> str:
    """Return the line for a failure, some without `Error`, as in Kafka's tool."""
    return (
        message
        if message.startswith(("Error", "Cannot execute", "Timed out"))
        else f"Error: {message}"
    )


def _flag(name: str) -> str:
    return f"--{_NAMES.get(name, name.replace('_', '-'))}"


def _check_flags(action: str, flags: _Flags) -> None:
    values: dict[str, object] = {**flags}
    other_flags = {name for flag_names in _FLAGS.values() for name in flag_names} - _FLAGS[action]
    for name in sorted(other_flags):
        if values[name]:
            raise click.UsageError(f"Option {_flag(name)} can't be used with action --{action}")
    for name in ("plan_file", "topics_file", "broker_list"):
        if name in _FLAGS[action] and values[name] is None:
            raise click.UsageError(f"Missing required argument {_flag(name)}")
    if flags["bootstrap_controller"] and action not in {"cancel", "list"}:
        raise click.UsageError(f"--{action} needs --bootstrap-server")


def _work(action: str, flags: _Flags) -> Callable[[KafkaClient, Output], Awaitable[None]]:
    """Return the work; files are read here, before the cluster is contacted."""
    if action == "list":
        return _list
    if action == "generate":
        return _generating(_requested_moves(flags))
    plan = _plan(flags["plan_file"])
    keeps = flags["preserve_throttles"]

    async def work(client: KafkaClient, out: Output) -> None:
        if action == "verify":
            await verify_plan(client, out, plan, keeps_throttles=keeps)
        elif action == "cancel":
            await cancel_plan(client, out, plan, keeps_throttles=keeps)
        else:
            await execute_plan(
                client,
                out,
                plan,
                is_additional=flags["additional"],
                keeps_factor=flags["keeps_factor"],
                bytes_per_s=flags["throttle"],
                directory_bytes_per_s=flags["directory_throttle"],
                timeout_ms=10_000 if flags["timeout"] is None else flags["timeout"],
            )

    return work


async def _list(client: KafkaClient, out: Output) -> None:
    reassignments = await list_reassignments(client)
    out.line(
        "Current partition reassignments:" if reassignments else "No partition reassignments found."
    )
    for reassignment in reassignments:
        adding = f" adding: {_listed(reassignment.adding)}." if reassignment.adding else ""
        removing = f" removing: {_listed(reassignment.removing)}." if reassignment.removing else ""
        out.line(
            f"{reassignment.place}: replicas: {_listed(reassignment.replicas)}.{adding}{removing}"
        )


def _generating(requested: _GenerateRequest) -> Callable[[KafkaClient, Output], Awaitable[None]]:
    async def work(client: KafkaClient, out: Output) -> None:
        current = await replicas_of(client, requested.topics)
        running = await client.broker_ids()
        brokers = [broker_id for broker_id in requested.brokers if broker_id in running]
        try:
            proposed = planned_replicas(current, brokers)
        except ValueError as error:
            raise ClientError(f"Error: {error}") from None
        out.line(f"Current partition replica assignment\n{await current_json(client, current)}\n")
        out.line(f"Proposed partition reassignment configuration\n{reassignment_json(proposed)}")

    return work


def _plan(file: Path | None) -> Plan:
    assert file is not None
    text = file.read_text(encoding="utf-8")
    try:
        return Plan(read_plan(text), plan_directories(text))
    except ValueError as error:
        raise click.UsageError(f"{file} is no plan: {error}") from None


def _requested_moves(flags: _Flags) -> _GenerateRequest:
    file, broker_list = flags["topics_file"], flags["broker_list"]
    assert file is not None
    assert broker_list is not None
    try:
        brokers = [int(broker_id) for broker_id in broker_list.split(",")]
        document: Any = parse_json(file.read_text(encoding="utf-8"))
        topics = [str(row["topic"]) for row in document["topics"]]
    except (ValueError, TypeError, KeyError) as error:
        raise click.UsageError(f"{file} or --broker-list cannot be read: {error}") from None
    if len(set(brokers)) < len(brokers) or len(set(topics)) < len(topics):
        raise click.UsageError("the brokers or the topics to reassign contain duplicate entries")
    return _GenerateRequest(topics, brokers)


def _listed(numbers: list[int]) -> str:
    return ",".join(map(str, numbers))
