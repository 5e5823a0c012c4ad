"""State machines over a log: coordinators and the controller.

    operation(machine, token, now) -> Result(records, answers, effects, on_failure)
    log.append(records)              in one piece, immediately
    machine.apply(records, ...)      the only change of durable state
    answers and effects              performed once the log has committed the records

A machine does no I/O and never waits. The engine (engine/engine.py) does not read the records.

Source: Kafka's CoordinatorShard, CoordinatorRuntime, QuorumController.ControllerWriteOperation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from wirebroker.codecs.errors import ErrorCode, KafkaError
    from wirebroker.coordinator.outcome import Answer, Moment, ProducerEpoch, Timers
    from wirebroker.storage.log.producers.verification import VerificationGuard


class Result(Protocol):
    """The result of one request or timer."""

    @property
    def records(self) -> Sequence[Any]:
        """Records to append."""
        ...

    @property
    def answers(self) -> Sequence[Answer]:
        """Responses to send once these and all earlier records are committed."""
        ...

    @property
    def effects(self) -> Sequence[Any]:
        """Actions outside the machine, performed with the responses."""
        ...

    @property
    def on_failure(self) -> Callable[[ErrorCode, Moment], Result] | None:
        """Restores soft state if the append fails."""
        ...

    @property
    def is_atomic(self) -> bool:
        """Whether the records must be appended in one piece."""
        ...

    @property
    def producer(self) -> ProducerEpoch | None:
        """Producer whose transaction the records belong to."""
        ...


class Machine(Protocol):
    """A state and the operations that change it."""

    @property
    def timers(self) -> Timers:
        """Timers."""
        ...

    def apply(self, records: Sequence[Any], producer_id: int, /) -> None:
        """Apply appended records, final or of a producer's transaction."""
        ...

    def on_timer(self, event: Any, now: Moment, /) -> Result:
        """Handle an event from `timers.take_due`."""
        ...

    def on_loaded(self, now: Moment, /) -> Result:
        """Begin to serve the loaded state."""
        ...

    def on_unloaded(self) -> Result:
        """Return the last responses for all waiters, without records."""
        ...


class MachineLog(Protocol):
    """The log of a machine in one term of its leadership."""

    @property
    def name(self) -> str:
        """Name in log messages."""
        ...

    @property
    def end_offset(self) -> int:
        """Offset after this machine's last record."""
        ...

    @property
    def committed_offset(self) -> int:
        """Offset below which records are committed; it never falls."""
        ...

    @property
    def failure(self) -> KafkaError | None:
        """Error that keeps the remaining records uncommitted, if any."""
        ...

    def watch(self, on_advance: Callable[[], None], /) -> None:
        """Call back whenever `committed_offset` has advanced or the log is lost."""
        ...

    def unwatch(self, on_advance: Callable[[], None], /) -> None:
        """Stop the calls."""
        ...

    def append(
        self,
        records: Sequence[Any],
        now: Moment,
        producer: ProducerEpoch | None = None,
        guard: VerificationGuard | None = None,
    ) -> None:
        """Append in one piece, and advance `end_offset`.

        With `guard`, the records may begin the producer's transaction here.

        Raises:
            KafkaError: Nothing was appended; waiters get this error.
            OSError: The disk failed; the log is unchanged.
        """
        ...

    def cut(self, records: Sequence[Any], /) -> Iterable[Sequence[Any]]:
        """Yield non-atomic records in the largest possible pieces."""
        ...

    def disk_failed(self, error: OSError, /) -> None:
        """Note a failed append; this may end the term and the machine."""
        ...
