"""The follower's side of a fetch session (KIP-227): requests contain only changes.

A request has (session id, epoch): (0, 0) requests a session and names all partitions; (id, n)
continues it and names the changes. If the leader returns id 0, the next request names all again.
After an error (id, 0) replaces the session.

Source: Kafka's FetchSessionHandler.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from wirebroker.codecs.errors import ErrorCode

_NO_SESSION: Final = 0
_INITIAL_EPOCH: Final = 0
_MAX_EPOCH: Final = 0x7FFFFFFF

# Topic id and index.
PartitionKey = tuple[bytes, int]


class FollowedOffsets(NamedTuple):
    """The fetch position of one partition."""

    leader_epoch: int
    fetch_offset: int
    # Of the log's last batch, or -1.
    last_fetched_epoch: int
    log_start_offset: int


class SessionRequest(NamedTuple):
    """The session's part of the next Fetch."""

    session_id: int
    session_epoch: int
    asked: dict[PartitionKey, FollowedOffsets]
    forgotten: list[PartitionKey]


class FetchSessionHandler:
    """A session with one leader; one request at a time."""

    __slots__ = ("_changed", "_epoch", "_forgotten", "_partitions", "_session_id")

    # _changed is a subset of _partitions; _forgotten and _partitions are disjoint.

    def __init__(self) -> None:
        self._session_id = _NO_SESSION
        self._epoch = _INITIAL_EPOCH
        self._partitions: dict[PartitionKey, FollowedOffsets] = {}
        self._changed: dict[PartitionKey, None] = {}
        self._forgotten: dict[PartitionKey, None] = {}

    def __len__(self) -> int:
        return len(self._partitions)

    def asked(self, key: PartitionKey) -> FollowedOffsets | None:
        """Return the position that a partition's last result refers to, until `want` changes it."""
        return self._partitions.get(key)

    def want(self, key: PartitionKey, offsets: FollowedOffsets) -> None:
        """Fetch a partition from this position in the next request."""
        self._forgotten.pop(key, None)
        if self._partitions.get(key) != offsets:
            self._partitions[key] = offsets
            self._changed[key] = None

    def forget(self, key: PartitionKey) -> None:
        """Stop fetching a partition."""
        if self._partitions.pop(key, None) is not None:
            self._changed.pop(key, None)
            self._forgotten[key] = None

    def next_request(self) -> SessionRequest:
        """Return what to send now."""
        is_whole = self._epoch == _INITIAL_EPOCH
        requested = (
            self._partitions if is_whole else {key: self._partitions[key] for key in self._changed}
        )
        forgotten = [] if is_whole else list(self._forgotten)
        # If this request is lost, a new session names everything.
        self._changed.clear()
        self._forgotten.clear()
        return SessionRequest(self._session_id, self._epoch, dict(requested), forgotten)

    def answered(self, error: int, session_id: int) -> None:
        """Apply the session fields of a response."""
        if error == ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
            self._session_id, self._epoch = _NO_SESSION, _INITIAL_EPOCH
        elif error:
            self.failed()
        elif session_id == _NO_SESSION:
            self._session_id, self._epoch = _NO_SESSION, _INITIAL_EPOCH
        else:
            self._session_id = session_id
            self._epoch = self._epoch + 1 if self._epoch < _MAX_EPOCH else 1

    def failed(self) -> None:
        """Start a new session after an error."""
        self._epoch = _INITIAL_EPOCH

    def check(self) -> None:
        """Assert that all changed partitions are followed, and no forgotten one is."""
        assert self._changed.keys() <= self._partitions.keys()
        assert self._forgotten.keys().isdisjoint(self._partitions)
