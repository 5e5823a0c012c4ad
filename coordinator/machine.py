"""A machine over a log: what every coordinator and the controller are, and what runs them needs.

    operation(machine, token, moment) -> Result(records, answers, effects, on_failure)
    log.append(records)                  in one piece, and at once
    machine.take_over(records, ...)      the only place where durable state changes
    answers and effects leave            when the log has committed what they rest on

A machine does no I/O and never waits. What it knows is durable (what the records say; `take_over`
and `replay` alone change it, at run time and at load alike) or soft (who waits, timers, what is on
its way into the log): soft state is lost with a load, and taken back by `on_failure` if an append
fails.

The records are between a machine and its log; whoever runs them (engine/engine.py) never looks
into one. A coordinator's shard has key and value pairs and a partition of an internal topic; the
controller has whole changes, encoded and applied to a copy of its state beforehand, which the
metadata log appends and `take_over` makes its newest state.

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
    """What comes of one request or one timer; `Outcome` is a coordinator's."""

    @property
    def records(self) -> Sequence[Any]:
        """What is to be appended."""
        ...

    @property
    def answers(self) -> Sequence[Answer]:
        """Leave when the records, and all that were appended before, are committed."""
        ...

    @property
    def effects(self) -> Sequence[Any]:
        """What is to be done elsewhere when the answers leave."""
        ...

    @property
    def on_failure(self) -> Callable[[ErrorCode, Moment], Result] | None:
        """Takes soft state back if the append fails. None: nothing is to be taken back."""
        ...

    @property
    def is_atomic(self) -> bool:
        """Whether the records must be appended in one piece."""
        ...

    @property
    def producer(self) -> ProducerEpoch | None:
        """Whose transaction the records belong to; None if they count at once."""
        ...


class Machine(Protocol):
    """State, the records that make it, and its timers."""

    @property
    def timers(self) -> Timers:
        """Its timers."""
        ...

    def take_over(self, records: Sequence[Any], producer_id: int, /) -> None:
        """Take over records that were just appended, decided or of a producer's transaction."""
        ...

    def on_timer(self, event: Any, moment: Moment, /) -> Result:
        """Handle an event that `timers.take_due` gave."""
        ...

    def on_loaded(self, moment: Moment, /) -> Result:
        """Begin to serve what was taken over so far."""
        ...

    def on_unloaded(self) -> Result:
        """Answer all who wait; there are no records. The machine is not used afterwards."""
        ...


class MachineLog(Protocol):
    """Where a machine's records are, in one term of its leadership."""

    @property
    def name(self) -> str:
        """What it is called in messages to the operator."""
        ...

    @property
    def end_offset(self) -> int:
        """The end behind the last record of this machine."""
        ...

    @property
    def committed_offset(self) -> int:
        """Everything below counts: it never falls, and answers may be given for it."""
        ...

    @property
    def failure(self) -> KafkaError | None:
        """Why what is not committed by now never will be here; None if it may be."""
        ...

    def watch(self, on_advance: Callable[[], None], /) -> None:
        """Call back whenever `committed_offset` has moved, or the log is lost."""
        ...

    def unwatch(self, on_advance: Callable[[], None], /) -> None:
        """Call back no more."""
        ...

    def append(
        self,
        records: Sequence[Any],
        moment: Moment,
        producer: ProducerEpoch | None = None,
        guard: VerificationGuard | None = None,
    ) -> None:
        """Append in one piece, at once, and move `end_offset`.

        Args:
            records: At least one.
            moment: When they were made.
            producer: Whose transaction they belong to.
            guard: If they may begin that transaction here.

        Raises:
            KafkaError: Nothing was appended; the code is what whoever waits is told.
            OSError: The disk failed; the log is as before.
        """
        ...

    def cut(self, records: Sequence[Any], /) -> Iterable[Sequence[Any]]:
        """Yield records that need not be appended in one piece, in pieces as large as may be."""
        ...

    def disk_failed(self, error: OSError, /) -> None:
        """Note that the disk has failed under an append, whose waiters were told.

        It may end this term of the leadership, and the machine with it.
        """
        ...
