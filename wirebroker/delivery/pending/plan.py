"""A transaction of the service, as data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from wirebroker.delivery.model.records import OutputRecord

if TYPE_CHECKING:
    from collections.abc import Iterator


class EndedName(NamedTuple):
    """A name to be written without a value to a partition of the pending topic."""

    partition: int
    name: str


@dataclass(slots=True)
class TransactionPlan:
    """What one transaction does: all of it or nothing.

    Attributes:
        outputs: Records for targets and dead-letter topics, and new entries of the pending topic.
        letters: The causes of those outputs that are dead letters.
        ended: Names to end, in this order.
        received: How many of the received records it contains.
        input_offsets: The next offset of each input partition, to be committed.
        pending_partitions: Partitions of the pending topic whose entries are ended. Their position
            is committed too, which fails if another instance owns them.
        delivered: Number of delivered records, without dead letters.
        retried: The part of them that were retries.
        due_ms: When the delivered records were due, except those that a command made due. It is the
            timestamp of the input record if that is later.
        size: Bytes of the outputs' keys and values.
    """

    outputs: list[OutputRecord] = field(default_factory=list[OutputRecord])
    letters: set[str] = field(default_factory=set[str])
    ended: list[EndedName] = field(default_factory=list[EndedName])
    received: int = 0
    input_offsets: dict[tuple[str, int], int] = field(default_factory=dict[tuple[str, int], int])
    pending_partitions: dict[int, int] = field(default_factory=dict[int, int])
    delivered: int = 0
    retried: int = 0
    due_ms: list[int] = field(default_factory=list[int])
    size: int = 0

    def add(self, output: OutputRecord) -> None:
        """Add a record to write."""
        self.outputs.append(output)
        self.size += len(output.key or b"") + len(output.value or b"")

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return not (self.outputs or self.ended)

    def records(self, pending_topic: str) -> Iterator[OutputRecord]:
        """Yield all records to write, in order."""
        yield from self.outputs
        yield from self.ended_records(pending_topic)

    def ended_records(self, pending_topic: str) -> Iterator[OutputRecord]:
        """Yield the records without a value that end names."""
        for partition, name in self.ended:
            yield OutputRecord(pending_topic, partition, name.encode(), None, (), name)
