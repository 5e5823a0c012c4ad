"""Share sessions: the partitions that a member fetches from this broker.

    epoch of a request    meaning
    0                     a new session; an old one of the member is replaced
    n                     the session's n-th request: names only changes
    -1                    closes the session; the member's records are released

A session belongs to the connection that opened it, and ends with it.

Source: Kafka's ShareSessionCache, ShareSession, CachedSharePartition,
SharePartitionManager.newContext; KIP-932.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.codecs.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from wirebroker.base.clock import Steps

INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
_MAX_EPOCH: Final = 0x7FFFFFFF

# Limit for all sessions together, as for fetch sessions. Kafka has no such limit.
MOST_PARTITIONS: Final = 200_000
# Partitions before other work may run.
_STEP: Final = 200


def next_epoch(epoch: int) -> int:
    """Return the epoch of the next request."""
    return 1 if epoch == _MAX_EPOCH else epoch + 1


class SessionMember(NamedTuple):
    """A member of a share group."""

    group_id: str
    member_id: str


class ShareSessionPartition(NamedTuple):
    """A partition of a session."""

    topic_id: bytes
    partition: int


class _Cached:
    """What a session keeps of a partition."""

    __slots__ = ("must_send", "topic")

    def __init__(self, topic: str | None, *, must_send: bool) -> None:
        self.topic = topic
        self.must_send = must_send


class ShareFetchSession:
    """A member's session.

    Attributes:
        epoch: The epoch that the next request must have.
        connection_id: The connection that opened it.
        counted: Its partitions in `ShareSessions.partition_count`.
    """

    __slots__ = ("_partitions", "connection_id", "counted", "epoch", "member")

    def __init__(self, member: SessionMember, connection_id: str) -> None:
        self.member = member
        self.connection_id = connection_id
        self.epoch = next_epoch(INITIAL_EPOCH)
        self.counted = 0
        self._partitions: dict[ShareSessionPartition, _Cached] = {}

    def __len__(self) -> int:
        return len(self._partitions)

    def partitions(self) -> Collection[ShareSessionPartition]:
        """Return the partitions; the session must not change meanwhile."""
        return self._partitions.keys()

    def named(self) -> dict[ShareSessionPartition, str | None]:
        """Return the partitions with the topics' names when they were added; None if unknown."""
        return {partition: cached.topic for partition, cached in self._partitions.items()}

    def change(
        self,
        added: Mapping[ShareSessionPartition, str | None],
        forgotten: Iterable[ShareSessionPartition],
        *,
        must_send: bool = True,
    ) -> Steps[None]:
        """Apply the changes that a request names; the next response has the added partitions."""
        partitions = self._partitions
        count = 0
        for partition, topic in added.items():
            if partition not in partitions:
                partitions[partition] = _Cached(topic, must_send=must_send)
            count += 1
            if count % _STEP == 0:
                yield
        for partition in forgotten:
            partitions.pop(partition, None)
            count += 1
            if count % _STEP == 0:
                yield

    def must_send(
        self, partition: ShareSessionPartition, *, has_records: bool, has_error: bool
    ) -> bool:
        """Return whether a response must contain a result, and remember it.

        After an error the next response contains the partition, too. Partitions with records move
        to the end, so that others are read first.
        """
        cached = self._partitions.get(partition)
        if cached is None:
            return True
        must_send = cached.must_send or has_records or has_error
        cached.must_send = has_error
        if has_records:
            del self._partitions[partition]
            self._partitions[partition] = cached
        return must_send


def new_session(
    member: SessionMember,
    connection_id: str,
    named: Mapping[ShareSessionPartition, str | None],
) -> Steps[ShareFetchSession]:
    """Return a session to open; all partitions of its first response are sent anyway."""
    session = ShareFetchSession(member, connection_id)
    yield from session.change(named, (), must_send=False)
    return session


class ShareSessions:
    """The sessions of one broker.

    Attributes:
        partition_count: The number of partitions in all sessions.
    """

    __slots__ = (
        "_by_connection",
        "_max_sessions",
        "_member_counts",
        "_sessions",
        "partition_count",
    )

    # Every session is in _sessions, and in _by_connection under its connection.

    def __init__(self, max_sessions: int) -> None:
        self._max_sessions = max_sessions
        self._sessions: dict[SessionMember, ShareFetchSession] = {}
        self._by_connection: dict[str, dict[SessionMember, None]] = {}
        self._member_counts: dict[str, int] = {}
        self.partition_count = 0

    def __len__(self) -> int:
        return len(self._sessions)

    def get(self, member: SessionMember) -> ShareFetchSession | None:
        """Return a member's session."""
        return self._sessions.get(member)

    def has_members(self, group_id: str) -> bool:
        """Return whether a group has a session here."""
        return group_id in self._member_counts

    def open(self, session: ShareFetchSession) -> None:
        """Open a session; it replaces the member's old one.

        Raises:
            KafkaError: SHARE_SESSION_LIMIT_REACHED.
        """
        member = session.member
        self.remove(member)
        if len(self._sessions) >= self._max_sessions:
            raise KafkaError(ErrorCode.SHARE_SESSION_LIMIT_REACHED)
        self._check_room(len(session))
        self._sessions[member] = session
        self._count(session)
        self._by_connection.setdefault(session.connection_id, {})[member] = None
        group_id = member.group_id
        self._member_counts[group_id] = self._member_counts.get(group_id, 0) + 1

    def check(self, member: SessionMember, epoch: int) -> ShareFetchSession:
        """Return a member's session, in which a request has the given epoch.

        Raises:
            KafkaError: SHARE_SESSION_NOT_FOUND, INVALID_SHARE_SESSION_EPOCH.
        """
        session = self._sessions.get(member)
        if session is None:
            raise KafkaError(ErrorCode.SHARE_SESSION_NOT_FOUND)
        if epoch not in {FINAL_EPOCH, session.epoch}:
            raise KafkaError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
        return session

    def acknowledge(self, member: SessionMember, epoch: int) -> None:
        """Note a ShareAcknowledge of a member's session; expect the next epoch.

        Raises:
            KafkaError: INVALID_SHARE_SESSION_EPOCH, SHARE_SESSION_NOT_FOUND.
        """
        if epoch == INITIAL_EPOCH:
            raise KafkaError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
        session = self.check(member, epoch)
        if epoch != FINAL_EPOCH:
            session.epoch = next_epoch(session.epoch)

    def change(
        self,
        session: ShareFetchSession,
        added: Mapping[ShareSessionPartition, str | None],
        forgotten: Iterable[ShareSessionPartition],
    ) -> Steps[None]:
        """Expect the next epoch; return the steps that apply the changes of a request.

        Raises:
            KafkaError: SHARE_SESSION_LIMIT_REACHED; nothing has changed.
        """
        self._check_room(len(added))
        session.epoch = next_epoch(session.epoch)
        return self._change(session, added, forgotten)

    def _change(
        self,
        session: ShareFetchSession,
        added: Mapping[ShareSessionPartition, str | None],
        forgotten: Iterable[ShareSessionPartition],
    ) -> Steps[None]:
        for _ in session.change(added, forgotten):
            self._count(session)
            yield
        self._count(session)

    def _count(self, session: ShareFetchSession) -> None:
        """Count the partitions of a session, unless it has ended meanwhile."""
        if self._sessions.get(session.member) is session:
            self.partition_count += len(session) - session.counted
            session.counted = len(session)

    def _check_room(self, count: int) -> None:
        if self.partition_count + count > MOST_PARTITIONS:
            raise KafkaError(ErrorCode.SHARE_SESSION_LIMIT_REACHED)

    def remove(self, member: SessionMember) -> ShareFetchSession | None:
        """Remove a member's session."""
        session = self._sessions.pop(member, None)
        if session is None:
            return None
        self.partition_count -= session.counted
        members = self._by_connection[session.connection_id]
        del members[member]
        if not members:
            del self._by_connection[session.connection_id]
        group_id = member.group_id
        count = self._member_counts[group_id] - 1
        if count:
            self._member_counts[group_id] = count
        else:
            del self._member_counts[group_id]
        return session

    def clear(self) -> None:
        """Remove all sessions."""
        self._sessions.clear()
        self._by_connection.clear()
        self._member_counts.clear()
        self.partition_count = 0

    def first_of_connection(self, connection_id: str) -> SessionMember | None:
        """Return a member whose session a connection opened, or None."""
        return next(iter(self._by_connection.get(connection_id, ())), None)
