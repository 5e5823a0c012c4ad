"""The changelog offsets that a member reports for its tasks: how far its copies of state are.

Soft state: the `sticky` assignor prefers the most advanced copy; StreamsGroupDescribe shows them.

Source: Kafka's MemberTaskOffsets; KIP-1071.
"""

from __future__ import annotations

from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.groups.assignors.assignor import WORK_PER_STEP

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from wirebroker.base.clock import Steps

# Memory of one reported offset, about.
_BYTES_OF_OFFSET: Final = 100

_subtopology_id = attrgetter("subtopology_id")


class TaskOffsets(NamedTuple):
    """Sums of offsets, and of the logs' ends, by subtopology id and partition.

    Attributes:
        size_bytes: Memory, about.
    """

    offsets: Mapping[str, Mapping[int, int]] = MappingProxyType({})
    end_offsets: Mapping[str, Mapping[int, int]] = MappingProxyType({})
    size_bytes: int = 0

    def updated(
        self, offsets: Iterable[Any] | None, end_offsets: Iterable[Any] | None
    ) -> TaskOffsets:
        """Return the offsets after a report; None: not reported.

        Raises:
            KafkaError: INVALID_REQUEST: a task is reported twice.
        """
        after = self.offsets if offsets is None else _by_task(offsets)
        ends_after = self.end_offsets if end_offsets is None else _by_task(end_offsets)
        return TaskOffsets(after, ends_after, _size(after) + _size(ends_after))


NO_OFFSETS: Final = TaskOffsets()


def id_lengths(entries: Iterable[Any]) -> Iterable[int]:
    """Return the lengths of the reported subtopology ids, without a Python call for each."""
    return map(len, map(_subtopology_id, entries))


def reported_size(entries: Iterable[Any] | None) -> int:
    """Return the approximate memory of reported offsets, in bytes."""
    return sum(map(_BYTES_OF_OFFSET.__add__, id_lengths(entries or ())))


def _size(sums: Mapping[str, Mapping[int, int]]) -> int:
    return sum(
        len(partitions) * (_BYTES_OF_OFFSET + len(subtopology))
        for subtopology, partitions in sums.items()
    )


def _by_task(entries: Iterable[Any]) -> dict[str, dict[int, int]]:
    offsets: dict[str, dict[int, int]] = {}
    for entry in entries:
        partitions = offsets.setdefault(entry.subtopology_id, {})
        if entry.partition in partitions:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"Task offsets contain a duplicate entry for subtopology {entry.subtopology_id} "
                f"and partition {entry.partition}.",
            )
        partitions[entry.partition] = entry.offset
    return offsets


def offsets_in_steps(sums: Mapping[str, Mapping[int, int]]) -> Steps[list[dict[str, Any]]]:
    """Return offsets as in a response, sorted."""
    offsets: list[dict[str, Any]] = []
    for subtopology, partitions in sorted(sums.items()):
        for partition, offset in sorted(partitions.items()):
            offsets.append(
                {"subtopology_id": subtopology, "partition": partition, "offset": offset}
            )
            if len(offsets) % WORK_PER_STEP == 0:
                yield
    return offsets
