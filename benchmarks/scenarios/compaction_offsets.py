"""The size of `__consumer_offsets` under steady commits, and whether all offsets survive.

    python -m benchmarks.scenarios.compaction_offsets [--commits 60000] [--rate 1000] [--groups 50]
                                            [--segment-bytes 1048576]

Each request commits one of ten partitions of one group. At the end the broker restarts, and all
committed offsets are compared.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.support.brokers.brokers import Wirebroker
from tests.support.protocol.raw_client import RawClient
from tests.support.protocol.requests import create_topic
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode

PARTITIONS = 10
_LOADING = {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE}
REPORT_S = 10.0
DELETED = ".deleted"


class Committer:
    """A client that commits offsets and remembers them, by group and partition."""

    def __init__(self, groups: int) -> None:
        self._groups = groups
        self.committed: dict[tuple[str, int], int] = {}

    async def commit(self, client: RawClient, number: int) -> None:
        group, partition = f"g{number % self._groups}", number // self._groups % PARTITIONS
        of_partition = {
            "partition_index": partition,
            "committed_offset": number,
            "committed_leader_epoch": -1,
            "committed_metadata": "",
        }
        request = {
            "group_id": group,
            "generation_id_or_member_epoch": -1,
            "member_id": "",
            "group_instance_id": None,
            "topics": [{"name": "topic", "partitions": [of_partition]}],
        }
        code = -1
        while code in {-1, *_LOADING}:
            answer = await client.ask(ApiKey.OFFSET_COMMIT, 8, request)
            code = answer.topics[0].partitions[0].error_code
        assert code == 0, code
        self.committed[group, partition] = number

    async def check(self, client: RawClient) -> None:
        for group in sorted({group for group, _ in self.committed}):
            fetch = {"groups": [{"group_id": group, "topics": None}], "require_stable": False}
            answer: Any = None
            while answer is None or answer.error_code:
                answer = (await client.ask(ApiKey.OFFSET_FETCH, 8, fetch)).groups[0]
            actual = {
                (group, partition.partition_index): partition.committed_offset
                for topic in answer.topics
                for partition in topic.partitions
            }
            expected = {key: value for key, value in self.committed.items() if key[0] == group}
            assert actual == expected, f"{group}: {actual} instead of {expected}"


def sizes(data_dir: Path) -> tuple[int, int]:
    """Return the bytes of the topic's segments, and of deleted ones on disk."""
    live = deleted = 0
    for directory in data_dir.glob("__consumer_offsets-*"):
        for path in directory.glob("*.log*"):
            try:
                size = path.stat().st_size
            except FileNotFoundError:
                continue
            if path.name.endswith(DELETED):
                deleted += size
            else:
                live += size
    return live, deleted


async def connect(port: int) -> RawClient:
    client = await RawClient.connect(("127.0.0.1", port))
    find = {"key_type": 0, "coordinator_keys": ["g0"]}
    while (await client.ask(ApiKey.FIND_COORDINATOR, 4, find)).coordinators[0].error_code:
        pass
    return client


async def commit_all(
    port: int, committer: Committer, commits: int, rate: float, data: Path
) -> None:
    client = await connect(port)
    await create_topic(client, "topic", PARTITIONS)
    began = reported = time.monotonic()
    for number in range(commits):
        await committer.commit(client, number)
        now = time.monotonic()
        if began + number / rate > now:
            await asyncio.sleep(began + number / rate - now)  # noqa: TID251 - a client's pace
        if now - reported >= REPORT_S or number + 1 == commits:
            reported = now
            live, deleted = sizes(data)
            print(
                f"{number + 1:8d} commits in {now - began:5.0f} s: "
                f"{live / 1e6:7.2f} MB, {deleted / 1e6:7.2f} MB about to be removed"
            )
    await client.close()


async def check(port: int, committer: Committer) -> None:
    client = await connect(port)
    await committer.check(client)
    await client.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--commits", type=int, default=60_000)
    parser.add_argument("--rate", type=float, default=1000)
    parser.add_argument("--groups", type=int, default=50)
    parser.add_argument("--segment-bytes", type=int, default=1 << 20)
    options = parser.parse_args()
    settings = {
        "offsets.topic.num.partitions": "1",
        "offsets.topic.segment.bytes": str(options.segment_bytes),
        "log.cleaner.backoff.ms": "1000",
    }
    committer = Committer(options.groups)
    with tempfile.TemporaryDirectory(prefix="compaction-", dir=Path.cwd()) as directory:
        broker = Wirebroker(Path(directory), settings)
        broker.start()
        try:
            asyncio.run(
                commit_all(broker.port, committer, options.commits, options.rate, broker.data_dir)
            )
            broker.restart()
            asyncio.run(check(broker.port, committer))
            broker.kill9()
            broker.start()
            asyncio.run(check(broker.port, committer))
        finally:
            broker.stop()
    print(f"{len(committer.committed)} offsets are the same after a stop and after a kill")


if __name__ == "__main__":
    main()
