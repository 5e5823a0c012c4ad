"""A follower's side of a fetch session (KIP-227): the leader remembers what is not said again.

    wanted      what is to be fetched of each partition by now
    unsaid      of these, what the leader was not told yet
    forgotten   what it is to fetch no more, and was not told either

A request carries (session id, epoch): (0, 0) asks for a session and names all; (id, n) goes on and
names what is unsaid and forgotten. If the leader has no room for a session it answers id 0, and the
next request names all again. Whatever goes wrong begins a new session and closes the old one by
(id, 0).

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
    """What a follower asks of one partition."""

    leader_epoch: int
    fetch_offset: int
    # Of the last batch that it has; -1 if it has none.
    last_fetched_epoch: int
    log_start_offset: int


class SessionRequest(NamedTuple):
    """What the next Fetch has to say."""

    session_id: int
    session_epoch: int
    asked: dict[PartitionKey, FollowedOffsets]
    forgotten: list[PartitionKey]


class FollowerSession:
    """One session with one leader; one request at a time."""

    __slots__ = ("_epoch", "_forgotten", "_session_id", "_unsaid", "_wanted")

    # _unsaid is a part of _wanted; nothing is in both _forgotten and _wanted.

    def __init__(self) -> None:
        self._session_id = _NO_SESSION
        self._epoch = _INITIAL_EPOCH
        self._wanted: dict[PartitionKey, FollowedOffsets] = {}
        self._unsaid: dict[PartitionKey, None] = {}
        self._forgotten: dict[PartitionKey, None] = {}

    def __len__(self) -> int:
        return len(self._wanted)

    def asked(self, key: PartitionKey) -> FollowedOffsets | None:
        """Return what a partition's last result answers, until something else is wanted of it."""
        return self._wanted.get(key)

    def want(self, key: PartitionKey, offsets: FollowedOffsets) -> None:
        """Have the next request ask for this."""
        self._forgotten.pop(key, None)
        if self._wanted.get(key) != offsets:
            self._wanted[key] = offsets
            self._unsaid[key] = None

    def forget(self, key: PartitionKey) -> None:
        """Have the next request ask for a partition no more."""
        if self._wanted.pop(key, None) is not None:
            self._unsaid.pop(key, None)
            self._forgotten[key] = None

    def next_request(self) -> SessionRequest:
        """Return what to send now; what changes until it is answered, the next one says."""
        is_whole = self._epoch == _INITIAL_EPOCH
        asked = self._wanted if is_whole else {key: self._wanted[key] for key in self._unsaid}
        forgotten = [] if is_whole else list(self._forgotten)
        # It is said once: if it does not arrive, a new session names all that is wanted.
        self._unsaid.clear()
        self._forgotten.clear()
        return SessionRequest(self._session_id, self._epoch, dict(asked), forgotten)

    def answered(self, error: int, session_id: int) -> None:
        """Take over what the leader says of the session."""
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
        """Begin a new session, in the place of one of which nothing is known."""
        self._epoch = _INITIAL_EPOCH

    def check(self) -> None:
        """Assert the laws above."""
        assert self._unsaid.keys() <= self._wanted.keys()
        assert self._forgotten.keys().isdisjoint(self._wanted)
