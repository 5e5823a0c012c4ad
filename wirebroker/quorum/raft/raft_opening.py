"""Opens a replica of the metadata log: its files, its state of elections, its first image.

Source: Kafka's KafkaRaftClient.initialize and QuorumState.initialize.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.codecs.errors import KafkaError, MalformedFrameError
from wirebroker.config.rows.row import StartError
from wirebroker.coordinator.raft.model.election_state import (
    ElectionState,
    decode_election_state,
)
from wirebroker.coordinator.raft.raft_replica import RaftReplica
from wirebroker.quorum.raft.committed_records import (
    CommittedRecords,
    apply_all,
    image_of_snapshot,
)
from wirebroker.quorum.raft.raft_log import RaftLog
from wirebroker.quorum.raft.raft_node import ELECTION_FILE, RaftNode

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.base.clock import Clock
    from wirebroker.config import Config
    from wirebroker.coordinator.raft.model.quorum_settings import QuorumSettings
    from wirebroker.coordinator.raft.model.voter_history import VoterHistory
    from wirebroker.coordinator.raft.model.voter_set import VoterSet
    from wirebroker.coordinator.raft.states.replica_core import Identity
    from wirebroker.coordinator.raft.states.request_manager import RandomSource
    from wirebroker.quorum.image.metadata_follower import MetadataFollower
    from wirebroker.quorum.raft.raft_actions import QuorumLeadership
    from wirebroker.quorum.raft.raft_channel import RaftTransport
    from wirebroker.quorum.raft.raft_log import LoadedLog
    from wirebroker.storage.files import Files

# What to do about an unreadable log.
_WRITTEN_HERE: Final = "start the newer broker that wrote it, or restore it from a backup"
_FETCHED: Final = "remove that folder; the broker fetches it again from the controllers"


class RaftSurroundings(NamedTuple):
    """The parts of its process that a replica uses and informs.

    Attributes:
        on_leadership: Called with each new leader or epoch, within a step of the machine.
        on_applied: Called when committed records have been applied.
        on_unusable: Called with the reason when committed records cannot be applied.
        on_disk_failure: Called when the disk has failed, which ends the replica.
        on_voters: Called when other voters count, within a step of the machine.
    """

    files: Files
    clock: Clock
    random: RandomSource
    transport: RaftTransport
    follower: MetadataFollower
    config: Config
    on_leadership: Callable[[QuorumLeadership], None]
    on_applied: Callable[[], None]
    on_unusable: Callable[[str], None]
    on_disk_failure: Callable[[OSError], None]
    on_voters: Callable[[], None]


async def open_replica(
    log_directory: str,
    identity: Identity,
    surroundings: RaftSurroundings,
    *,
    settings: QuorumSettings,
    static_voters: VoterSet,
) -> RaftNode:
    """Open the log of a locked and formatted directory; the replica is not started yet.

    `static_voters` count while the log contains none (kraft.version 0).

    Raises:
        StartError: The log or the state of elections cannot be read.
        OSError: The disk failed.
    """
    files, clock = surroundings.files, surroundings.clock
    log = RaftLog(log_directory, files=files, clock=clock)
    remedy = _WRITTEN_HERE if identity.is_voter_capable else _FETCHED
    try:
        loaded = log.load(static_voters, may_refetch=not identity.is_voter_capable)
        is_only_voter = identity.is_voter_capable and loaded.history.last_voters.is_only_voter(
            identity.key
        )
        await _apply_loaded(log, loaded, surroundings, is_all_committed=is_only_voter)
    except (KafkaError, MalformedFrameError) as error:
        raise StartError(
            f"the metadata log in {log.store.directory} cannot be read: {error}", remedy
        ) from None
    election = _election(files, log.store.directory, remedy)
    if identity.is_voter_capable:
        if not is_only_voter:
            # A killed process may have left records that are only in the page cache.
            await log.sync()
        _check_voters(log, loaded.history, election, identity)
    replica = RaftReplica(
        identity,
        settings=settings,
        log=loaded.view,
        history=loaded.history,
        election=election,
        random=surroundings.random,
    )
    committed = CommittedRecords(
        log,
        surroundings.follower,
        clock=clock,
        on_applied=surroundings.on_applied,
        on_failure=surroundings.on_unusable,
    )
    return RaftNode(
        replica,
        log,
        files=files,
        clock=clock,
        transport=surroundings.transport,
        committed=committed,
        config=surroundings.config,
        on_leadership=surroundings.on_leadership,
        on_failure=surroundings.on_disk_failure,
        on_voters=surroundings.on_voters,
    )


async def _apply_loaded(
    log: RaftLog, loaded: LoadedLog, surroundings: RaftSurroundings, *, is_all_committed: bool
) -> None:
    follower = surroundings.follower
    if loaded.snapshot is not None:
        newest = log.store.snapshots[-1]
        follower.image = await image_of_snapshot(loaded.snapshot, newest, surroundings.clock)
    if is_all_committed:
        # It is checked before anything is written.
        await apply_all(log, follower)


def _check_voters(
    log: RaftLog, history: VoterHistory, election: ElectionState, identity: Identity
) -> None:
    """Refuse to take part in a quorum whose other voters this node cannot reach.

    A single voter could otherwise write another continuation of the cluster's metadata.

    Raises:
        StartError.
    """
    voters, own_id = history.last_voters, identity.key.replica_id
    if voters.ids == frozenset((own_id,)) and not voters.is_voter(identity.key):
        raise StartError(
            f"{log.store.directory} names node {own_id} as the only voter, but with another "
            "directory.id than this directory has",
            "restore the directory.id in meta.properties, or the whole directory from a backup",
        )
    others = voters.ids - {own_id}
    if history.static_voters.is_only_voter(identity.key) and not history.kraft_version:
        others = frozenset(election.voters) - {own_id}
    elif identity.endpoints:
        return
    if others:
        raise StartError(
            f"{log.store.directory} belongs to a quorum with other voters: {sorted(others)}",
            "name them in controller.quorum.voters, add a listener to controller.listener.names,"
            " or choose another directory",
        )


def _election(files: Files, directory: str, remedy: str) -> ElectionState:
    path = f"{directory}/{ELECTION_FILE}"
    if not files.exists(path):
        return ElectionState()
    try:
        return decode_election_state(files.read_file(path))
    except ValueError as error:
        raise StartError(f"{path} cannot be read: {error}", remedy) from None
