"""A thread that reads a consumer: batches of messages go to the inbox.

At most two batches are not yet processed, so memory stays bounded and the consumer reads ahead. If
none is processed for some time, the consumer is paused and still polled: it may have to rejoin its
group.
"""

from __future__ import annotations

import logging
import threading
from functools import partial
from typing import TYPE_CHECKING, Final

from wirebroker.delivery.service.inbox import InboxClosedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from confluent_kafka import Consumer, Message

    from wirebroker.delivery.service.inbox import Inbox

logger = logging.getLogger(__name__)

_BATCHES: Final = 2
# Between looks at the request to stop.
_POLL_S: Final = 0.1
# A pause discards what the consumer has fetched ahead.
_PAUSED_AFTER_S: Final = 1.0
# For the thread to end: longer than the requests of a rebalance (intake.py).
_STOP_S: Final = 17.0


class BatchReader:
    """Reads until `stop`; `take` is called in the inbox for each batch.

    An error of the consumer is raised in the inbox.
    """

    def __init__(
        self,
        consumer: Consumer,
        inbox: Inbox,
        take: Callable[[list[Message]], None],
        *,
        most: int,
    ) -> None:
        """Begin to read; a batch has at most `most` messages."""
        self.consumer = consumer
        self._inbox = inbox
        self._take = take
        self._most = most
        self._batch: list[Message] = []
        self._allowed = threading.Semaphore(_BATCHES)
        self._is_stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="delivery reader", daemon=True)
        self._thread.start()

    def allow(self) -> None:
        """Allow one more batch: one was processed."""
        self._allowed.release()

    def drop(self) -> None:
        """Forget messages that were read before a rebalance, in a callback of the consumer."""
        self._batch.clear()

    def close(self) -> None:
        """End the thread and close the consumer; both are left if the thread does not end."""
        self._is_stopping.set()
        self._allowed.release()
        self._thread.join(_STOP_S)
        if self._thread.is_alive():
            logger.warning("a consumer does not end; it is left")
        else:
            self.consumer.close()

    def _run(self) -> None:
        try:
            while True:
                if not self._allowed.acquire(timeout=_PAUSED_AFTER_S):
                    self._poll_paused()
                batch = self._next_batch()
                if self._is_stopping.is_set():
                    return
                self._inbox.put(partial(self._take, batch))
        except InboxClosedError:
            return
        except BaseException as error:  # noqa: BLE001 - raised by the inbox
            self._inbox.put(partial(_raise, error))

    def _poll_paused(self) -> None:
        while not self._allowed.acquire(blocking=False):
            # Again each time: there may be a new assignment.
            self.consumer.pause(self.consumer.assignment())
            self._keep(self.consumer.poll(_POLL_S))
        self.consumer.resume(self.consumer.assignment())

    def _next_batch(self) -> list[Message]:
        while not (self._batch or self._is_stopping.is_set()):
            if self._keep(self.consumer.poll(_POLL_S)):
                # No wait: they have been fetched already. A rebalance clears what was read before.
                self._batch += self.consumer.consume(self._most - 1, 0)
        batch, self._batch = self._batch, []
        return batch

    def _keep(self, message: Message | None) -> bool:
        if message is not None:
            self._batch.append(message)
        return message is not None


def _raise(error: BaseException) -> None:
    raise error
