"""Connections to the other replicas of the metadata log.

A connection carries one request at a time, as the raft machine requires (RequestManager). Whatever
goes wrong is a `RequestFailure`: the machine decides when to try again.

Source: Kafka's KafkaNetworkChannel.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from wirebroker.base.log_bound import about_quorum
from wirebroker.base.threads import Work, in_thread
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError, MalformedFrameError
from wirebroker.coordinator.raft.protocol.messages import (
    KRaftVersionsRequest,
    KRaftVersionsResponse,
    RequestFailure,
    VoteRequest,
)
from wirebroker.net.client.errors import PeerError, UnsupportedVersionError, error_name
from wirebroker.net.client.settings import PeerAddress
from wirebroker.quorum.log.metadata_batches import checked_batches
from wirebroker.quorum.raft.raft_log import raft_batch
from wirebroker.quorum.raft.request_bodies import FIRST_WITH_PRE_VOTE, KEYS, body_of
from wirebroker.quorum.raft.response_bodies import response_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.coordinator.raft.model.log_point import RaftBatch
    from wirebroker.coordinator.raft.model.replica_key import Destination
    from wirebroker.coordinator.raft.protocol.messages import RaftRequest, RaftResponse
    from wirebroker.net.client.node import Node

    # The address of a replica that refused a whole request, and its error.
    OnRefused: TypeAlias = Callable[[PeerAddress, ErrorCode], None]

LOGGER = logging.getLogger(__name__)
_ABOUT_PEERS: Final = about_quorum()

KRAFT_VERSION = "kraft.version"
# The outcome of a request without an error.
RESPONDS: Final = "responds"
_NO_RESPONSE = RequestFailure(ErrorCode.BROKER_NOT_AVAILABLE)
# The answers of a peer to all requests of a node with a wrong configuration, and what to do.
_REFUSALS: Final = {
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "give its user ClusterAction on the cluster",
    ErrorCode.INCONSISTENT_CLUSTER_ID: "it belongs to another cluster: check its controllers",
}
# Records that are checked on the event loop: 200 batches, which take 2 ms.
_FEW_BYTES: Final = 16 << 10
# Voters come and go. Beyond this, the one that was used least recently is forgotten.
MAX_NODES: Final = 100


class RaftTransport(Protocol):
    """Sends requests to replicas."""

    async def request(self, destination: Destination, request: RaftRequest) -> RaftResponse:
        """Send a request; return the response, or a RequestFailure."""
        ...

    def outcome(self, node_id: int) -> str:
        """Return the outcome of the last request to a node, for a log line."""
        ...

    def abort(self) -> None:
        """Close all connections."""
        ...


class _Peer:
    """A node, and the outcome of the last request to it."""

    __slots__ = ("node", "outcome", "pending")

    def __init__(self, node: Node) -> None:
        self.node = node
        self.outcome = "no response yet"
        self.pending = 0


class RaftChannel:
    """The connections of one replica; `make_node` returns a connection that is opened when used."""

    __slots__ = ("_listener", "_make_node", "_on_refused", "_peers", "_timeout_s")

    def __init__(
        self,
        make_node: Callable[[PeerAddress], Node],
        *,
        listener: str,
        timeout_s: float,
        on_refused: OnRefused | None = None,
    ) -> None:
        """Reach the others on their listener `listener`.

        `on_refused` is called with the error when another one refuses a whole request.
        """
        self._make_node = make_node
        self._on_refused = on_refused
        self._listener = listener
        self._timeout_s = timeout_s
        # By node id, because a voter that moves has another address. The last used is the last one.
        self._peers: dict[int, _Peer] = {}

    async def request(self, destination: Destination, request: RaftRequest) -> RaftResponse:
        """See RaftTransport."""
        peer = self._peer(destination)
        outcome = RESPONDS
        peer.pending += 1
        self._forget_surplus()
        try:
            response = await self._response(peer.node, request)
        except UnsupportedVersionError:
            response = RequestFailure(ErrorCode.UNSUPPORTED_VERSION)
        except PeerError as error:
            LOGGER.debug("no response to %s: %s", type(request).__name__, error)
            response, outcome = _NO_RESPONSE, error.what
        except (KafkaError, MalformedFrameError) as error:
            LOGGER.warning(
                "%s sent an unusable response: %s", peer.node.address, error, extra=_ABOUT_PEERS
            )
            response, outcome = _NO_RESPONSE, "sent an unusable response"
        else:
            if isinstance(response, RequestFailure):
                outcome = error_name(response.error)
                self._note_refusal(peer, response.error, outcome)
        finally:
            peer.pending -= 1
        peer.outcome = outcome
        return response

    async def _response(self, node: Node, request: RaftRequest) -> RaftResponse:
        if isinstance(request, KRaftVersionsRequest):
            return await self._request_versions(node)
        return await self._request(node, request)

    def outcome(self, node_id: int) -> str:
        """See RaftTransport."""
        peer = self._peers.get(node_id)
        return "no request was sent to it" if peer is None else peer.outcome

    def abort(self) -> None:
        """See RaftTransport."""
        for peer in self._peers.values():
            peer.node.abort()

    def _peer(self, destination: Destination) -> _Peer:
        address = PeerAddress(destination.host, destination.port)
        peer = self._peers.pop(destination.node_id, None)
        if peer is None or peer.node.address != address:
            if peer is not None:
                peer.node.abort()
            peer = _Peer(self._make_node(address))
        self._peers[destination.node_id] = peer
        return peer

    def _forget_surplus(self) -> None:
        """Close the connections that were used least recently, without a request in flight."""
        surplus = len(self._peers) - MAX_NODES
        if surplus > 0:
            idle = [node_id for node_id, peer in self._peers.items() if not peer.pending]
            for node_id in idle[:surplus]:
                self._peers.pop(node_id).node.abort()

    def _note_refusal(self, peer: _Peer, error: ErrorCode, outcome: str) -> None:
        """Log a refused request, unless the last one had the same outcome, and report it."""
        if error in _REFUSALS and peer.outcome != outcome:
            LOGGER.warning(
                "%s refuses the requests of this node with %s: %s",
                peer.node.address,
                outcome,
                _REFUSALS[error],
                extra=_ABOUT_PEERS,
            )
        if self._on_refused is not None:
            self._on_refused(peer.node.address, error)

    async def _request(self, node: Node, request: RaftRequest) -> RaftResponse:
        key = KEYS[type(request)]
        answer = await node.request(key, partial(_body, request), timeout_s=self._timeout_s)
        read = partial(response_of, key, answer, listener=self._listener, batches=_batches)
        if key is ApiKey.FETCH and _has_many_records(answer):
            return await in_thread(Work.CODING, read)
        return read()

    async def _request_versions(self, node: Node) -> KRaftVersionsResponse:
        """Return what the peer said when the connection was opened."""
        connection = await node.connect(self._timeout_s)
        for feature in connection.versions.answer.supported_features or ():
            if feature.name == KRAFT_VERSION:
                return KRaftVersionsResponse(
                    ErrorCode.NONE, (feature.min_version, feature.max_version)
                )
        return KRaftVersionsResponse(ErrorCode.NONE)


def _body(request: RaftRequest, version: int) -> dict[str, Any]:
    if isinstance(request, VoteRequest) and request.is_pre_vote and version < FIRST_WITH_PRE_VOTE:
        raise UnsupportedVersionError("a voter", f"no pre-vote in version {version} of Vote")
    return body_of(request, version)


def _has_many_records(answer: Any) -> bool:
    """Return whether the records of a Fetch response take long to check."""
    return any(
        len(partition.records or b"") > _FEW_BYTES
        for topic in answer.responses
        for partition in topic.partitions
    )


def _batches(records: bytes) -> tuple[RaftBatch, ...]:
    return tuple(map(raft_batch, checked_batches(memoryview(records))))
