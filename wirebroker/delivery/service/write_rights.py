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
# A client of the service may name any number of topics. More than there are in a transaction.
_MOST_TOPICS: Final = 200_000


class _Answer(NamedTuple):
    is_allowed: bool
    asked_at: float


class WriteRights:
    """The rights on topics, cached.

    One request every 30 s refreshes all topics; new ones are requested together by `confirm`, and
    denied ones again after a second. While no broker responds, the last response counts. Without
    one, the topic may be written.
    """

    def __init__(self, admin: Any, clock: Clock, topics: Iterable[str] = ()) -> None:
        """`admin` is an AdminClient; `topics` are those that are written in any case."""
        self._admin = admin
        self._clock = clock
        self._answers = dict.fromkeys(topics, _Answer(is_allowed=True, asked_at=0.0))
        # Topics that were said to be writable without an answer.
        self._unconfirmed: set[str] = set()
        self._all_asked_at: float | None = None
        self._silent_until: float | None = None

    def may_write(self, topic: str) -> bool:
        """Return whether the login may write to a topic; True if there is no such topic.

        It is also True for a new topic, whose right `confirm` then checks.
        """
        now = self._clock.monotonic()
        answer = self._answers.get(topic)
        if self._is_old(now):
            self._ask_for_all([topic], now)
        elif answer is None:
            self._unconfirmed.add(topic)
        elif not answer.is_allowed and now - answer.asked_at >= _DENIED_S:
            self._ask({name for name, each in self._answers.items() if not each.is_allowed}, now)
        return self._is_allowed(topic)

    def confirm(self) -> bool:
        """Request the rights on new topics; return False if one that seemed writable is denied."""
        topics, self._unconfirmed = self._unconfirmed, set()
        return not self.denied(topics)

    def denied(self, topics: Collection[str]) -> list[str]:
        """Return those of some topics that the login may not write to, after one request."""
        now = self._clock.monotonic()
        new = {topic for topic in topics if topic not in self._answers}
        if self._is_old(now):
            self._ask_for_all(topics, now)
        elif new:
            self._ask(new, now)
        return sorted(topic for topic in topics if not self._is_allowed(topic))

    def _is_allowed(self, topic: str) -> bool:
        answer = self._answers.get(topic)
        return answer is None or answer.is_allowed

    def _is_old(self, now: float) -> bool:
        return self._all_asked_at is None or now - self._all_asked_at >= _ALLOWED_S

    def _ask_for_all(self, new: Collection[str], now: float) -> None:
        if self._ask({*self._answers, *new}, now):
            self._all_asked_at = now

    def _ask(self, topics: Collection[str], now: float) -> bool:
        """Request the rights on topics; return False if brokers are not asked now."""
        if self._silent_until is not None and now < self._silent_until:
            return False
        allowed = allowed_writes(self._admin, topics)
        if not allowed:
            self._silent_until = now + _SILENT_S
        if len(self._answers) + len(allowed) > _MOST_TOPICS:
            self._answers.clear()
        for topic, is_allowed in allowed.items():
            self._answers[topic] = _Answer(is_allowed is not False, now)
        return True
