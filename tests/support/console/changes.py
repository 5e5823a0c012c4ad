"""Changes of the console on a test cluster, and what they leave behind."""

from __future__ import annotations

import asyncio
import os
import sys
from collections import UserDict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wirebroker.client.configs.configs import (
    BROKER,
    CLIENT_METRICS,
    GROUP,
    TOPIC,
    configs_of,
    configured_client_metrics,
    configured_groups,
)
from wirebroker.client.groups.group_kinds import progress_of_any
from wirebroker.client.groups.groups import list_groups
from wirebroker.client.records.consuming import PartitionsReader
from wirebroker.client.topics.leaders import offsets_at, partitions_of
from wirebroker.client.topics.topics import list_topics
from wirebroker.codecs.special_offsets import EARLIEST, LATEST
from wirebroker.console.changes.kinds.table import CHANGES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.client.kafka_client import KafkaClient
    from wirebroker.client.topics.leaders import TopicPartition
    from wirebroker.codecs.records.record import Record
    from wirebroker.console.changes.change import PreparedChange
    from wirebroker.console.model.collector import Collector

ROOT = Path(__file__).resolve().parents[3]


class ReadValues(UserDict[str, str]):
    """Values of a change, and the names of those that were read."""

    def __init__(self, values: Mapping[str, str]) -> None:
        super().__init__(values)
        self.names: set[str] = set()

    def __getitem__(self, name: str) -> str:
        self.names.add(name)
        return super().__getitem__(name)


async def prepared(collector: Collector, kind: str, **values: Any) -> PreparedChange:
    """Prepare a change; fields that are not given have their defaults."""
    fields = CHANGES[kind].fields
    unknown = values.keys() - {field.name for field in fields}
    assert not unknown, unknown
    texts = {field.name: str(values.get(field.name, field.default)) for field in fields}
    read = ReadValues(texts)
    plan = await CHANGES[kind].prepare(collector, read)
    ignored = {name for name, value in values.items() if str(value)} - read.names
    assert not ignored, f"{kind} ignores {ignored}"
    return plan


async def made(collector: Collector, kind: str, **values: Any) -> str:
    """Make a change and return what was done."""
    return await (await prepared(collector, kind, **values)).apply()


async def run_line(command: str, folder: Path) -> str:
    """Run a command line of a plan in a shell, and return its output; it must succeed."""
    program = folder / "wirebroker"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m wirebroker "$@"\n')
    program.chmod(0o755)
    process = await asyncio.create_subprocess_shell(
        f"set -e; {command}",
        cwd=ROOT,
        env={**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    assert process.returncode == 0, f"{command}\n{output.decode()}"
    return output.decode()


async def records_of(client: KafkaClient, topic: str) -> dict[TopicPartition, list[Record]]:
    """Return the records of a topic by partition."""
    places = list(await partitions_of(client, [topic]))
    starts = await offsets_at(client, dict.fromkeys(places, EARLIEST))
    ends = await offsets_at(client, dict.fromkeys(places, LATEST))
    records: dict[TopicPartition, list[Record]] = {place: [] for place in places}

    def take(place: TopicPartition, found: list[Record]) -> bool:
        records[place] += found
        return True

    await PartitionsReader(client, starts, take, until=ends).run()
    return records


async def state_of(client: KafkaClient) -> dict[str, Any]:
    """Return topics with configs and records, groups with offsets, and other configs.

    Timestamps are left out: a record that is written later has another one.
    """
    topics = {
        name: {
            "partitions": count,
            "configs": await _set_configs(client, TOPIC, name),
            "records": {
                str(place): [(row.offset, row.key, row.value, list(row.headers)) for row in rows]
                for place, rows in (await records_of(client, name)).items()
            },
        }
        for name, count in (await list_topics(client)).items()
    }
    groups = {
        group.name: {
            str(row.place): row.committed
            for row in await progress_of_any(client, group.name, group.kind)
        }
        for group in await list_groups(client)
    }
    return {
        "topics": topics,
        "groups": groups,
        "brokers": await _set_configs(client, BROKER, ""),
        "group configs": {
            name: await _set_configs(client, GROUP, name)
            for name in await configured_groups(client) or ()
        },
        "client metrics": {
            name: await _set_configs(client, CLIENT_METRICS, name)
            for name in await configured_client_metrics(client)
        },
    }


async def _set_configs(client: KafkaClient, kind: int, name: str) -> dict[str, str | None]:
    configs = await configs_of(client, kind, name)
    return {config.name: config.value for config in configs if config.is_set}
