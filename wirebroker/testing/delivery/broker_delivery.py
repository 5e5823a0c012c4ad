"""`broker.delivery`: scheduled messages and retries in tests."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from wirebroker.codecs.errors import KafkaError
from wirebroker.testing.base.arguments import checked
from wirebroker.testing.clients.sending import Sender

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from wirebroker.client.kafka_client import KafkaClient
    from wirebroker.testing.delivery.kit_service import KitService

_Result = TypeVar("_Result")

# Between looks at the input topics.
_PAUSE_S: Final = 0.02
_DAY_MS: Final = 86_400_000
_GROUP: Final = "wirebroker-delivery"


class _Life(Protocol):
    start_count: int

    def ask(self, question: Callable[[KafkaClient], Coroutine[Any, Any, _Result]]) -> _Result: ...


class _Clock(Protocol):
    around_move: Callable[[], None] | None

    def now_ms(self) -> int: ...


class BrokerDelivery:
    """The delivery service (docs/delivery.md) on the broker's log and clock.

    It runs in the test's process and writes without transactions. `clock.advance` returns when
    everything due is delivered, each record as at its due time.

    >>> broker.create_topic("orders")
    >>> broker.delivery.start()
    >>> headers = {"deliver-to": "orders", "deliver-after": "1h"}
    >>> _ = broker.produce("deliver", "a book", headers=headers)
    >>> broker.clock.advance(hours=1)
    >>> [record.value for record in broker.records("orders")]
    [b'a book']
    """

    def __init__(self, life: _Life, clock: _Clock) -> None:
        self._life = life
        self._clock = clock
        self._lock = threading.RLock()
        self._service: KitService | None = None
        self._start_count = -1
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._targets: tuple[str, ...] | None = None

    @checked
    def start(self, *, targets: Sequence[str] | None = None) -> None:
        """Start the service; create the topics `deliver` and `retry` if they are missing.

        >>> broker.delivery.start(targets=["orders", "billing-*"])
        >>> "deliver" in broker.topics()
        True

        Args:
            targets: Topics that it may deliver to (wirebroker.delivery.targets); None for all.

        Raises:
            RuntimeError: The broker is not running.
            ValueError: A target is neither a topic name nor a prefix that ends with *.
        """
        self.stop()
        self._targets = None if targets is None else tuple(targets)
        self._stopping = threading.Event()
        self.settle()
        self._clock.around_move = self.settle
        self._thread = threading.Thread(target=self._run, name="delivery", daemon=True)
        self._thread.start()

    @checked
    def stop(self) -> None:
        """Stop the service; pending records stay in the broker.

        >>> broker.delivery.start()
        >>> broker.delivery.stop()
        """
        self._clock.around_move = None
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        with self._lock:
            self._close()

    @checked
    def settle(self) -> None:
        """Read all produced records and deliver due entries before returning.

        >>> broker.create_topic("orders")
        >>> broker.delivery.start()
        >>> _ = broker.produce("deliver", "a book", headers={"deliver-to": "orders"})
        >>> broker.delivery.settle()
        >>> len(broker.records("orders"))
        1

        Raises:
            RuntimeError: The broker is not running.
        """
        with self._lock:
            service = self._opened()
            now_ms = self._clock.now_ms()
            self._life.ask(lambda client: service.work(client, now_ms))

    @checked
    def pending_count(self) -> int:
        """Return the number of records that wait for their time.

        >>> broker.delivery.start()
        >>> broker.delivery.pending_count()
        0

        Raises:
            RuntimeError: The broker is not running.
        """
        with self._lock:
            self.settle()
            return self._opened().pending_count

    def forget(self) -> None:
        """Read the state again: the broker's data was replaced."""
        with self._lock:
            self._close()

    def _opened(self) -> KitService:
        from wirebroker.delivery.model.rules import DeliveryRules  # noqa: PLC0415 - rarely used
        from wirebroker.testing.delivery.kit_service import KitService  # noqa: PLC0415 - likewise

        if self._service is not None and self._start_count == self._life.start_count:
            return self._service
        self._close()
        rules = DeliveryRules(
            group=_GROUP,
            deliver_topics=("deliver",),
            retry_topics=("retry",),
            pending_topic=f"__{_GROUP}",
            targets=self._targets,
            max_delay_ms=366 * _DAY_MS,
            max_attempts=100,
        )
        service = KitService(rules, Sender())
        now_ms = self._clock.now_ms()
        self._life.ask(lambda client: service.open(client, now_ms))
        self._service, self._start_count = service, self._life.start_count
        return service

    def _close(self) -> None:
        service, self._service = self._service, None
        if service is not None:
            service.close()

    def _run(self) -> None:
        from wirebroker.delivery.pending.refusals import (  # noqa: PLC0415 - rarely used
            RefusedDeadLetterError,
        )

        while not self._stopping.wait(_PAUSE_S):
            try:
                self.settle()
            except (ConnectionError, RuntimeError, KafkaError, RefusedDeadLetterError):
                # The broker is stopped, paused or disturbed by the test; it is read again.
                # `settle` raises what remains.
                self.forget()
