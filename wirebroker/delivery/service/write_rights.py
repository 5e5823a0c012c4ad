"""The login's rights to write to topics, asked for before a transaction.

If the first partition of a transaction is refused, librdkafka cannot abort the transaction
(INVALID_TXN_STATE), and the producer must start again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from wirebroker.delivery.service.rights import allowed_writes

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from wirebroker.base.clock import Clock

_ALLOWED_S: Final = 30.0
# A dead letter is final, and a right may have been granted a moment before.
_DENIED_S: Final = 1.0
# A client of the service may name any number of topics.
_MOST_TOPICS: Final = 10_000


class _Answer(NamedTuple):
    is_allowed: bool
    asked_at: float


class WriteRights:
    """The rights on topics, cached for some seconds.

    All rights are asked for in one request every 30 s, and those on a new topic at once. While no
    broker responds, the former answer counts, or the write is tried.
    """

    def __init__(self, admin: Any, clock: Clock, topics: Iterable[str] = ()) -> None:
        """`admin` is an AdminClient; `topics` are those that are written in any case."""
        self._admin = admin
        self._clock = clock
        self._answers = dict.fromkeys(topics, _Answer(is_allowed=True, asked_at=0.0))
        self._all_asked_at: float | None = None

    def may_write(self, topic: str) -> bool:
        """Return whether the login may write to a topic; True if there is no such topic."""
        now = self._clock.monotonic()
        if self._all_asked_at is None or now - self._all_asked_at >= _ALLOWED_S:
            self._all_asked_at = now
            self._ask(self._answers, now)
        answer = self._answers.get(topic)
        if answer is None or not (answer.is_allowed or now - answer.asked_at < _DENIED_S):
            self._ask([topic], now)
        return self._answers[topic].is_allowed

    def _ask(self, topics: Collection[str], now: float) -> None:
        if not topics:
            return
        allowed = allowed_writes(self._admin, topics)
        if len(self._answers) >= _MOST_TOPICS:
            self._answers.clear()
        for topic, is_allowed in allowed.items():
            former = self._answers.get(topic)
            if is_allowed is not None:
                self._answers[topic] = _Answer(is_allowed, now)
            elif former is None:
                self._answers[topic] = _Answer(is_allowed=True, asked_at=now)
            else:
                self._answers[topic] = former._replace(asked_at=now)
