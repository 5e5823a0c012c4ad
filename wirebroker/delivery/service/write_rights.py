"""The login's rights to write to topics, checked before a transaction.

If the first partition of a transaction is refused, librdkafka cannot abort the transaction
(INVALID_TXN_STATE), and the producer must start again.
"""

from __future__ import annotations

from collections import deque
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
# The topics of the cluster. More than there are in a transaction.
_MOST_TOPICS: Final = 200_000
# Deliveries wait for a request: 0.1 s.
_MOST_IN_REQUEST: Final = 1_000


class _Answer(NamedTuple):
    is_allowed: bool
    asked_at: float


class WriteRights:
    """The rights on existing topics, cached.

    `confirm` requests them after a transaction was planned: new topics, denied ones after a second,
    and every 30 s all that were used since, at most 1,000 at a time. While no broker responds, the
    last response counts. Without one, the topic may be written.
    """

    def __init__(self, admin: Any, clock: Clock, topics: Iterable[str] = ()) -> None:
        """`admin` is an AdminClient; `topics` are those that are written in any case."""
        self._admin = admin
        self._clock = clock
        self._answers: dict[str, _Answer] = {}
        # The results of `may_write` since the last `confirm`.
        self._assumed: dict[str, bool] = {}
        # Topics that were used since the last refresh, and those that it has not requested yet.
        self._used: dict[str, None] = dict.fromkeys(topics)
        self._due: deque[str] = deque()
        self._refreshed_at: float | None = None
        self._silent_until: float | None = None

    def may_write(self, topic: str) -> bool:
        """Return whether the login may write to a topic, which `confirm` then checks."""
        self._used[topic] = None
        self._assumed[topic] = is_allowed = self._is_allowed(topic)
        return is_allowed

    def confirm(self) -> bool:
        """Request the rights that are due; return whether all results of `may_write` still hold."""
        assumed, self._assumed = self._assumed, {}
        now = self._clock.monotonic()
        if self._silent_until is None or now >= self._silent_until:
            self._ask(self._names_to_ask(assumed, now), now)
        return all(self._is_allowed(topic) is result for topic, result in assumed.items())

    def denied(self, topics: Collection[str]) -> list[str]:
        """Return those of some topics that the login may not write to."""
        for topic in topics:
            self.may_write(topic)
        self.confirm()
        return sorted(topic for topic in topics if not self._is_allowed(topic))

    def _is_allowed(self, topic: str) -> bool:
        answer = self._answers.get(topic)
        return answer is None or answer.is_allowed

    def _names_to_ask(self, assumed: Iterable[str], now: float) -> list[str]:
        is_old = self._refreshed_at is None or now - self._refreshed_at >= _ALLOWED_S
        if is_old and not self._due:
            self._refreshed_at = now
            self._due.extend(self._used)
            self._used.clear()
        names = {topic for topic in assumed if self._is_due(topic, now)}
        while self._due and len(names) < _MOST_IN_REQUEST:
            names.add(self._due.popleft())
        return list(names)

    def _is_due(self, topic: str, now: float) -> bool:
        answer = self._answers.get(topic)
        if answer is None:
            return True
        return now - answer.asked_at >= (_ALLOWED_S if answer.is_allowed else _DENIED_S)

    def _ask(self, topics: list[str], now: float) -> None:
        for start in range(0, len(topics), _MOST_IN_REQUEST):
            requested = topics[start : start + _MOST_IN_REQUEST]
            allowed = allowed_writes(self._admin, requested)
            if not allowed:
                self._silent_until = now + _SILENT_S
                self._due.extend(topics[start:])
                return
            for topic, is_allowed in allowed.items():
                self._answers.pop(topic, None)
                if is_allowed is not None:
                    self._answers[topic] = _Answer(is_allowed, now)
        while len(self._answers) > _MOST_TOPICS:
            del self._answers[next(iter(self._answers))]
