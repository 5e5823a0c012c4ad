"""Replicas of a metadata log in one process: real files and messages, a network in memory."""

from __future__ import annotations

import asyncio
import random
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

from wirebroker.base.clock import SystemClock, pause
from wirebroker.codecs.api_keys import SPOKEN_VERSIONS, ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.messages import (
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from wirebroker.codecs.metadata_records import RecordType, metadata_record
from wirebroker.codecs.records.control import KRaftVersion, Voter, VoterEndpoint
from wirebroker.config import Config
from wirebroker.coordinator.controller.controller_machine import ClusterChange
from wirebroker.coordinator.controller.image.image_builder import ImageBuilder
from wirebroker.coordinator.raft.model.quorum_settings import QuorumSettings
from wirebroker.coordinator.raft.model.replica_key import Destination, ReplicaKey
from wirebroker.coordinator.raft.model.voter_set import VoterSet
from wirebroker.coordinator.raft.protocol.messages import (
    KRaftVersionsRequest,
    KRaftVersionsResponse,
    RequestFailure,
)
from wirebroker.coordinator.raft.states.replica_core import Identity
from wirebroker.quorum.image.metadata_follower import MetadataFollower
from wirebroker.quorum.log.metadata_batches import BatchBuilder, checked_batches
from wirebroker.quorum.log.metadata_snapshot import FORMATTED, encode_first_snapshot
from wirebroker.quorum.log.metadata_store import DIRECTORY_NAME
from wirebroker.quorum.raft.raft_log import raft_batch
from wirebroker.quorum.raft.raft_opening import RaftSurroundings, open_replica
from wirebroker.quorum.raft.request_bodies import KEYS, body_of
from wirebroker.quorum.raft.response_bodies import response_of
from wirebroker.storage.files import Files

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from wirebroker.codecs.records.control import ControlRecord
    from wirebroker.coordinator.raft.protocol.messages import RaftRequest, RaftResponse
    from wirebroker.quorum.raft.raft_actions import QuorumLeadership
    from wirebroker.quorum.raft.raft_node import RaftNode

CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qk"
LISTENER = "CONTROLLER"
FAST = QuorumSettings(
    election_timeout_ms=100, fetch_timeout_ms=200, election_backoff_max_ms=50, fetch_max_wait_ms=50
)


def voter(node_id: int) -> Voter:
    """Return a voter's description; its address is its id."""
    endpoint = VoterEndpoint(LISTENER, "localhost", node_id)
    return Voter(node_id, directory_of(node_id), (endpoint,), 0, 1)


def directory_of(node_id: int) -> bytes:
    """Return a node's directory id."""
    return bytes([node_id] * 16)


class Member:
    """One replica; `leaderships` are those that it has reported."""

    def __init__(self, quorum: QuorumInMemory, node_id: int, directory: Path) -> None:
        self.quorum = quorum
        self.node_id = node_id
        self.directory = directory
        self.follower = MetadataFollower(SystemClock())
        self.leaderships: list[QuorumLeadership] = []
        self.failures: list[str] = []
        self.node: RaftNode | None = None

    async def start(self) -> None:
        """Open the files and begin."""
        own = voter(self.node_id)
        identity = Identity(
            key=ReplicaKey(self.node_id, own.directory_id),
            cluster_id=CLUSTER_ID,
            endpoints=own.endpoints,
            listener_name=LISTENER,
            bootstrap=[
                Destination(-2 - index, "localhost", node_id)
                for index, node_id in enumerate(self.quorum.bootstrap)
            ],
        )
        self.follower = MetadataFollower(SystemClock())
        surroundings = RaftSurroundings(
            files=Files(),
            clock=SystemClock(),
            random=random.Random(self.node_id),
            transport=Link(self.quorum, self.node_id),
            follower=self.follower,
            on_leadership=self.leaderships.append,
            on_applied=self._look_for_snapshot,
            config=Config({"log.dirs": "data", **self.quorum.settings}),
            on_unusable=self.failures.append,
            on_disk_failure=lambda error: self.failures.append(str(error)),
            on_voters=lambda: None,
        )
        self.node = await open_replica(
            str(self.directory),
            identity,
            surroundings,
            settings=FAST,
            static_voters=VoterSet(map(voter, self.quorum.static_voters)),
        )
        self.node.start()

    def _look_for_snapshot(self) -> None:
        if self.node is not None:
            self.node.look_for_snapshot(self.follower.image)

    async def kill(self) -> None:
        """End without resigning."""
        node, self.node = self.node, None
        assert node is not None
        await node.abandon()

    @property
    def log(self) -> bytes:
        """The bytes of the log's first segment."""
        return (self.directory / DIRECTORY_NAME / f"{0:020d}.log").read_bytes()

    @property
    def snapshots(self) -> list[str]:
        """The names of the snapshots on disk, without the one of a storage tool."""
        names = sorted(path.name for path in (self.directory / DIRECTORY_NAME).glob("*.checkpoint"))
        return [name for name in names if name != FORMATTED.file_name]

    def append(self, name: str) -> int:
        """Append a topic as the controller of this node would; return the end offset."""
        assert self.node is not None
        epoch, end = self.node.leadership.epoch, self.node.end_offset
        builder = BatchBuilder(base_offset=end, leader_epoch=epoch, timestamp_ms=1)
        record = metadata_record(RecordType.TOPIC, name=name, topic_id=name.encode().ljust(16))
        builder.add(record)
        builder.finish_batch()
        image, change = (
            ImageBuilder(self.follower.image)
            .apply_all([record])
            .build(offset=builder.next_offset, epoch=epoch)
        )
        self.node.append(epoch, builder.batches, ClusterChange(builder.batches, image, change))
        return builder.next_offset


class Link:
    """The network as one node sees it: every message is encoded and decoded."""

    def __init__(self, quorum: QuorumInMemory, node_id: int) -> None:
        self._quorum = quorum
        self._node_id = node_id

    async def request(self, destination: Destination, request: RaftRequest) -> RaftResponse:
        """Ask the member whose id is the port."""
        if self._quorum.is_cut(self._node_id, destination.port):
            await pause(0.02)
            return RequestFailure(ErrorCode.BROKER_NOT_AVAILABLE)
        member = self._quorum.members[destination.port]
        if member.node is None:
            return RequestFailure(ErrorCode.BROKER_NOT_AVAILABLE)
        if isinstance(request, KRaftVersionsRequest):
            return KRaftVersionsResponse(ErrorCode.NONE, (0, 1))
        key = KEYS[type(request)]
        version = min(SPOKEN_VERSIONS[key].max_version, self._quorum.versions.get(key, 99))
        frame = encode_request(key, version, body_of(request, version))
        body = await member.node.respond(
            key, version, decode_request(key, version, frame), listener=LISTENER
        )
        if self._quorum.is_cut(self._node_id, destination.port):
            return RequestFailure(ErrorCode.BROKER_NOT_AVAILABLE)
        answer = decode_response(key, version, encode_response(key, version, body))
        return response_of(key, answer, listener=LISTENER, batches=_batches)

    def outcome(self, node_id: int) -> str:
        """Nothing is known."""
        return f"node {node_id}"

    def abort(self) -> None:
        """Nothing is open."""


def _batches(records: bytes) -> Any:
    return tuple(map(raft_batch, checked_batches(memoryview(records))))


class QuorumInMemory:
    """A quorum of nodes 1 to `count`."""

    def __init__(
        self,
        home: Path,
        count: int,
        *,
        is_dynamic: bool = False,
        settings: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.settings = settings
        self.home = home
        self.versions: dict[ApiKey, int] = {}
        self._cut: set[int] = set()
        ids = range(1, count + 1)
        self.static_voters = () if is_dynamic else tuple(ids)
        self.bootstrap = tuple(ids)
        self.members: dict[int, Member] = {}
        for node_id in ids:
            self._make(home, node_id, ids if is_dynamic else ())

    def _make(self, home: Path, node_id: int, first_voters: Any) -> None:
        directory = home / str(node_id)
        (directory / DIRECTORY_NAME).mkdir(parents=True)
        if first_voters:
            controls: list[ControlRecord] = [
                KRaftVersion(1),
                VoterSet(map(voter, first_voters)).to_record(),
            ]
            path = directory / DIRECTORY_NAME / FORMATTED.file_name
            path.write_bytes(encode_first_snapshot(1, [], voters=controls))
        self.members[node_id] = Member(self, node_id, directory)

    async def add(self, node_id: int) -> Member:
        """Start a node that is no voter."""
        self._make(self.home, node_id, ())
        await self.members[node_id].start()
        return self.members[node_id]

    async def __aenter__(self) -> Self:
        """Start all."""
        for member in self.members.values():
            await member.start()
        return self

    async def __aexit__(self, *exception: object) -> None:
        """Kill all that run."""
        for member in self.members.values():
            if member.node is not None:
                await member.kill()

    def cut(self, *node_ids: int) -> None:
        """Separate these nodes from all others; without any, heal."""
        self._cut = set(node_ids)

    def is_cut(self, one: int, other: int) -> bool:
        """Return whether two nodes cannot reach each other."""
        return (one in self._cut) != (other in self._cut)

    async def leader(self, *, after: int = 0) -> Member:
        """Wait for a leader of an epoch after `after` whose first record is applied."""

        def has_begun(member: Member) -> bool:
            if member.node is None or member.node.leadership.epoch <= after:
                return False
            start = member.node.leadership.start_offset
            return start is not None and member.follower.image.offset > start

        await self.until(lambda: any(map(has_begun, self.members.values())))
        return next(filter(has_begun, self.members.values()))

    async def until(self, is_so: Callable[[], bool], timeout_s: float = 10.0) -> None:
        """Wait until a condition holds."""
        async with asyncio.timeout(timeout_s):
            while not is_so():
                await pause(0.005)

    async def until_applied(self, offset: int, *, but: tuple[int, ...] = ()) -> None:
        """Wait until all running members have applied the records before an offset."""
        members = [
            member
            for member in self.members.values()
            if member.node is not None and member.node_id not in but
        ]
        await self.until(lambda: all(one.follower.image.offset >= offset for one in members))
