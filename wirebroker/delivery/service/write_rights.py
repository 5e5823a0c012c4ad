"""The login's rights to write to topics, checked before a transaction.

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
# A dead letter is final, so a right that was just granted must be noticed soon.
_DENIED_S: Final = 1.0
# After a request without a response.
_SILENT_S: Final = 5.0
# A client of the service may name any number of topics.
_MOST_TOPICS: Final = 10_000


class _Answer(NamedTuple):
    is_allowed: bool
    asked_at: float


class WriteRights:
    """The rights on topics, cached.

    One request every 30 s refreshes all topics; a new topic is requested immediately, and denied
    ones again after a second. While no broker responds, the last response counts. Without one, the
    topic may be written.
    """

    def __init__(self, admin: Any, clock: Clock, topics: Iterable[str] = ()) -> None:
        """`admin` is an AdminClient; `topics` are those that are written in any case."""
        self._admin = admin
        self._clock = clock
        self._answers = dict.fromkeys(topics, _Answer(is_allowed=True, asked_at=0.0))
        self._all_asked_at: float | None = None
        self._silent_until: float | None = None

    def may_write(self, topic: str) -> bool:
        """Return whether the login may write to a topic; True if there is no such topic."""
        now = self._clock.monotonic()
        if self._silent_until is None or now >= self._silent_until:
            self._refresh(topic, now)
        answer = self._answers.get(topic)
        return answer is None or answer.is_allowed

    def _refresh(self, topic: str, now: float) -> None:
        answer = self._answers.get(topic)
        if self._all_asked_at is None or now - self._all_asked_at >= _ALLOWED_S:
            self._all_asked_at = now
            self._ask({*self._answers, topic}, now)
        elif answer is None:
            self._ask({topic}, now)
        elif not answer.is_allowed and now - answer.asked_at >= _DENIED_S:
            self._ask({name for name, each in self._answers.items() if not each.is_allowed}, now)

    def _ask(self, topics: Collection[str], now: float) -> None:
        allowed = allowed_writes(self._admin, topics)
        if not allowed:
            self._silent_until = now + _SILENT_S
        if len(self._answers) >= _MOST_TOPICS:
            self._answers.clear()
        for topic, is_allowed in allowed.items():
            self._answers[topic] = _Answer(is_allowed is not False, now)
