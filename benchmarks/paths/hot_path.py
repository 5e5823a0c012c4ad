"""CPU of the broker's own code per request, without sockets or generators.

    python -m benchmarks.paths.hot_path [--profile CASE] [--against CHECKOUT] [--rounds 9] [--only
        TEXT]

A dispatcher in this process repeatedly gets the same frames. Small changes of the code show even on
a busy machine. The figure is the least of many short rounds, by the thread's CPU clock. `--against`
runs another checkout in turn, each round in its own process.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import json
import os
import pstats
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).resolve().parents[2]
_ROUND_REQUESTS = 2_000
_ROUNDS_IN_A_PROCESS = 15
_SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.streams.initial.rebalance.delay.ms": "0",
}
# More partitions than a connection remembers (api/data/prepared_produce.py).
_MANY = 500
_STAMP_MS = 1_700_000_000_000
# The disk is not measured.
_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None


def cases(
    dispatch: Callable[[memoryview], Any], commit: dict[str, Any], beats: dict[str, bytes]
) -> Iterator[tuple[str, list[bytes]]]:
    """Return (name, frames of one round) of each case.

    `commit` is the OffsetCommit of a group's member; `beats` are the heartbeats of members.
    """
    from tests.support.protocol.raw_client import request_frame
    from tests.support.protocol.requests import fetch_request, produce_request
    from wirebroker.codecs.api_keys import ApiKey
    from wirebroker.codecs.records.batch import build_batch

    def frame(key: ApiKey, version: int, body: dict[str, Any]) -> bytes:
        return request_frame(key, version, body)[4:]

    def produce(partitions: int, batch: bytes) -> bytes:
        named = {("t", index): batch for index in range(partitions)}
        return frame(ApiKey.PRODUCE, 11, produce_request(named))

    def produce_to(index: int, batch: bytes) -> bytes:
        return frame(ApiKey.PRODUCE, 11, produce_request({("m", index): batch}))

    small = bytes(build_batch([(None, b"x" * 100, ())], timestamp_ms=-1))
    repeat = _ROUND_REQUESTS
    yield "produce 100 B", [produce(1, small)] * repeat
    yield "produce 100 B to 6 partitions", [produce(6, small)] * (repeat // 4)
    yield "produce 100 B, rotating partitions", [produce_to(n, small) for n in range(_MANY)] * 2
    large = bytes(build_batch([(None, b"x" * 65_000, ())], timestamp_ms=-1))
    yield "produce 64 KiB", [produce(1, large)] * (repeat // 20)

    def fetch(offset: int, max_bytes: int) -> bytes:
        offsets = {("t", 7): offset}
        return frame(ApiKey.FETCH, 12, fetch_request(offsets, partition_max_bytes=max_bytes))

    filled = {("t", 7): small}
    for _ in range(2000):
        dispatch(_writable(frame(ApiKey.PRODUCE, 11, produce_request(filled))))
    yield "fetch 64 KiB, same offset", [fetch(0, 65_536)] * repeat
    yield "fetch, next offsets", [fetch(offset, 2_000) for offset in range(1000)]
    yield "fetch 1 KiB, same offset", [fetch(0, 1_024)] * repeat
    stamped = bytes(build_batch([(None, b"x" * 100, ())], timestamp_ms=_STAMP_MS))
    dispatch(_writable(frame(ApiKey.PRODUCE, 11, produce_request({("t", 6): stamped}))))
    rows = [{"partition_index": 6, "timestamp": _STAMP_MS}]
    by_time = {"replica_id": -1, "topics": [{"name": "t", "partitions": rows}]}
    yield "list offsets by time", [frame(ApiKey.LIST_OFFSETS, 5, by_time)] * repeat
    yield "commit an offset", [frame(ApiKey.OFFSET_COMMIT, 7, commit)] * (repeat // 2)
    for kind, beat in beats.items():
        yield f"heartbeat of a {kind} group", [beat] * (repeat // 2)
    yield "metadata of a topic", [frame(ApiKey.METADATA, 12, {"topics": [{"name": "t"}]})] * repeat


def measure(only: str, profiled: str | None) -> dict[str, float]:
    return asyncio.run(_measure(only, profiled))


async def _measure(only: str, profiled: str | None) -> dict[str, float]:
    from tests.support.brokers.servers import broker_of, client_of, running
    from tests.support.protocol.requests import create_topic
    from wirebroker.api.registry import REGISTRY
    from wirebroker.net.dispatch import Dispatcher
    from wirebroker.request.session import Session

    results: dict[str, float] = {}
    with tempfile.TemporaryDirectory(dir=_MEMORY, prefix="wirebroker-bench-") as directory:
        serving = running(Path(directory), settings=_SETTINGS)
        async with serving as server, client_of(server) as client:
            await create_topic(client, "t", 8)
            await create_topic(client, "m", _MANY)
            dispatcher = Dispatcher(broker_of(server), REGISTRY)
            info = _connection_info(Session)
            commit = await _join(client)
            beats = await _join_groups(client)
            for name, frames in cases(lambda frame: dispatcher(frame, info), commit, beats):
                if only not in name or (profiled and profiled != name):
                    continue
                _check(dispatcher(_writable(frames[-1]), info), name)
                if profiled:
                    _profile(dispatcher, frames, info)
                else:
                    results[name] = _least(dispatcher, frames, info)
    return results


async def _join(client: Any) -> dict[str, Any]:
    """Form a group of one member; return its OffsetCommit v7."""
    from wirebroker.base.clock import pause
    from wirebroker.codecs.api_keys import ApiKey

    fetch = {"group_id": "g", "topics": []}
    async with asyncio.timeout(60):
        while (  # the topic is created, then loaded
            (await client.ask(ApiKey.FIND_COORDINATOR, 2, {"key": "g", "key_type": 0})).error_code
            or (await client.ask(ApiKey.OFFSET_FETCH, 5, fetch)).error_code
        ):
            await pause(0.01)
    joining: dict[str, Any] = {
        "group_id": "g",
        "session_timeout_ms": 1_800_000,
        "rebalance_timeout_ms": 60_000,
        "member_id": "",
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": b""}],
    }
    joined = await client.ask(ApiKey.JOIN_GROUP, 3, joining)
    member = {"group_id": "g", "member_id": joined.member_id}
    share = [{"member_id": joined.member_id, "assignment": b""}]
    sync = {**member, "generation_id": joined.generation_id, "assignments": share}
    synced = await client.ask(ApiKey.SYNC_GROUP, 2, sync)
    assert (joined.error_code, synced.error_code) == (0, 0), (joined, synced)
    partition = {"partition_index": 0, "committed_offset": 7, "committed_metadata": ""}
    return {
        **member,
        "generation_id_or_member_epoch": joined.generation_id,
        "topics": [{"name": "t", "partitions": [partition]}],
    }


async def _join_groups(client: Any) -> dict[str, bytes]:
    """Form a group of each newer kind; return heartbeats of their members without changes."""
    from benchmarks.load.group_members import KINDS
    from tests.support.protocol.raw_client import request_frame

    beats: dict[str, bytes] = {}
    for kind, member_class in KINDS.items():
        member = member_class(f"{kind}-group", f"{kind}-member")
        async with asyncio.timeout(60):
            while not member.is_at_rest:
                await member.beat(client)
        body = {
            "group_id": member.group,
            "member_id": member.member_id,
            "member_epoch": member.epoch,
        }
        beats[kind] = request_frame(member.key, member.version, body)[4:]
    return beats


def _connection_info(kind: Any) -> Any:
    return kind(
        connection_id="",
        peer="127.0.0.1:1",
        listener_name="PLAINTEXT",
        local_host="127.0.0.1",
        local_port=9092,
    )


def _least(dispatcher: Any, frames: list[bytes], info: Any) -> float:
    rounds: list[float] = []
    for _ in range(_ROUNDS_IN_A_PROCESS):
        copies = [_writable(frame) for frame in frames]  # an append writes offsets into its frame
        began = time.thread_time()
        for frame in copies:
            dispatcher(frame, info)
        rounds.append((time.thread_time() - began) / len(frames))
    return min(rounds) * 1e6


def _profile(dispatcher: Any, frames: list[bytes], info: Any) -> None:
    copies = [_writable(frame) for frame in frames]
    profile = cProfile.Profile(time.thread_time)
    profile.enable()
    for frame in copies:
        dispatcher(frame, info)
    profile.disable()
    pstats.Stats(profile).sort_stats("tottime").print_stats(30)


def _check(answer: Any, name: str) -> None:
    # Correlation id, tags, (throttle time, error, session), topics, a name of one letter,
    # partitions, index.
    at = {"produce": 4 + 1 + 1 + 2 + 1 + 4, "fetch": 4 + 1 + 10 + 1 + 2 + 1 + 4}.get(
        name.partition(" ")[0]
    )
    if at is not None:
        # After the length.
        code = int.from_bytes(bytes(answer[0])[4 + at : 4 + at + 2], signed=True)
        assert code == 0, f"{name}: error {code}"


def _writable(frame: bytes) -> memoryview:
    return memoryview(bytearray(frame))


def _in_a_process(checkout: Path, only: str) -> dict[str, float]:
    environment = {**os.environ, "PYTHONPATH": str(checkout.absolute())}
    command = [sys.executable, str(Path(__file__).resolve()), "--one", "--only", only]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    result: dict[str, float] = json.loads(done.stdout)
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="cases with this in their name")
    parser.add_argument("--profile", metavar="CASE", help="profile one case instead")
    parser.add_argument("--against", type=Path, metavar="CHECKOUT", help="alternate with it")
    parser.add_argument("--rounds", type=int, default=9, help="processes of each checkout")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one or options.profile:
        times = measure(options.only, options.profile)
        if options.one:
            print(json.dumps(times))
        return 0
    checkouts = [ROOT, *([options.against] if options.against else [])]
    runs: list[list[dict[str, float]]] = [[] for _ in checkouts]
    for _ in range(options.rounds):
        for checkout, checkout_runs in zip(checkouts, runs, strict=True):
            checkout_runs.append(_in_a_process(checkout, options.only))
    for name in runs[0][0]:
        of_each = [statistics.median(run[name] for run in checkout_runs) for checkout_runs in runs]
        print(f"{name:<32}", *(f"{value:8.2f} us" for value in of_each), end="")
        if len(of_each) == 2:
            print(f"   theirs / ours {of_each[1] / of_each[0]:.3f}", end="")
        print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
