"""A broker process with data for a console."""

from __future__ import annotations

import argparse
import contextlib
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from wirebroker.client.groups.groups import commit
from wirebroker.client.topics.leaders import TopicPartition
from wirebroker.client.topics.topics import create_topics
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.records.batch import build_batch

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from wirebroker.client.kafka_client import KafkaClient
    from wirebroker.codecs.records.codec import Codec

_PER_TOPIC = 100
_TOPICS_AT_ONCE = 10
_GROUPS_AT_ONCE = 20
_OFFSETS = 10
_BATCH = 500


def read_arguments(description: str | None) -> argparse.Namespace:
    """Return the flags of a benchmark with much data."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--groups", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=60.0)
    add_checkout(parser)
    return parser.parse_args()


def add_checkout(parser: argparse.ArgumentParser) -> None:
    """Add the flag --ours: the broker's checkout, for example a compiled tree."""
    parser.add_argument("--ours", type=Path, help="wirebroker checkout (default: this one)")


@contextlib.contextmanager
def serving(
    checkout: Path | None, settings: Mapping[str, str] = MappingProxyType({})
) -> Iterator[tuple[str, int]]:
    """Run the broker of a checkout with further settings; yield its address and process id."""
    with tempfile.TemporaryDirectory() as directory:
        port_file = Path(directory) / "port"
        command = [sys.executable, "-m", "wirebroker", "serve", "--port", "0"]
        command += ["--port-file", str(port_file), "--set", f"log.dirs={directory}/data"]
        for name, value in settings.items():
            command += ["--set", f"{name}={value}"]
        with (Path(directory) / "log").open("ab") as log:
            process = subprocess.Popen(command, stderr=log, cwd=checkout)
        try:
            while not (port_file.exists() and port_file.read_text()):
                assert process.poll() is None, "it did not start"
                time.sleep(0.01)  # a starting broker is probed
            yield f"127.0.0.1:{port_file.read_text().strip()}", process.pid
        finally:
            process.terminate()
            process.wait()


async def fill(client: KafkaClient, partitions: int, groups: int) -> None:
    """Create topics of 100 partitions, and groups that committed ten offsets each."""
    topics = [f"topic-{number}" for number in range(partitions // _PER_TOPIC)]
    for first in range(0, len(topics), _TOPICS_AT_ONCE):
        some = topics[first : first + _TOPICS_AT_ONCE]
        await create_topics(client, dict.fromkeys(some, _PER_TOPIC), configs={})
    for first in range(0, groups, _GROUPS_AT_ONCE):
        await client.together(
            *(
                commit(
                    client,
                    f"group-{number}",
                    {
                        TopicPartition(topics[number % len(topics)], partition): 0
                        for partition in range(_OFFSETS)
                    },
                )
                for number in range(first, min(groups, first + _GROUPS_AT_ONCE))
            )
        )


async def write_orders(client: KafkaClient, topic: str, count: int, codec: Codec) -> None:
    """Write records of 200 bytes to three partitions: JSON of an order, with a header."""
    randoms = random.Random(1)
    written = 0
    while written < count:
        records = [
            (
                b"key-%d" % (written + number),
                b'{"order":{"id":%d,"customer":"customer-%d"},"pad":"%s"}'
                % (written + number, randoms.randrange(10**6), b"x" * 125),
                [("trace", b"t%d" % (written + number))],
            )
            for number in range(_BATCH)
        ]
        batch = build_batch(records, timestamp_ms=int(time.time() * 1000), codec=codec)  # noqa: TID251
        data = [{"index": written // _BATCH % 3, "records": batch}]
        body = {
            "acks": 1,
            "timeout_ms": 10_000,
            "topic_data": [{"name": topic, "partition_data": data}],
        }
        await client.request_of(1, ApiKey.PRODUCE, body, at_most=12)
        written += _BATCH
