"""Results of coordinator requests, and timers as data.

A shard is the state machine (machine.py) of one partition of an internal topic:

    handler(shard, request, token, now) -> Outcome(records, answers, on_failure)
    shard.replay(key, value)                  the only change of durable state
    shard.timers.take_due(now) -> event       then shard.on_timer(event, now) -> Outcome

Source: Kafka's CoordinatorResult, CoordinatorTimer.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Hashable

    from wirebroker.codecs.coordinator_records import CoordinatorRecord
    from wirebroker.codecs.errors import ErrorCode


class Moment:
    """The current time on both clocks.

    Attributes:
        wall_ms: Written into records; may jump.
        monotonic_ms: For timers; never goes back.
    """

    __slots__ = ("monotonic_ms", "wall_ms")

    def __init__(self, wall_ms: int, monotonic_ms: int) -> None:
        self.wall_ms = wall_ms
        self.monotonic_ms = monotonic_ms


# Identifies a waiter; opaque to shards.
Token = Any
# The response for one waiter: its token, and usually the fields of a message.
Answer = tuple[Token, Any]


class ProducerEpoch(NamedTuple):
    """A producer id with its epoch."""

    producer_id: int
    producer_epoch: int


class Marker(NamedTuple):
    """The end of a producer's transaction."""

    producer_id: int
    # From transaction.version 2 on the epoch of the next transaction.
    producer_epoch: int
    # The sender's; older ones are refused.
    coordinator_epoch: int
    is_commit: bool
    transaction_version: int


OnFailure = Callable[["ErrorCode", Moment], "Outcome"]


class Outcome:
    """A coordinator's `machine.Result`."""

    __slots__ = ("answers", "effects", "is_atomic", "on_failure", "producer", "records")

    def __init__(  # noqa: PLR0917 - one per request
        self,
        records: list[CoordinatorRecord] | None = None,
        answers: list[Answer] | None = None,
        on_failure: OnFailure | None = None,
        is_atomic: bool = True,
        effects: list[Any] | None = None,
        producer: ProducerEpoch | None = None,
    ) -> None:
        self.records: list[CoordinatorRecord] = [] if records is None else records
        self.answers: list[Answer] = [] if answers is None else answers
        self.on_failure = on_failure
        self.is_atomic = is_atomic
        self.effects: list[Any] = [] if effects is None else effects
        self.producer = producer

    def answer(self, token: Token, response: dict[str, Any]) -> None:
        """Add the response for one waiter."""
        self.answers.append((token, response))

    def then(self, other: Outcome) -> Outcome:
        """Return this outcome followed by another; at most one may have records."""
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
    """Events with a time, one per key; setting a key again replaces its event.

    Events of the same time are due in the order in which they were set. Moving an event to a later
    time, as every heartbeat does, leaves the heap alone: `take_due` finds the event too early and
    pushes it again.
    """

    __slots__ = ("_events", "_heap", "_sequence")

    def __init__(self) -> None:
        # key -> (time, event, time of the key in the heap, number of the call of `set`)
        self._events: dict[Hashable, tuple[int, Any, int, int]] = {}
        self._heap: list[tuple[int, int, Hashable]] = []
        self._sequence = 0

    def __len__(self) -> int:
        return len(self._events)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._events

    def set(self, key: Hashable, at_ms: int, event: Any) -> None:
        """Schedule `event` at a monotonic time, in place of the key's earlier event."""
        self._sequence += 1
        scheduled = self._events.get(key)
        if scheduled is not None and scheduled[2] <= at_ms:
            self._events[key] = (at_ms, event, scheduled[2], self._sequence)
            return
        self._events[key] = (at_ms, event, at_ms, self._sequence)
        heapq.heappush(self._heap, (at_ms, self._sequence, key))

    def cancel(self, key: Hashable) -> None:
        """Remove the key's event, if any."""
        self._events.pop(key, None)

    def next_ms(self) -> int | None:
        """Return a time not after the next event; None if nothing is set."""
        heap = self._heap
        while heap:
            at_ms, _, key = heap[0]
            scheduled = self._events.get(key)
            if scheduled is not None and scheduled[2] == at_ms:
                return at_ms
            heapq.heappop(heap)
        return None

    def take_due(self, now_ms: int) -> Any | None:
        """Remove and return the first due event, if any."""
        while True:
            at_ms = self.next_ms()
            if at_ms is None or at_ms > now_ms:
                return None
            _, pushed, key = heapq.heappop(self._heap)
            due_ms, event, _, sequence = self._events[key]
            if due_ms <= now_ms and pushed == sequence:
                del self._events[key]
                return event
            self._events[key] = (due_ms, event, due_ms, sequence)
            heapq.heappush(self._heap, (due_ms, sequence, key))
