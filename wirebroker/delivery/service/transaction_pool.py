"""The producers of one kind of transaction: each carries out one at a time.

The instance's thread enqueues the records; a producer's own thread only waits for the cluster. More
Python code in other threads would slow down that of the instance.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from wirebroker.delivery.service.transactions import Transactions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Future

    from wirebroker.base.clock import Clock
    from wirebroker.delivery.pending.plan import TransactionPlan
    from wirebroker.delivery.service.inbox import Inbox
    from wirebroker.delivery.service.settings import ServiceSettings
    from wirebroker.delivery.service.transactions import TransactionOutcome

    Done = Callable[[TransactionOutcome], None]


class _Worker(NamedTuple):
    transactions: Transactions
    thread: ThreadPoolExecutor


class TransactionPool:
    """Transactional producers, and their open transactions.

    A cluster writes the markers of a transaction after its end. Meanwhile it refuses the next one
    of the same producer, and librdkafka waits 20 ms. So the producer that was idle the longest has
    the next one. With one producer, transactions end completely before the next one begins.
    """

    def __init__(
        self, settings: ServiceSettings, names: Sequence[str], inbox: Inbox, clock: Clock
    ) -> None:
        """Connect, fence producers with these names, and abort their transactions.

        Raises:
            KafkaException: The cluster refuses a producer.
        """
        self._inbox = inbox
        self._idle: deque[_Worker] = deque()
        self._workers: list[_Worker] = []
        suspects: set[str] = set()
        for name in names:
            transactions = Transactions(settings, name, clock, suspects)
            thread = ThreadPoolExecutor(1, thread_name_prefix="delivery transaction")
            self._workers.append(_Worker(transactions, thread))
        self._idle.extend(self._workers)

    def begin(self, plan: TransactionPlan, group: Any, done: Done, *, is_careful: bool) -> None:
        """Begin a transaction; at most one for each producer is open.

        `done` is called in the inbox with its outcome; its errors are raised there.

        Raises:
            FencedError: The producer cannot go on.
            KafkaException: A record cannot be enqueued.
        """
        worker = self._idle.popleft()
        worker.transactions.begin(plan, is_careful=is_careful)
        future = worker.thread.submit(worker.transactions.complete, plan, group)

        def end(future: Future[TransactionOutcome]) -> None:
            self._inbox.put(partial(self._end, worker, future, done))

        future.add_done_callback(end)

    def _end(self, worker: _Worker, future: Future[TransactionOutcome], done: Done) -> None:
        self._idle.append(worker)
        done(future.result())

    def close(self) -> None:
        """Wait for the open transactions; disconnect."""
        for worker in self._workers:
            worker.thread.shutdown()
            worker.transactions.close()
