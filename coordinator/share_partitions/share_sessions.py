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
    from collections.abc import Iterable, Mapping

INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
_MAX_EPOCH: Final = 0x7FFFFFFF

# Limit for all sessions together, as for fetch sessions. Kafka has no such limit.
MOST_PARTITIONS: Final = 200_000


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
    """

    __slots__ = ("_partitions", "connection_id", "epoch", "member")

    def __init__(
        self,
        member: SessionMember,
        connection_id: str,
        named: Mapping[ShareSessionPartition, str | None],
    ) -> None:
        """Open the session; all partitions of its first response are sent anyway."""
        self.member = member
        self.connection_id = connection_id
        self.epoch = next_epoch(INITIAL_EPOCH)
        self._partitions = {
            partition: _Cached(topic, must_send=False) for partition, topic in named.items()
        }

    def __len__(self) -> int:
        return len(self._partitions)

    def named(self) -> dict[ShareSessionPartition, str | None]:
        """Return the partitions with the topics' names when they were added; None if unknown."""
        return {partition: cached.topic for partition, cached in self._partitions.items()}

    def change(
        self,
        added: Mapping[ShareSessionPartition, str | None],
        forgotten: Iterable[ShareSessionPartition],
    ) -> None:
        """Apply the changes that a request names; the next response has the added partitions."""
        for partition, topic in added.items():
            if partition not in self._partitions:
                self._partitions[partition] = _Cached(topic, must_send=True)
        for partition in forgotten:
            self._partitions.pop(partition, None)

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
        self._by_connection: dict[str, set[SessionMember]] = {}
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

    def open(
        self,
        member: SessionMember,
        connection_id: str,
        named: Mapping[ShareSessionPartition, str | None],
    ) -> ShareFetchSession:
        """Open a session; replace the member's old one.

        Raises:
            KafkaError: SHARE_SESSION_LIMIT_REACHED.
        """
        self.remove(member)
        if len(self._sessions) >= self._max_sessions:
            raise KafkaError(ErrorCode.SHARE_SESSION_LIMIT_REACHED)
        self._check_room(len(named))
        session = ShareFetchSession(member, connection_id, named)
        self.partition_count += len(session)
        self._sessions[member] = session
        self._by_connection.setdefault(connection_id, set()).add(member)
        group_id = member.group_id
        self._member_counts[group_id] = self._member_counts.get(group_id, 0) + 1
        return session

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
    ) -> None:
        """Apply the changes that a request names, and expect the next epoch.

        Raises:
            KafkaError: SHARE_SESSION_LIMIT_REACHED; nothing has changed.
        """
        self._check_room(len(added))
        before = len(session)
        session.change(added, forgotten)
        self.partition_count += len(session) - before
        session.epoch = next_epoch(session.epoch)

    def _check_room(self, count: int) -> None:
        if self.partition_count + count > MOST_PARTITIONS:
            raise KafkaError(ErrorCode.SHARE_SESSION_LIMIT_REACHED)

    def remove(self, member: SessionMember) -> ShareFetchSession | None:
        """Remove a member's session."""
        session = self._sessions.pop(member, None)
        if session is None:
            return None
        self.partition_count -= len(session)
        members = self._by_connection[session.connection_id]
        members.discard(member)
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

    def of_connection(self, connection_id: str) -> list[SessionMember]:
        """Return the members whose sessions a connection opened."""
        return sorted(self._by_connection.get(connection_id, ()))
