"""The length of a request's path: modules, functions and changes of folder.

    python -m benchmarks.paths.request_path

Counts calls of wirebroker's Python functions (`sys.setprofile`) for a Produce, a prepared one, a
Fetch, an OffsetCommit and a CreateTopics over a memory transport. The folder (wirebroker/net,
storage/log) changes if a function calls, or returns to, one in another folder. Plain Python only:
compiled code has no frames.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import FrameType

    from tests.support.protocol.raw_client import RawClient
    from wirebroker.net.memory_transport import MemoryPeer

ROOT = Path(__file__).resolve().parents[2]
_ROOMS = ("wirebroker", "codecs", "storage", "coordinator")


class Trail:
    """The calls of a request, and how often the caller was in another folder."""

    def __init__(self) -> None:
        self.functions: Counter[str] = Counter()
        self.room_changes = 0

    def note(self, frame: FrameType, event: str, _argument: Any) -> None:
        """Count a call or a return, for sys.setprofile."""
        location = _source_file(frame)
        caller = _source_file(frame.f_back) if frame.f_back is not None else None
        if location is None or event not in {"call", "return"}:
            return
        if event == "call":
            self.functions[f"{location} {frame.f_code.co_qualname}"] += 1
        if caller is not None and Path(caller).parent != Path(location).parent:
            self.room_changes += 1

    @property
    def modules(self) -> set[str]:
        return {function.split()[0] for function in self.functions}


def _source_file(frame: FrameType | None) -> str | None:
    """Return a frame's file relative to the checkout; None if it is not wirebroker's."""
    if frame is None:
        return None
    try:
        path = Path(frame.f_code.co_filename).resolve().relative_to(ROOT)
    except ValueError:
        return None
    is_ours = path.parts[0] in _ROOMS and path.name != "memory_transport.py"
    return path.as_posix() if is_ours else None


async def trails() -> dict[str, Trail]:
    """Return each kind's trail, for its second or third request on a connection."""
    from tests.support.brokers.servers import client_of, running
    from tests.support.protocol.raw_client import request_frame
    from tests.support.protocol.requests import create_topic, fetch_request, produce_request
    from wirebroker.codecs.api_keys import ApiKey
    from wirebroker.codecs.records.batch import build_batch
    from wirebroker.net.memory_transport import connect

    batch = bytes(build_batch([(None, b"x" * 100, ())], timestamp_ms=-1))
    produce = request_frame(ApiKey.PRODUCE, 11, produce_request({("t", 0): batch}))
    request = fetch_request({("t", 0): 0}, partition_max_bytes=1024)
    fetch = request_frame(ApiKey.FETCH, 12, request)
    commit = request_frame(ApiKey.OFFSET_COMMIT, 8, _offset_commit())
    creations = [request_frame(ApiKey.CREATE_TOPICS, 7, _creation(name)) for name in ("u", "v")]
    results: dict[str, Trail] = {}
    with tempfile.TemporaryDirectory(prefix="wirebroker-path-") as directory:
        settings = {"offsets.topic.replication.factor": "1", "offsets.topic.num.partitions": "1"}
        running_server = running(Path(directory), settings=settings)
        async with running_server as server, client_of(server) as client:
            await create_topic(client, "t", 1)
            table = server.reception.table
            assert table is not None
            await connect(table).exchange(produce)  # the first one opens files
            fresh = connect(table)
            results["Produce"] = await _follow(fresh, produce)
            await fresh.exchange(produce)
            results["prepared Produce"] = await _follow(fresh, produce)
            await fresh.exchange(fetch)
            results["Fetch"] = await _follow(fresh, fetch)
            await _until_committed(client)
            await fresh.exchange(commit)
            results["OffsetCommit"] = await _follow(fresh, commit)
            await fresh.exchange(creations[0])
            results["CreateTopics"] = await _follow(fresh, creations[1])
    return results


async def _until_committed(client: RawClient) -> None:
    from wirebroker.base.clock import pause
    from wirebroker.codecs.api_keys import ApiKey

    async with asyncio.timeout(10):
        while True:
            lookup = {"key_type": 0, "coordinator_keys": ["g"]}
            await client.ask(ApiKey.FIND_COORDINATOR, 4, lookup)
            response = await client.ask(ApiKey.OFFSET_COMMIT, 8, _offset_commit())
            if not response.topics[0].partitions[0].error_code:
                return
            await pause(0.05)


def _offset_commit() -> dict[str, Any]:
    partition = {"partition_index": 0, "committed_offset": 1, "committed_metadata": ""}
    topics = [{"name": "t", "partitions": [partition]}]
    return {"group_id": "g", "generation_id_or_member_epoch": -1, "topics": topics}


def _creation(name: str) -> dict[str, Any]:
    topic = {"name": name, "num_partitions": 1, "replication_factor": 1}
    return {"topics": [topic], "timeout_ms": 30_000}


async def _follow(peer: MemoryPeer, frame: bytes) -> Trail:
    trail = Trail()
    peer.send(frame)
    sys.setprofile(trail.note)
    try:
        await peer.receive()
    finally:
        sys.setprofile(None)
    return trail


def main() -> None:
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    sys.stdout.write(f"{'':<20}{'modules':>10}{'functions':>12}{'folder changes':>18}\n")
    for name, trail in asyncio.run(trails()).items():
        counts = f"{len(trail.modules):>10}{len(trail.functions):>12}{trail.room_changes:>18}"
        sys.stdout.write(f"{name:<20}{counts}\n")


if __name__ == "__main__":
    main()
