"""What moves between log directories have left when the last user stopped or was killed.

    a copy beside its log             the move begins anew (replica_moves.py)
    a copy without its log            it was whole: it is the log
    a log in two directories          it is the one that the metadata names; what a kill of Kafka's
                                      leaves, or a loss of power

Source: Kafka's LogManager.recoverAbandonedFutureLogs.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple

from wirebroker.coordinator.controller.cluster_image import directory_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wirebroker.coordinator.controller.cluster_image import ClusterImage, PartitionImage
    from wirebroker.storage.log_directory import LogDirectory, PartitionDirectory

logger = logging.getLogger(__name__)

_Key = tuple[str, int]


class FoundCopies(NamedTuple):
    """What was found.

    Attributes:
        unfinished: Topic and index of what was on its way, and the directory that it was to lie in.
        promoted: Paths of copies that are logs now; nobody has closed them cleanly.
    """

    unfinished: list[tuple[_Key, LogDirectory]]
    promoted: set[str]


def sort_out(
    directories: Iterable[LogDirectory], image: ClusterImage, *, node_id: int
) -> FoundCopies:
    """Leave in each directory's `partitions` what is to be opened.

    Raises:
        OSError: A disk failed.
    """
    directories = tuple(directories)
    found = FoundCopies([], set())
    places: dict[_Key, list[LogDirectory]] = {}
    for directory in directories:
        for each in directory.partitions:
            places.setdefault((each.topic, each.partition), []).append(directory)
    for key, where in places.items():
        if len(where) > 1:
            _choose(key, where, _placed_here(key, image, node_id), node_id)
    for directory in directories:
        for copy in directory.futures:
            key = (copy.topic, copy.partition)
            if key in places:
                directory.to_delete.append(copy.path)
                found.unfinished.append((key, directory))
            elif _placed_here(key, image, node_id) is not None:
                places[key] = [directory]
                found.promoted.add(_promote(copy, directory))
            else:
                directory.strays.append(copy.path)
    return found


def _placed_here(key: _Key, image: ClusterImage, node_id: int) -> PartitionImage | None:
    partition = image.partition(*key)
    return partition if partition is not None and node_id in partition.replicas else None


def _choose(
    key: _Key, where: list[LogDirectory], placed: PartitionImage | None, node_id: int
) -> None:
    """Set aside what lies elsewhere than the metadata says, if it says one of these."""
    if placed is None:
        return
    named = directory_of(placed, node_id)
    if named not in [each.directory_id for each in where]:
        return  # whoever opens them refuses both
    for directory in where:
        if directory.directory_id != named:
            path = directory.stray_partition_directory(*key)
            directory.partitions = [
                each for each in directory.partitions if (each.topic, each.partition) != key
            ]
            logger.warning("%s-%d is there twice: what lay here is now %s", *key, path)


def _promote(copy: PartitionDirectory, directory: LogDirectory) -> str:
    path = directory.use_future_directory(copy.path, copy.topic, copy.partition)
    directory.partitions.append(copy._replace(path=path))
    logger.info("%s-%d has been moved: it lies in %s now", copy.topic, copy.partition, path)
    return path
