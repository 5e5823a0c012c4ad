"""What a controller operation is: (request, image, now) in, records and a response out.

An operation is a generator that changes nothing: it reads one image, yields where it may be
interrupted (nothing comes of a yield), and returns the records that would bring the change about
together with the answer that is true once they are committed. Whoever runs it (the controller's
machine, a test) decides how long it works between two turns of the event loop.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.metadata_records import MetadataRecord

Response = TypeVar("Response")

# Kafka's MAX_RECORDS_PER_USER_OP: what one request may write.
MAX_RECORDS = 10_000


@dataclass(slots=True)
class ControllerResult(Generic[Response]):
    """Records to append as one unit, and what to answer when they are committed."""

    response: Response
    records: list[MetadataRecord] = field(default_factory=list[MetadataRecord])


Operation = Generator[None, None, ControllerResult[Response]]


class RecordsOfRequest:
    """The records of one request, which have a bound."""

    __slots__ = ("records",)

    def __init__(self) -> None:
        self.records: list[MetadataRecord] = []

    @property
    def room(self) -> int:
        """Return how many records may still be added."""
        return MAX_RECORDS - len(self.records)

    def add(self, record: MetadataRecord) -> None:
        """Add one record.

        Raises:
            KafkaError: POLICY_VIOLATION, for the whole request, beyond MAX_RECORDS.
        """
        self.records.append(record)
        if len(self.records) > MAX_RECORDS:
            raise too_large()

    def extend(self, records: list[MetadataRecord]) -> None:
        """Add several records, with the same bound."""
        self.records.extend(records)
        if len(self.records) > MAX_RECORDS:
            raise too_large()


def too_large() -> KafkaError:
    """Return the error for a request that would write more than MAX_RECORDS records."""
    return KafkaError(
        ErrorCode.POLICY_VIOLATION,
        f"The request would write more than {MAX_RECORDS} metadata records; split it.",
    )


def complete(operation: Operation[Response]) -> ControllerResult[Response]:
    """Run an operation in one go."""
    steps: Any = operation
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: ControllerResult[Response] = end.value
            return result
