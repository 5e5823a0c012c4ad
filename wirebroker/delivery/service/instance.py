"""One instance: reads records, plans and carries out transactions, until it is stopped.

    readers ─ batches ─┐                       ┌─ plans ─ producers
                       ├─ inbox ─ this thread ─┤              │
    rebalances ────────┘     ▲                 └─ indexes     │
                             └────────── results ─────────────┘

This thread does no requests for records, so that storing and delivering do not wait for each other.
"""

from __future__ import annotations

import logging
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from wirebroker.delivery.pending.machine import DeliveryMachine
from wirebroker.delivery.service.errors import FencedError
from wirebroker.delivery.service.inbox import Inbox
from wirebroker.delivery.service.intake import Intake
from wirebroker.delivery.service.transaction_pool import TransactionPool

if TYPE_CHECKING:
    from collections.abc import Callable
    from threading import Event

    from wirebroker.base.clock import Clock
    from wirebroker.delivery.pending.plan import TransactionPlan
    from wirebroker.delivery.service.figures import DeliveryFigures
    from wirebroker.delivery.service.settings import ServiceSettings
    from wirebroker.delivery.service.topics import ClusterTopics
    from wirebroker.delivery.service.transactions import TransactionOutcome

logger = logging.getLogger(__name__)

# Between looks at the clock and at the signal to stop.
_LONGEST_WAIT_S: Final = 0.5
# When due entries cannot be delivered yet.
_LEAST_WAIT_S: Final = 0.005
# After an aborted transaction without a refused record.
_PAUSE_S: Final = 0.2
# Between saves of an index. A restart reads again what was not saved.
_SAVED_EVERY_S: Final = 1.0
# The least time from the begin of a transaction to that of the next one of its kind. A transaction
# costs the brokers as much as some hundred records (benchmarks/scenarios/delivery_lateness.py).
_STORED_EVERY_S: Final = 0.05
_DELIVERED_EVERY_S: Final = 0.015
# librdkafka's wait for the offsets of a transaction has no bound (issue 5456). A transaction that
# has not ended after its records, its offsets and its abort have timed out never ends.
_TIMEOUTS: Final = 3
_GRACE_S: Final = 5.0
# The longest wait for open transactions when the service stops.
_STOP_S: Final = 10.0


@dataclass(slots=True)
class _Lane:
    """Transactions of one kind, of which one is open at a time.

    Attributes:
        plan: Returns the next one at a time in milliseconds, or None.
        pool: The producers.
        every_s: The least time between the begins of two.
        begins_at: When the next one may begin, in seconds of the monotonic clock.
        is_open: Whether one is open.
        ends_by: When the open one must have ended, in seconds of the monotonic clock.
        is_careful: Whether the last one was aborted, perhaps by a record that is refused.
    """

    plan: Callable[[int], TransactionPlan | None]
    pool: TransactionPool
    every_s: float
    begins_at: float = 0.0
    is_open: bool = False
    ends_by: float = 0.0
    is_careful: bool = False


class ServiceInstance:
    """An instance of the service with its clients."""

    def __init__(
        self,
        settings: ServiceSettings,
        name: str,
        topics: ClusterTopics,
        figures: DeliveryFigures,
        clock: Clock,
        *,
        stopping: Event,
    ) -> None:
        """Connect; it works until `stopping` is set.

        Raises:
            KafkaException: The cluster refuses a client.
            StoppingError: `stopping` was set meanwhile.
        """
        self._stopping = stopping
        # When the open transactions must have ended, once it stops.
        self._stops_by: float | None = None
        self._longest_s = _TIMEOUTS * settings.transaction_timeout_ms / 1000 + _GRACE_S
        self._figures = figures
        self._topics = topics
        self._clock = clock
        self._machine = DeliveryMachine(
            settings.rules,
            topics,
            pending_count=settings.partitions,
            most_records=settings.transaction_records,
        )
        self._saved_at = 0.0
        self._inbox = Inbox()
        with ExitStack() as connected:
            # One producer: markers of an earlier transaction must not set back the input's offsets.
            storing = connected.enter_context(closing(self._pool(settings, [name])))
            names = [f"{name}-1", f"{name}-2"]
            delivering = connected.enter_context(closing(self._pool(settings, names)))
            self._intake = Intake(
                settings,
                self._machine,
                topics,
                self._inbox,
                clock,
                instance=name,
                finish=self._finish,
            )
            connected.pop_all()
        self._storing = _Lane(self._machine.plan_intake, storing, _STORED_EVERY_S)
        self._delivering = _Lane(self._machine.plan_delivery, delivering, _DELIVERED_EVERY_S)
        self._lanes = (self._storing, self._delivering)

    def _pool(self, settings: ServiceSettings, names: list[str]) -> TransactionPool:
        return TransactionPool(settings, names, self._inbox, self._clock, self._stopping)

    def run(self) -> None:
        """Work until the service stops.

        Raises:
            FencedError: The instance must start again.
            RefusedDeadLetterError: A record can be neither delivered nor made a dead letter.
            KafkaException: A client failed.
        """
        try:
            self._work()
        except BaseException:
            try:
                self._disconnect()
            except Exception as error:  # noqa: BLE001 - the first error is raised
                logger.warning("cannot close a client: %s", error)
            raise
        self._disconnect()

    def _work(self) -> None:
        while not self._stopping.is_set():
            self._serve(self._wait_s())
            self._begin()
            self._save()
            self._figures.observe(self._machine.partitions.values())
        self._finish()
        self._intake.save()

    def _disconnect(self) -> None:
        with ExitStack() as closing_all:  # in reverse, and each even if another one fails
            closing_all.callback(self._intake.close)
            for lane in self._lanes:
                closing_all.callback(lane.pool.close)
            closing_all.callback(self._inbox.close)

    def _wait_s(self) -> float:
        now = self._clock.monotonic()
        wait_s = _LONGEST_WAIT_S
        if not self._storing.is_open and self._machine.received_count:
            wait_s = min(wait_s, self._storing.begins_at - now)
        if not self._delivering.is_open:
            due_ms = self._machine.next_due_ms()
            if due_ms is not None:
                due_in_s = max((due_ms - self._clock.now_ms()) / 1000, _LEAST_WAIT_S)
                wait_s = min(wait_s, max(due_in_s, self._delivering.begins_at - now))
        return max(wait_s, 0.0)

    def _begin(self) -> None:
        """Begin all transactions that may begin, first the one that stores replacements."""
        for lane in self._lanes:
            now = self._clock.monotonic()
            if lane.is_open or now < lane.begins_at:
                continue
            self._topics.begin_transaction()
            plan = lane.plan(self._clock.now_ms())
            if plan is not None and not self._topics.confirm_rights():
                # The next plan has dead letters instead of records for the denied topics.
                self._machine.aborted(plan, {})
            elif plan is not None:
                lane.is_open = True
                lane.begins_at = now + lane.every_s
                lane.pool.begin(
                    plan,
                    self._intake.group,
                    partial(self._end, lane, plan),
                    is_careful=lane.is_careful,
                )
                lane.ends_by = self._clock.monotonic() + self._longest_s

    def _end(self, lane: _Lane, plan: TransactionPlan, outcome: TransactionOutcome) -> None:
        was_careful, lane.is_careful = lane.is_careful, not outcome.is_committed
        lane.is_open = False
        if outcome.is_committed:
            self._machine.committed(plan)
            self._figures.count(plan)
            self._intake.allow()
            return
        for cause, reason in outcome.refusals.items():
            logger.warning("the broker refused the record for %s: %s", cause, reason)
        self._machine.aborted(plan, outcome.refusals, outcome.unwritable, self._clock.now_ms())
        if was_careful and not outcome.refusals:
            lane.begins_at = self._clock.monotonic() + _PAUSE_S

    def _finish(self) -> None:
        """Wait for the open transactions, in this thread."""
        while any(lane.is_open for lane in self._lanes):
            self._serve(_LONGEST_WAIT_S)

    def _serve(self, wait_s: float) -> None:
        """Carry out the next work of the inbox, if there is some within a time.

        Raises:
            FencedError: A transaction does not end.
        """
        self._inbox.serve(wait_s)
        now = self._clock.monotonic()
        if self._stops_by is None and self._stopping.is_set():
            self._stops_by = now + _STOP_S
        for lane in self._lanes:
            ends_by = lane.ends_by if self._stops_by is None else min(lane.ends_by, self._stops_by)
            if lane.is_open and now > ends_by:
                raise FencedError("a transaction did not end (librdkafka issue 5456)")

    def _save(self) -> None:
        now = self._clock.monotonic()
        if now - self._saved_at >= _SAVED_EVERY_S:
            self._saved_at = now
            self._intake.save()
