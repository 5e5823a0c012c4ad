"""The requests to a replica that wait for their responses.

The machine says which records or bytes of a snapshot a response contains; they are read here. If
the log was truncated meanwhile, the response is an error.

Source: Kafka's KafkaRaftClient.handleRequest.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, NamedTuple

from wirebroker.base.threads import Work, in_thread
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.raft.protocol.messages import (
    FetchSnapshotResponse,
    LogFetchResponse,
    RequestFailure,
)
from wirebroker.quorum.log.metadata_store import read_batches
from wirebroker.quorum.raft.response_bodies import response_body

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from wirebroker.codecs.api_keys import ApiKey
    from wirebroker.codecs.primitives import Buffer
    from wirebroker.coordinator.raft.protocol.messages import KnownLeader, RaftResponse
    from wirebroker.quorum.raft.raft_log import RaftLog
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
    """The waiting requests; `leader` returns the known leader, for errors."""

    __slots__ = ("_leader", "_log", "_waiting")

    def __init__(self, log: RaftLog, leader: Callable[[], KnownLeader]) -> None:
        self._log = log
        self._leader = leader
        self._waiting: set[Reply | OwnQuestion] = set()

    def expect(self, key: ApiKey, version: int, listener: str) -> Reply:
        """Note a request; return its token."""
        reply = Reply(key, version, listener, asyncio.get_running_loop().create_future())
        self._waiting.add(reply)
        return reply

    def expect_own(self) -> OwnQuestion:
        """Record a request of this node itself; return its token."""
        question = OwnQuestion(asyncio.get_running_loop().create_future())
        self._waiting.add(question)
        return question

    def forget(self, reply: Reply | OwnQuestion) -> None:
        """Remove a request that has its response, or whose connection is closed."""
        self._waiting.discard(reply)

    def give(self, token: object, response: RaftResponse) -> Coroutine[Any, Any, None] | None:
        """Give a response to its request; return the work if something must be read for it."""
        if isinstance(token, OwnQuestion):
            _resolve_own(token, response)
            return None
        assert isinstance(token, Reply), token
        if isinstance(response, LogFetchResponse) and response.records is not None:
            # Found now: a later change of the log would give another leader's bytes.
            piece = self._log.slice(response.records)
            return self._give_records(token, response, piece, self._log.generation)
        if isinstance(response, FetchSnapshotResponse) and response.bytes_to_read is not None:
            return self._give_snapshot(token, response)
        _resolve(token, response)
        return None

    def end(self) -> None:
        """Refuse all waiting requests, because the replica has ended."""
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
