"""Responds to requests to a replica, which wait for the responses of its machine.

    a request          ->  RequestReceived with a token            ->  the machine's step
    Respond with it    ->  records or a snapshot's bytes are read  ->  the response

The machine says which records or bytes of a snapshot a response contains. If the log was truncated
before they are read, the response is an error.

Source: Kafka's KafkaRaftClient.handleRequest.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, NamedTuple

from wirebroker.base.threads import Work, in_thread
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.raft.protocol.events import RequestCancelled, RequestReceived
from wirebroker.coordinator.raft.protocol.messages import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    FetchSnapshotResponse,
    LogFetchResponse,
    RequestFailure,
)
from wirebroker.quorum.log.metadata_store import read_batches
from wirebroker.quorum.raft.request_bodies import request_of
from wirebroker.quorum.raft.response_bodies import response_body

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from wirebroker.base.clock import Clock
    from wirebroker.codecs.api_keys import ApiKey
    from wirebroker.codecs.primitives import Buffer
    from wirebroker.coordinator.raft.protocol.messages import (
        DescribedReplica,
        KnownLeader,
        RaftResponse,
    )
    from wirebroker.quorum.raft.raft_log import RaftLog
    from wirebroker.quorum.raft.raft_steps import RaftSteps
    from wirebroker.storage.files import FileSlice

LOGGER = logging.getLogger(__name__)


class Reply(NamedTuple):
    """A request of another node; the future gets the response's body."""

    key: ApiKey
    version: int
    listener: str
    future: asyncio.Future[dict[str, Any]]


class OwnQuestion(NamedTuple):
    """A question of this node itself."""

    future: asyncio.Future[RaftResponse]


class RaftReplies:
    """The waiting requests of a replica."""

    __slots__ = ("_clock", "_is_ended", "_leader", "_log", "_steps", "_waiting")

    def __init__(
        self, steps: RaftSteps, log: RaftLog, clock: Clock, *, leader: Callable[[], KnownLeader]
    ) -> None:
        """Store the parts; `leader` returns the known leader, for errors."""
        self._steps = steps
        self._log = log
        self._clock = clock
        self._leader = leader
        self._waiting: set[Reply | OwnQuestion] = set()
        self._is_ended = False

    async def respond(
        self, key: ApiKey, version: int, body: Any, *, listener: str
    ) -> dict[str, Any]:
        """Return the response to a request of another node; see RaftNode.respond."""
        try:
            request = request_of(key, version, body)
        except KafkaError as error:
            return response_body(key, version, RequestFailure(error.code), listener=listener)
        if self._is_ended:
            failure = RequestFailure(ErrorCode.BROKER_NOT_AVAILABLE)
            return response_body(key, version, failure, listener=listener)
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        reply = Reply(key, version, listener, future)
        self._waiting.add(reply)
        self._steps.handle(RequestReceived(reply, request))
        try:
            return await future
        except asyncio.CancelledError:
            self._steps.handle(RequestCancelled(reply))
            raise
        finally:
            self._waiting.discard(reply)

    async def describe(self) -> DescribeQuorumResponse:
        """Return the quorum's progress for this node itself; see RaftNode.describe."""
        if self._is_ended:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        question = OwnQuestion(asyncio.get_running_loop().create_future())
        self._waiting.add(question)
        self._steps.handle(RequestReceived(question, DescribeQuorumRequest()))
        try:
            response = await question.future
        finally:
            self._waiting.discard(question)
        if response.error is not ErrorCode.NONE:
            raise KafkaError(response.error)
        assert isinstance(response, DescribeQuorumResponse), response
        since_1970_ms = self._clock.now_ms() - self._steps.now_ms()
        return response._replace(
            voters=tuple(_at(voter, since_1970_ms) for voter in response.voters),
            observers=tuple(_at(observer, since_1970_ms) for observer in response.observers),
        )

    def give(self, token: object, response: RaftResponse) -> Coroutine[Any, Any, None] | None:
        """Give a response to its request; return the work if something must be read for it."""
        if isinstance(token, OwnQuestion):
            _resolve_own(token, response)
            return None
        assert isinstance(token, Reply), token
        if isinstance(response, LogFetchResponse) and response.records is not None:
            # Sliced now: after a later change of the log it could contain another leader's bytes.
            piece = self._log.slice(response.records)
            return self._give_records(token, response, piece, self._log.generation)
        if isinstance(response, FetchSnapshotResponse) and response.bytes_to_read is not None:
            return self._give_snapshot(token, response)
        _resolve(token, response)
        return None

    def end(self) -> None:
        """Refuse all waiting and later requests, because the replica has ended."""
        self._is_ended = True
        for reply in self._waiting:
            if isinstance(reply, OwnQuestion):
                _resolve_own(reply, RequestFailure(ErrorCode.NOT_LEADER_OR_FOLLOWER))
            else:
                _resolve(reply, RequestFailure(ErrorCode.BROKER_NOT_AVAILABLE))

    async def _give_records(
        self, reply: Reply, response: LogFetchResponse, piece: FileSlice | None, generation: int
    ) -> None:
        data: Buffer = b""
        if piece is not None:
            try:
                data = await in_thread(Work.WARMING, read_batches, piece)
            except (OSError, KafkaError):  # perhaps a snapshot has replaced it
                LOGGER.debug("cannot read the metadata log for a fetch", exc_info=True)
                error = ErrorCode.UNKNOWN_SERVER_ERROR
                response = LogFetchResponse(error, self._leader())
        if self._log.generation != generation:
            error = ErrorCode.NOT_LEADER_OR_FOLLOWER
            response, data = LogFetchResponse(error, self._leader()), b""
        _resolve(reply, response, data)

    async def _give_snapshot(self, reply: Reply, response: FetchSnapshotResponse) -> None:
        point, requested = response.snapshot, response.bytes_to_read
        assert point is not None
        assert requested is not None
        try:
            data = await self._log.read_snapshot(point, requested)
        except (OSError, KafkaError):  # perhaps it was replaced meanwhile
            LOGGER.debug("cannot read the metadata snapshot %s", point, exc_info=True)
            response = FetchSnapshotResponse(ErrorCode.SNAPSHOT_NOT_FOUND, self._leader())
            data = b""
        _resolve(reply, response, data)


def _resolve(reply: Reply, response: RaftResponse, data: Buffer = b"") -> None:
    if not reply.future.done():
        body = response_body(reply.key, reply.version, response, listener=reply.listener, data=data)
        reply.future.set_result(body)


def _resolve_own(question: OwnQuestion, response: RaftResponse) -> None:
    if not question.future.done():
        question.future.set_result(response)


def _at(replica: DescribedReplica, since_1970_ms: int) -> DescribedReplica:
    """Return a replica with times since 1970 instead of the machine's."""

    def at(time_ms: int) -> int:
        return time_ms + since_1970_ms if time_ms >= 0 else time_ms

    return replica._replace(
        last_fetch_ms=at(replica.last_fetch_ms),
        last_caught_up_ms=at(replica.last_caught_up_ms),
    )
