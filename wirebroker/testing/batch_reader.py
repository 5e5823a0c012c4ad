"""Records out of the batches of one partition, aborted transactions left out if that is wanted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.client.fetched_batches import fetched_batches
from wirebroker.codecs.records.batch import iterate_records
from wirebroker.codecs.records.control import ControlType, control_type
from wirebroker.testing.topic_record import TopicRecord

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from wirebroker.codecs.records.batch import BatchHeader


class BatchReader:
    """Reads a partition from its beginning on.

    Attributes:
        position: The next offset to fetch.
    """

    def __init__(self, topic: str, partition: int, *, position: int) -> None:
        self.position = position
        self._topic = topic
        self._partition = partition
        # Producers whose transaction is one that was aborted, from here to its marker.
        self._aborting: set[int] = set()

    def read(self, data: memoryview, aborted: Sequence[Any]) -> Iterator[TopicRecord]:
        """Return the records of what one Fetch has brought, from `position` on.

        Args:
            data: Batches; the last may be cut off.
            aborted: The aborted transactions among them, as the answer names them (`producer_id`,
                `first_offset`); none if everything is to be read.

        Raises:
            KafkaError: A batch is damaged.
        """
        waiting = sorted(aborted, key=lambda each: each.first_offset)
        for header, batch in fetched_batches(data):
            while waiting and waiting[0].first_offset <= header.last_offset:
                self._aborting.add(waiting.pop(0).producer_id)
            first_wanted, self.position = self.position, header.last_offset + 1
            if header.is_control:
                self._pass_control(batch, header)
            elif not (header.is_transactional and header.producer_id in self._aborting):
                yield from self._records(batch, header, first_wanted)

    def _pass_control(self, batch: memoryview, header: BatchHeader) -> None:
        """End a transaction that was aborted."""
        for record in iterate_records(batch, header):
            if control_type(record.key) is ControlType.ABORT:
                self._aborting.discard(header.producer_id)

    def _records(
        self, batch: memoryview, header: BatchHeader, first_wanted: int
    ) -> Iterator[TopicRecord]:
        for record in iterate_records(batch, header):
            if record.offset >= first_wanted:
                yield TopicRecord(
                    topic=self._topic,
                    partition=self._partition,
                    offset=record.offset,
                    timestamp=record.timestamp,
                    key=record.key,
                    value=record.value,
                    headers=tuple(record.headers),
                )
