"""The producers of one kind of transaction: each carries out one at a time.

The instance's thread enqueues the records; a producer's own thread only waits for the cluster. More
Python code in other threads would slow down that of the instance.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from concurrent.futures import Future
from contextlib import ExitStack
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final

from wirebroker.codecs.errors import without_frames
from wirebroker.delivery.service.transactions import Transactions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from threading import Event

    from wirebroker.base.clock import Clock
    from wirebroker.delivery.pending.plan import TransactionPlan
    from wirebroker.delivery.service.inbox import Inbox
    from wirebroker.delivery.service.settings import ServiceSettings
    from wirebroker.delivery.service.transactions import TransactionOutcome

    Done = Callable[[TransactionOutcome], None]


logger = logging.getLogger(__name__)

# For a producer whose transaction does not end.
_CLOSE_S: Final = 1.0


class _Worker:
    """A producer and its thread.

    The thread is a daemon: librdkafka can wait in it without a bound (issue 5456), and must not
    keep the process alive.
    """

    def __init__(self, transactions: Transactions) -> None:
        self.transactions = transactions
        self._work: SimpleQueue[tuple[TransactionPlan, Any, Future[TransactionOutcome]] | None]
        self._work = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="delivery transaction", daemon=True)
        self._thread.start()

    def complete(self, plan: TransactionPlan, group: Any) -> Future[TransactionOutcome]:
        """Complete the transaction that was begun; return its outcome to come."""
        outcome: Future[TransactionOutcome] = Future()
        self._work.put((plan, group, outcome))
        return outcome

    def stop(self) -> None:
        """End the thread when its transaction has ended; `join` follows."""
        self._work.put(None)

    def join(self) -> None:
        """Wait for the thread and disconnect, unless it does not end within a bound.

        Its transaction then stays open until it times out, or the next producer with this name
        fences it.
        """
        self._thread.join(_CLOSE_S)
        if self._thread.is_alive():
            logger.warning("a transaction did not end; its producer is left")
        else:
            self.transactions.close()

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            plan, group, outcome = work
            try:
                result = self.transactions.complete(plan, group)
            except BaseException as error:  # noqa: BLE001 - raised in the inbox
                outcome.set_exception(without_frames(error))
            else:
                outcome.set_result(result)


class TransactionPool:
    """Transactional producers, and their open transactions.

    A cluster writes the markers of a transaction after its end. Meanwhile it refuses the next one
    of the same producer, and librdkafka waits 20 ms. So the producer that was idle the longest has
    the next one. With one producer, transactions end completely before the next one begins.
    """

    def __init__(
        self,
        settings: ServiceSettings,
        names: Sequence[str],
        inbox: Inbox,
        clock: Clock,
        stopping: Event,
    ) -> None:
        """Connect, fence producers with these names, and abort their transactions.

        Raises:
            KafkaException: The cluster refuses a producer.
            StoppingError: `stopping` is set.
        """
        self._inbox = inbox
        suspects: set[str] = set()
        connected = [Transactions(settings, name, clock, suspects, stopping) for name in names]
        self._workers = [_Worker(transactions) for transactions in connected]
        self._idle = deque(self._workers)

    def begin(self, plan: TransactionPlan, group: Any, done: Done, *, is_careful: bool) -> None:
        """Begin a transaction; at most one for each producer is open.

        `done` is called in the inbox with its outcome; its errors are raised there.

        Raises:
            FencedError: The producer cannot go on.
            KafkaException: A record cannot be enqueued.
        """
        worker = self._idle.popleft()
        worker.transactions.begin(plan, is_careful=is_careful)
        future = worker.complete(plan, group)

        def end(future: Future[TransactionOutcome]) -> None:
            self._inbox.put_first(partial(self._end, worker, future, done))

        future.add_done_callback(end)

    def _end(self, worker: _Worker, future: Future[TransactionOutcome], done: Done) -> None:
        self._idle.append(worker)
        done(future.result())

    def close(self) -> None:
        """Wait for the open transactions, but not long; disconnect."""
        for worker in self._workers:
            worker.stop()
        with ExitStack() as joining:  # each, even if another one fails
            for worker in reversed(self._workers):
                joining.callback(worker.join)
