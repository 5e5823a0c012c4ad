"""What comes of a request to a coordinator: outcomes, answers to waiters, timers as data.

A shard is the machine (machine.py) of one partition of an internal topic:

    handler(shard, request, token, moment) -> Outcome(records, answers, on_failure)
    shard.replay(key, value)                  the only place where durable state changes
    shard.timers.take_due(moment) -> event    then shard.on_timer(event, moment) -> Outcome

An outcome's records are appended in one piece and replayed at once; the answers go, and what the
effects say is done, when the records are committed. If the append fails nothing is replayed, both
are dropped, and `on_failure` takes back the soft state that the handler had changed and answers in
another way.

Source: Kafka's CoordinatorResult, CoordinatorTimer.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Hashable

    from wirebroker.codecs.coordinator_records import CoordinatorRecord
    from wirebroker.codecs.errors import ErrorCode


class Moment(NamedTuple):
    """What time it is, on both clocks."""

    # Goes into records; may jump.
    wall_ms: int
    # What timers go by; never goes back.
    monotonic_ms: int


# Names a waiter; only whoever runs the shard knows what it stands for.
Token = Any


class Answer(NamedTuple):
    """The response for one waiter."""

    token: Token
    # The fields of a message, mostly.
    response: Any


class ProducerEpoch(NamedTuple):
    """A producer in one of its epochs."""

    producer_id: int
    producer_epoch: int


class Marker(NamedTuple):
    """The end of a producer's transaction, as every partition that is in it is told."""

    producer_id: int
    # From transaction.version 2 on already that of the next transaction.
    producer_epoch: int
    # Of who asks for it: an older one is refused.
    coordinator_epoch: int
    is_commit: bool
    transaction_version: int


OnFailure = Callable[["ErrorCode", Moment], "Outcome"]


@dataclass(slots=True)
class Outcome:
    """What comes of one request or one timer."""

    records: list[CoordinatorRecord] = field(default_factory=list["CoordinatorRecord"])
    # Leave when the records, and all that were appended before, are committed.
    answers: list[Answer] = field(default_factory=list[Answer])
    # Called instead of replay if the append fails. None: there is nothing to take back.
    on_failure: OnFailure | None = None
    # Whether the records must go into one batch.
    is_atomic: bool = True
    # What is to be done, outside of the shard, when the answers leave.
    effects: list[Any] = field(default_factory=list[Any])
    # Whose transaction the records belong to; None if they count at once.
    producer: ProducerEpoch | None = None

    def answer(self, token: Token, response: dict[str, Any]) -> None:
        """Answer one waiter."""
        self.answers.append(Answer(token, response))

    def then(self, other: Outcome) -> Outcome:
        """Return this outcome followed by another one, of which at most one has records."""
        assert not (self.records and other.records), "one append per outcome"
        return Outcome(
            self.records or other.records,
            [*self.answers, *other.answers],
            self.on_failure or other.on_failure,
            self.is_atomic and other.is_atomic,
            [*self.effects, *other.effects],
            self.producer or other.producer,
        )


class Timers:
    """Events with a time, one for each key; setting a key again moves its event.

    Moving an event to a later time, which every heartbeat does, leaves the heap alone: the event
    is found to be early when its old time comes.
    """

    __slots__ = ("_events", "_heap", "_sequence")

    def __init__(self) -> None:
        # key -> (time, event, time under which the key is in the heap)
        self._events: dict[Hashable, tuple[int, Any, int]] = {}
        self._heap: list[tuple[int, int, Hashable]] = []
        # Events of the same time come in the order in which they were set.
        self._sequence = 0

    def __len__(self) -> int:
        return len(self._events)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._events

    def set(self, key: Hashable, at_ms: int, event: Any) -> None:
        """Let `event` come at a (monotonic) time, instead of what was set under the key."""
        known = self._events.get(key)
        if known is not None and known[2] <= at_ms:
            self._events[key] = (at_ms, event, known[2])
            return
        self._events[key] = (at_ms, event, at_ms)
        self._push(key, at_ms)

    def cancel(self, key: Hashable) -> None:
        """Forget the key's event, if there is one."""
        self._events.pop(key, None)

    def next_ms(self) -> int | None:
        """Return when to look again at the latest; None if nothing is set."""
        heap = self._heap
        while heap:
            at_ms, _, key = heap[0]
            known = self._events.get(key)
            if known is not None and known[2] == at_ms:
                return at_ms
            heapq.heappop(heap)
        return None

    def take_due(self, now_ms: int) -> Any | None:
        """Return the first event whose time has come, and forget it; None if there is none."""
        while True:
            at_ms = self.next_ms()
            if at_ms is None or at_ms > now_ms:
                return None
            _, _, key = heapq.heappop(self._heap)
            due_ms, event, _ = self._events[key]
            if due_ms <= now_ms:
                del self._events[key]
                return event
            self._events[key] = (due_ms, event, due_ms)
            self._push(key, due_ms)

    def _push(self, key: Hashable, at_ms: int) -> None:
        self._sequence += 1
        heapq.heappush(self._heap, (at_ms, self._sequence, key))
