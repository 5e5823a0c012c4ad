"""One instance: reads records, plans and carries out transactions, until it is stopped.

    read → apply → plan → transaction → save the indexes → read …

One thread does all of it. So no transaction is open while partitions are assigned or revoked.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from wirebroker.delivery.pending.machine import DeliveryMachine
from wirebroker.delivery.service.intake import Intake
from wirebroker.delivery.service.transactions import Transactions

if TYPE_CHECKING:
    from threading import Event

    from wirebroker.base.clock import Clock
    from wirebroker.delivery.service.figures import DeliveryFigures
    from wirebroker.delivery.service.settings import ServiceSettings
    from wirebroker.delivery.service.topics import ClusterTopics

logger = logging.getLogger(__name__)

# Between looks at the clock and at the signal to stop.
_LONGEST_WAIT_S: Final = 0.5
# After an aborted transaction without a refused record.
_PAUSE_S: Final = 0.2


class ServiceInstance:
    """An instance of the service with its clients."""

    def __init__(
        self,
        settings: ServiceSettings,
        name: str,
        topics: ClusterTopics,
        figures: DeliveryFigures,
        clock: Clock,
    ) -> None:
        """Connect.

        Raises:
            KafkaException: The cluster refuses a client.
        """
        self._figures = figures
        self._topics = topics
        self._clock = clock
        self._machine = DeliveryMachine(
            settings.rules,
            topics,
            pending_count=settings.partitions,
            most_records=settings.transaction_records,
        )
        self._transactions = Transactions(settings, name, clock)
        self._intake = Intake(settings, name, self._machine, topics, clock)
        self._may_wait = True

    def run(self, stopping: Event) -> None:
        """Work until `stopping` is set.

        Raises:
            FencedError: The instance must start again.
            RefusedDeadLetterError: A record can be neither delivered nor made a dead letter.
            KafkaException: A client failed.
        """
        try:
            while not stopping.is_set():
                self._intake.read(self._wait_s())
                self._deliver(stopping)
                self._intake.save()
                self._figures.observe(self._machine.partitions.values())
        finally:
            self._transactions.close()
            self._intake.close()

    def _wait_s(self) -> float:
        if not self._may_wait:
            return 0.0
        due_ms = self._machine.next_due_ms()
        if due_ms is None:
            return _LONGEST_WAIT_S
        return min(max(due_ms - self._clock.now_ms(), 0) / 1000, _LONGEST_WAIT_S)

    def _deliver(self, stopping: Event) -> None:
        self._topics.begin_transaction()
        plan = self._machine.plan(self._clock.now_ms())
        self._may_wait = plan.is_empty
        if plan.is_empty:
            return
        refusals = self._transactions.carry_out(plan, self._intake.group)
        if refusals is None:
            self._machine.committed(plan)
            self._figures.count(plan)
            return
        for cause, reason in refusals.items():
            logger.warning("the broker refused the record for %s: %s", cause, reason)
        self._machine.aborted(plan, refusals)
        if not refusals:
            stopping.wait(_PAUSE_S)
