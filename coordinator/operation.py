"""Controller operations, which turn a request and an image into records and a response.

An operation is a generator without side effects: it reads one image and yields None where it may be
interrupted.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.metadata_records import MetadataRecord

Response = TypeVar("Response")

# Limit on the records of a request; Kafka's MAX_RECORDS_PER_USER_OP.
MAX_RECORDS = 10_000


@dataclass(slots=True)
class ControllerResult(Generic[Response]):
    """Records to append as one unit, and the response to send once they are committed."""

    response: Response
    records: list[MetadataRecord] = field(default_factory=list[MetadataRecord])


Operation = Generator[None, None, ControllerResult[Response]]


class RecordsOfRequest:
    """The records of one request, at most MAX_RECORDS."""

    __slots__ = ("records",)

    def __init__(self) -> None:
        self.records: list[MetadataRecord] = []

    @property
    def room(self) -> int:
        """Number of records that may still be added."""
        return MAX_RECORDS - len(self.records)

    def add(self, record: MetadataRecord) -> None:
        """Add a record.

        Raises:
            KafkaError: POLICY_VIOLATION for the whole request: too many records.
        """
        self.records.append(record)
        if len(self.records) > MAX_RECORDS:
            raise too_large()

    def extend(self, records: list[MetadataRecord]) -> None:
        """Add several records; raise as `add` does."""
        self.records.extend(records)
        if len(self.records) > MAX_RECORDS:
            raise too_large()


def too_large() -> KafkaError:
    """Return the error for too many records."""
    return KafkaError(
        ErrorCode.POLICY_VIOLATION,
        f"The request would write more than {MAX_RECORDS} metadata records; split it.",
    )


def complete(operation: Operation[Response]) -> ControllerResult[Response]:
    """Run an operation to its end."""
    steps: Any = operation
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: ControllerResult[Response] = end.value
            return result
