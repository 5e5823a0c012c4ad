"""Sessions of logged-in users, kept in memory: a restart of the console ends them."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from wirebroker.base.clock import Clock

IDLE_S: Final = 3600.0
LONGEST_S: Final = 12 * 3600.0
_MOST: Final = 1000
_MOST_OF_USER: Final = 20
_ID_BYTES: Final = 32


def new_session_id() -> str:
    """Return a random value of a session's cookie."""
    return secrets.token_urlsafe(_ID_BYTES)


class LoginSession:
    """A user's session.

    Attributes:
        user: The user's name.
        secret: The hash of the user's password at login; a changed password ends the session.
        ended: Set when the session has ended.
    """

    __slots__ = ("began_at", "ended", "secret", "used_at", "user")

    def __init__(self, user: str, secret: str, now: float) -> None:
        self.user = user
        self.secret = secret
        self.began_at = self.used_at = now
        self.ended = asyncio.Event()


class LoginSessions:
    """All sessions. They end an hour after the last page, and 12 hours after the login."""

    # laws: len(_by_key) <= _MOST; a user has at most _MOST_OF_USER

    __slots__ = ("_by_key", "_clock")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # By hash of the id, least recently used first.
        self._by_key: OrderedDict[bytes, LoginSession] = OrderedDict()

    def begin(self, user: str, secret: str) -> str:
        """Begin a session and return its id; the least recently used ones make room."""
        self._end_expired()
        own = [key for key, session in self._by_key.items() if session.user == user]
        for key in own[: max(0, len(own) - _MOST_OF_USER + 1)]:
            self._end(key)
        while len(self._by_key) >= _MOST:
            self._end(next(iter(self._by_key)))
        session_id = new_session_id()
        self._by_key[_key(session_id)] = LoginSession(user, secret, self._clock.monotonic())
        return session_id

    def get(self, session_id: str, *, is_used: bool) -> LoginSession | None:
        """Return a session that has not ended; `is_used` restarts its idle time."""
        key = _key(session_id)
        session = self._by_key.get(key)
        if session is None:
            return None
        now = self._clock.monotonic()
        if self._is_expired(session, now):
            self._end(key)
            return None
        if is_used:
            session.used_at = now
            self._by_key.move_to_end(key)
        return session

    def end(self, session_id: str) -> None:
        """End a session, if it exists."""
        key = _key(session_id)
        if key in self._by_key:
            self._end(key)

    def _end_expired(self) -> None:
        now = self._clock.monotonic()
        for key, session in list(self._by_key.items()):
            if self._is_expired(session, now):
                self._end(key)

    def _is_expired(self, session: LoginSession, now: float) -> bool:
        return now - session.used_at >= IDLE_S or now - session.began_at >= LONGEST_S

    def _end(self, key: bytes) -> None:
        self._by_key.pop(key).ended.set()


def _key(session_id: str) -> bytes:
    return hashlib.sha256(session_id.encode("utf-8", "surrogatepass")).digest()
