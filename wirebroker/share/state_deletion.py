"""Deletion of the share state of whole topics of a group.

Source: Kafka's GroupCoordinatorService.performShareGroupsDeletion,
handleDeleteShareGroupOffsetStateResult.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.base.clock import Slices

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from wirebroker.base.clock import Clock, Steps
    from wirebroker.codecs.errors import ErrorCode
    from wirebroker.share.persister import Persister


async def delete_state(
    persister: Persister, clock: Clock, group_id: str, topics: Mapping[bytes, Collection[int]]
) -> dict[bytes, ErrorCode]:
    """Delete share state; return an error for each topic of which some partition has failed."""
    slices = Slices(clock)
    partitions = await slices.run(_partitions_of(topics))
    results = await persister.delete(group_id, partitions) if partitions else {}
    errors: dict[bytes, ErrorCode] = {}
    for (topic_id, _), error in results.items():
        if error is not None:
            errors.setdefault(topic_id, error.code)
        await slices.turn()
    return errors


def _partitions_of(topics: Mapping[bytes, Collection[int]]) -> Steps[list[tuple[bytes, int]]]:
    partitions: list[tuple[bytes, int]] = []
    for topic_id, indexes in topics.items():
        for index in indexes:
            partitions.append((topic_id, index))
            yield
    return partitions
