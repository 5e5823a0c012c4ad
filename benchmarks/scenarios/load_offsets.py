"""The load time of a `__consumer_offsets` partition with many commits, and others' latency.

    python -m benchmarks.scenarios.load_offsets [--commits 1000000] [--groups 1000]

Every commit is its own batch. During the load another client repeats ApiVersions; its slowest
response is reported.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from pathlib import Path

from tests.support.protocol.raw_client import RawClient
from wirebroker.broker.server import Server
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.coordinator_records import CommittedOffset, offset_commit_record
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.records.batch import build_batch
from wirebroker.config import Config
from wirebroker.net.loop_watch import LoopWatch
from wirebroker.storage.log.append import AppendOrigin

PROFILE = {"offsets.topic.replication.factor": "1", "offsets.topic.num.partitions": "1"}


async def fill(config: Config, commits: int, groups: int) -> None:
    """Create the topic by a request, then append the commits directly to its log."""
    server = Server(config)
    await server.start()
    client = await RawClient.connect(server.address)
    find = {"coordinator_keys": ["g0"]}
    while (await client.ask(ApiKey.FIND_COORDINATOR, 4, find)).coordinators[0].error_code:
        pass
    assert server.broker is not None
    partitions, _ = server.broker.replicas.find("__consumer_offsets", b"", by_id=False)
    log = partitions[0].log
    now_ms = server.clock.now_ms()
    for number in range(commits):
        committed = CommittedOffset(number, 0, "", now_ms)
        record = offset_commit_record(f"g{number % groups}", "topic", number % 7, committed)
        records = memoryview(build_batch([(record.key, record.value, ())], timestamp_ms=now_ms))
        log.append_as_leader(
            records, leader_epoch=0, now_ms=now_ms, origin=AppendOrigin.COORDINATOR
        )
    await client.close()
    await server.stop()


async def load(config: Config, groups: int) -> tuple[float, float]:
    """Return seconds until the last group is served, and the slowest other response in ms."""
    server = Server(config)
    began = time.monotonic()
    await server.start()
    client = await RawClient.connect(server.address)
    other = await RawClient.connect(server.address)
    fetch = {"groups": [{"group_id": f"g{groups - 1}", "topics": None}]}
    slowest = 0.0
    is_loaded = False
    while not is_loaded:
        sent_at = time.monotonic()
        await other.ask(ApiKey.API_VERSIONS, 0, {})
        slowest = max(slowest, time.monotonic() - sent_at)
        answer = (await client.ask(ApiKey.OFFSET_FETCH, 8, fetch)).groups[0]
        is_loaded = answer.error_code != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert answer.error_code == 0, answer
    assert answer.topics
    seconds = time.monotonic() - began
    await client.close()
    await other.close()
    await server.stop()
    return seconds, slowest * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--commits", type=int, default=1_000_000)
    parser.add_argument("--groups", type=int, default=1_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="load-offsets-", dir=Path.cwd()) as directory:
        config = Config({"log.dirs": directory, "listeners": "PLAINTEXT://127.0.0.1:0", **PROFILE})
        asyncio.run(fill(config, options.commits, options.groups))
        watch = LoopWatch(with_cpu_time=True)
        with asyncio.Runner(loop_factory=watch.new_event_loop) as runner:
            seconds, slowest_ms = runner.run(load(config, options.groups))
    print(f"{options.commits} commits loaded and served in {seconds:.2f} s")
    print(f"slowest other response meanwhile: {slowest_ms:.1f} ms")
    print(f"longest hold of the loop: {watch.cpu_holds_ms.largest:.1f} ms of CPU")


if __name__ == "__main__":
    main()
