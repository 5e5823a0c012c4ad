"""A member's share session with one broker: requests and their acknowledgements (KIP-932).

The first request has epoch 0 and all partitions; each further one has the next epoch and only the
changes. Source: Kafka's ShareSessionHandler.
"""

from __future__ import annotations

from collections import defaultdict
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from wirebroker.client.groups.share_membership import TopicIdPartition

_OPENING: Final = 0
_CLOSING: Final = -1
_LAST_EPOCH: Final = 2**31 - 1
# Kafka's defaults of max.poll.records and fetch.max.wait.ms.
_MAX_RECORDS: Final = 500
_ANSWER_BYTES: Final = 8 << 20
_GAP: Final = 0


class AcknowledgeType(IntEnum):
    """What a member did with a record (Kafka's AcknowledgeType)."""

    ACCEPT = 1
    RELEASE = 2
    REJECT = 3


class AcknowledgedBatch(NamedTuple):
    """A range of offsets, with the type of each or one type for all."""

    first_offset: int
    last_offset: int
    acknowledge_types: list[int]


def acknowledged_batches(
    acquired: Iterable[range], types: Mapping[int, AcknowledgeType], until: int
) -> Iterator[AcknowledgedBatch]:
    """Yield what to acknowledge of acquired offsets before `until`.

    Offsets without a record, such as those of transaction markers, are gaps.
    """
    for offsets in acquired:
        decided = range(offsets.start, min(offsets.stop, until))
        if not decided:
            continue
        codes = [int(types.get(offset, _GAP)) for offset in decided]
        if len(set(codes)) == 1:
            codes = codes[:1]
        yield AcknowledgedBatch(decided.start, decided.stop - 1, codes)


class ShareSession:
    """The state of a session; `pending` has the acknowledgements without a response."""

    __slots__ = ("_epoch", "_group", "_member_id", "_partitions", "pending")

    def __init__(self, group: str, member_id: str) -> None:
        self.pending: dict[TopicIdPartition, list[AcknowledgedBatch]] = {}
        self._group = group
        self._member_id = member_id
        self._epoch = _OPENING
        self._partitions: set[TopicIdPartition] = set()

    @property
    def is_open(self) -> bool:
        """Whether the broker has accepted a request of this session."""
        return self._epoch != _OPENING

    def reset(self) -> None:
        """Forget a session that the broker has closed; its records are released."""
        self._epoch = _OPENING
        self._partitions.clear()
        self.pending.clear()

    def fetch_body(self, partitions: Iterable[TopicIdPartition], wait_ms: int) -> dict[str, Any]:
        """Return a ShareFetch of these partitions, with the pending acknowledgements."""
        wanted = set(partitions)
        # A session cannot be opened with acknowledgements.
        pending = self.pending if self.is_open else {}
        rows = {partition: _rows(pending.get(partition, ())) for partition in wanted}
        fetched = {
            partition: batches
            for partition, batches in rows.items()
            if batches or partition not in self._partitions
        }
        # A partition that is only acknowledged is forgotten as well.
        removed = (self._partitions | set(pending)) - wanted
        fetched |= {partition: _rows(pending[partition]) for partition in set(pending) - wanted}
        self._partitions = wanted
        return {
            **self._names(self._epoch),
            "max_wait_ms": wait_ms,
            "min_bytes": 1,
            "max_bytes": _ANSWER_BYTES,
            "max_records": _MAX_RECORDS,
            "batch_size": _MAX_RECORDS,
            "topics": _topics(fetched),
            "forgotten_topics_data": _forgotten(removed),
        }

    def closing_body(self) -> dict[str, Any]:
        """Return the ShareAcknowledge that acknowledges the rest and closes the session."""
        rows = {partition: _rows(batches) for partition, batches in self.pending.items()}
        return {**self._names(_CLOSING), "topics": _topics(rows)}

    def advance(self) -> None:
        """Use the next epoch, after a response."""
        self._epoch = 1 if self._epoch == _LAST_EPOCH else self._epoch + 1
        self.pending.clear()

    def acknowledge(
        self, partition: TopicIdPartition, batches: Iterable[AcknowledgedBatch]
    ) -> None:
        """Send these acknowledgements with the next request."""
        added = list(batches)
        if added:
            self.pending.setdefault(partition, []).extend(added)

    def _names(self, epoch: int) -> dict[str, Any]:
        return {
            "group_id": self._group,
            "member_id": self._member_id,
            "share_session_epoch": epoch,
        }


def _rows(batches: Sequence[AcknowledgedBatch]) -> list[dict[str, Any]]:
    return [batch._asdict() for batch in batches]


def _topics(rows: Mapping[TopicIdPartition, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    topics: dict[bytes, list[dict[str, Any]]] = defaultdict(list)
    for (topic_id, partition), batches in sorted(rows.items()):
        topics[topic_id].append({"partition_index": partition, "acknowledgement_batches": batches})
    return [{"topic_id": topic_id, "partitions": parts} for topic_id, parts in topics.items()]


def _forgotten(partitions: Iterable[TopicIdPartition]) -> list[dict[str, Any]]:
    topics: dict[bytes, list[int]] = defaultdict(list)
    for topic_id, partition in sorted(partitions):
        topics[topic_id].append(partition)
    return [{"topic_id": topic_id, "partitions": parts} for topic_id, parts in topics.items()]
