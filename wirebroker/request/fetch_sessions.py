"""Incremental fetch sessions: the broker remembers the partitions of a fetcher (KIP-227).

A session's first request (epoch 0) names all its partitions. Each later one carries the next epoch
and names only changes, and the response omits partitions without news.

    request (id, epoch)     meaning                               session id of the response
    (0, -1) or (id, -1)     no session; an old one is closed      0
    (0, 0) or (id, 0)       a new session; an old one is closed   new id, or 0 if there is no room
    (id, n)                 the session's n-th request            id

Source: Kafka's FetchSession for sizes, eviction and error codes.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.controller.image.topic_names import MAX_NAME_LENGTH
from wirebroker.request.fetch_session import FetchSession, SessionPartition

if TYPE_CHECKING:
    import random

    from wirebroker.base.clock import Steps
    from wirebroker.codecs.hot.fetch import FetchRequest
    from wirebroker.request.fetch_session import Connected, PartitionKey, Results

INITIAL_EPOCH = 0
FINAL_EPOCH = -1
MAX_EPOCH = 0x7FFFFFFF

# An unused session of this age gives way to any new one.
EVICTION_MS = 120_000

# Limit for the sessions of all consumers, and for those of all followers. A partition takes at most
# 0.8 KB, since a request with an impossible name gets no session. Kafka has no such limit.
MOST_PARTITIONS = 200_000

# The first version of Fetch with topic ids.
TOPIC_ID_VERSION = 13


class FetchContext:
    """One resolved Fetch request.

    Attributes:
        partitions: What to read, in order, after `resume`.
        chosen: The results to send, after `select`, which also sets `session_id` and `error`.
    """

    __slots__ = (
        "_epoch",
        "_is_of_replica",
        "_owner",
        "_session",
        "_sessions",
        "_wants_session",
        "chosen",
        "error",
        "partitions",
        "session_id",
    )

    def __init__(
        self,
        sessions: FetchSessions,
        partitions: list[SessionPartition],
        *,
        session: FetchSession | None = None,
        wants_session: bool = False,
        error: ErrorCode = ErrorCode.NONE,
        owner: Connected | None = None,
        is_of_replica: bool = False,
    ) -> None:
        self._owner = owner
        self._is_of_replica = is_of_replica
        self._sessions = sessions
        self._wants_session = wants_session
        self._session = session
        self._epoch = session.epoch if session is not None else 0
        self.partitions = partitions
        self.session_id = session.session_id if session is not None else 0
        self.error = error
        self.chosen: Results = []

    def resume(self, request: FetchRequest, requested: list[SessionPartition]) -> Steps[None]:
        """Apply the request's changes to its session, if it has one."""
        session = self._session
        if session is None:
            return
        yield from session.update(
            requested, _forgotten(request, uses_topic_ids=session.uses_topic_ids)
        )
        if session.partitions:
            self.partitions = [cached.asked for cached in session.partitions.values()]
        else:
            self._sessions.close(session.session_id)
            self._session = None
            self.session_id = 0
            self.partitions = requested

    def skip(self) -> None:
        """Send no results, and change no session."""
        self.chosen = []
        if self._session is not None and self._session.epoch != self._epoch:
            self.error = ErrorCode.INVALID_FETCH_SESSION_EPOCH

    def select(self, results: Results, *, version: int, now_ms: int) -> Steps[None]:
        """Choose the results to send; set `error` if a later request used the session."""
        if self._wants_session:
            self.chosen = results
            created = self._sessions.create(
                now_ms,
                len(results),
                uses_topic_ids=version >= TOPIC_ID_VERSION,
                owner=self._owner,
                is_of_replica=self._is_of_replica,
            )
            if created is not None:
                self.session_id = created.session_id
                yield from created.remember(results)
        elif self._session is None:
            self.chosen = results
        elif self._session.epoch != self._epoch:
            self.error = ErrorCode.INVALID_FETCH_SESSION_EPOCH
        else:
            yield from self._session.select(results, self.chosen)


class FetchSessions:
    """This broker's sessions, at most `slots`."""

    __slots__ = ("_random", "_sessions", "slots")

    def __init__(self, slots: int, rng: random.Random) -> None:
        self.slots = slots
        self._random = rng
        # Least recently used first.
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def partition_count(self) -> int:
        """The number of partitions in all sessions."""
        return sum(len(session.partitions) for session in self._sessions.values())

    def context(
        self,
        request: FetchRequest,
        requested: list[SessionPartition],
        *,
        version: int,
        now_ms: int,
        owner: Connected | None = None,
    ) -> FetchContext:
        """Return a request's context; `owner` is its connection."""
        is_keepable = all(
            len(partition.topic) <= MAX_NAME_LENGTH and partition.topic.isascii()
            for partition in requested
        )
        if request.session_epoch in {INITIAL_EPOCH, FINAL_EPOCH}:
            self.close(request.session_id)
            return FetchContext(
                self,
                requested,
                wants_session=request.session_epoch == INITIAL_EPOCH and is_keepable,
                owner=owner,
                is_of_replica=request.replica_id >= 0,
            )
        session = self._sessions.get(request.session_id)
        error = _session_error(session, request.session_epoch, version)
        if session is None or error != ErrorCode.NONE:
            return FetchContext(self, [], error=error)
        added = session.count_new(requested)
        if not is_keepable or (
            added
            and not self._make_room(now_ms, added, session, is_of_replica=session.is_of_replica)
        ):
            # Its client then sends a full request.
            self.close(session.session_id)
            return FetchContext(self, [], error=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        session.owner = owner
        # First, so that a repeated request is refused.
        session.epoch = session.epoch + 1 if session.epoch < MAX_EPOCH else 1
        session.last_used_ms = now_ms
        self._sessions.move_to_end(session.session_id)
        return FetchContext(self, [], session=session)

    def close(self, session_id: int) -> None:
        """Close a session if it exists."""
        self._sessions.pop(session_id, None)

    def create(
        self,
        now_ms: int,
        size: int,
        *,
        uses_topic_ids: bool,
        owner: Connected | None = None,
        is_of_replica: bool = False,
    ) -> FetchSession | None:
        """Open a session for `size` partitions unless others have precedence."""
        if not self._make_room(now_ms, size, is_of_replica=is_of_replica):
            return None
        if len(self._sessions) >= self.slots and not self._evict(now_ms, size):
            return None
        session_id = self._random.randint(1, MAX_EPOCH)
        while session_id in self._sessions:
            session_id = self._random.randint(1, MAX_EPOCH)
        session = FetchSession(
            session_id,
            now_ms,
            owner,
            uses_topic_ids=uses_topic_ids,
            is_of_replica=is_of_replica,
        )
        self._sessions[session_id] = session
        return session

    def _make_room(
        self,
        now_ms: int,
        size: int,
        growing: FetchSession | None = None,
        *,
        is_of_replica: bool,
    ) -> bool:
        """Close sessions until `size` more partitions fit; return whether they do.

        Unused sessions go first, then the largest, if larger than the one that needs room.
        Followers and consumers do not displace each other.
        """
        needed = size if growing is None else size + len(growing.partitions)
        alike = [
            candidate
            for candidate in self._sessions.values()
            if candidate.is_of_replica is is_of_replica
        ]
        room = MOST_PARTITIONS - size - sum(len(candidate.partitions) for candidate in alike)
        if room >= 0:
            return True
        others = [candidate for candidate in alike if candidate is not growing]
        others.sort(
            key=lambda candidate: (
                not self._is_unused(candidate, now_ms),
                -len(candidate.partitions),
            )
        )
        for session in others:
            if not self._is_unused(session, now_ms) and len(session.partitions) <= needed:
                return False
            room += len(session.partitions)
            del self._sessions[session.session_id]
            if room >= 0:
                return True
        return False

    @staticmethod
    def _is_unused(session: FetchSession, now_ms: int) -> bool:
        return session.has_ended_owner or now_ms - session.last_used_ms > EVICTION_MS

    def _evict(self, now_ms: int, size: int) -> bool:
        """Close an unused session, or the smallest old one if the new one is larger."""
        for session in self._sessions.values():
            if self._is_unused(session, now_ms):
                del self._sessions[session.session_id]
                return True
        evictable = [
            (len(session.partitions), session_id)
            for session_id, session in self._sessions.items()
            if now_ms - session.created_ms > EVICTION_MS
        ]
        if not evictable or (size, 0) < min(evictable):
            return False
        del self._sessions[min(evictable)[1]]
        return True


def requested_partitions(request: FetchRequest) -> list[SessionPartition]:
    """Return a request's partitions; if one is named twice, its last entry counts."""
    partitions = [
        SessionPartition(topic.name, topic.topic_id, partition)
        for topic in request.topics
        for partition in topic.partitions
    ]
    if len(partitions) > 1:
        once = {(entry.topic, entry.topic_id, entry.wanted.index): entry for entry in partitions}
        if len(once) < len(partitions):
            return list(once.values())
    return partitions


def _session_error(session: FetchSession | None, epoch: int, version: int) -> ErrorCode:
    if session is None:
        return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    if session.epoch != epoch:
        return ErrorCode.INVALID_FETCH_SESSION_EPOCH
    if session.uses_topic_ids != (version >= TOPIC_ID_VERSION):
        return ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
    return ErrorCode.NONE


def _forgotten(request: FetchRequest, *, uses_topic_ids: bool) -> list[PartitionKey]:
    return [
        (topic_id if uses_topic_ids else name, index)
        for name, topic_id, indexes in request.forgotten_topics
        for index in indexes
    ]
