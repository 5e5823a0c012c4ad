"""What moves between log directories have left when the last user stopped or was killed.

    a copy beside its log             the move begins anew (replica_moves.py)
    a copy without its log
      where the metadata says         it was whole: it is the log
      elsewhere                       the log was lost with its disk: the copy, of which nobody
                                      knows how much it has, is put aside, and the move begins
                                      anew with whatever log there will be; if a directory has
                                      failed the log may lie there, and the copy stays as it is
    a log in two directories          it is the one that the metadata names; what a kill of Kafka's
                                      leaves, or a loss of power

A directory whose disk fails with that is left out from then on, with its logs; the others are
sorted out.

Source: Kafka's LogManager.recoverAbandonedFutureLogs.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple

from wirebroker.coordinator.controller.cluster_image import directory_of
from wirebroker.coordinator.controller.feature_control import has_directory_assignments

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
        failed: Directories whose disk has failed meanwhile.
    """

    unfinished: list[tuple[_Key, LogDirectory]]
    promoted: set[str]
    failed: dict[LogDirectory, OSError]

    def check(self, directory: LogDirectory) -> None:
        """Do nothing about one that was sorted out.

        Raises:
            OSError: Its disk has failed.
        """
        if directory in self.failed:
            raise self.failed[directory]


def sort_out(
    directories: Iterable[LogDirectory], image: ClusterImage, *, node_id: int, is_whole: bool
) -> FoundCopies:
    """Leave in each directory's `partitions` what is to be opened.

    Args:
        directories: Those that could be opened.
        image: The metadata.
        node_id: This node.
        is_whole: Whether they are all that it has.
    """
    directories = tuple(directories)
    found = FoundCopies([], set(), {})
    places: dict[_Key, list[LogDirectory]] = {}
    for directory in directories:
        for each in directory.partitions:
            places.setdefault((each.topic, each.partition), []).append(directory)
    for key, where in places.items():
        if len(where) > 1:
            _choose(key, where, _placed_here(key, image, node_id), node_id, found)
    copies = [(copy, directory) for directory in directories for copy in directory.futures]
    # Those whose log is there come last: which disks fail with the others is known by then.
    copies.sort(key=lambda each: (each[0].topic, each[0].partition) in places)
    for copy, directory in copies:
        if directory not in found.failed:
            sees_all = is_whole and not found.failed
            placing = _Placing(image, node_id, is_whole=sees_all)
            try:
                _sort_out_copy(copy, directory, places, placing, found)
            except OSError as error:
                found.failed[directory] = error
    return found


class _Placing(NamedTuple):
    """Where this node's replicas lie, as far as it is known."""

    image: ClusterImage
    node_id: int
    is_whole: bool


def _sort_out_copy(
    copy: PartitionDirectory,
    directory: LogDirectory,
    places: dict[_Key, list[LogDirectory]],
    placing: _Placing,
    found: FoundCopies,
) -> None:
    """Say what becomes of one copy.

    Raises:
        OSError: The disk failed.
    """
    key = (copy.topic, copy.partition)
    if any(each not in found.failed for each in places.get(key, ())):
        directory.to_delete.append(copy.path)
        found.unfinished.append((key, directory))
        return
    placed = _placed_here(key, placing.image, placing.node_id)
    if placed is None:
        directory.strays.append(copy.path)
    elif _is_promised(placed, directory, placing):
        places[key] = [directory]
        found.promoted.add(_promote(copy, directory))
    elif placing.is_whole:
        _put_aside(copy, directory)
        found.unfinished.append((key, directory))


def _is_promised(placed: PartitionImage, directory: LogDirectory, placing: _Placing) -> bool:
    """Tell whether the controller was told that the log would lie here, so that it was whole."""
    if not has_directory_assignments(placing.image.features):
        # Nobody is told; but the log may lie where it can't be looked for.
        return placing.is_whole
    return directory_of(placed, placing.node_id) == directory.directory_id


def _placed_here(key: _Key, image: ClusterImage, node_id: int) -> PartitionImage | None:
    partition = image.partition(*key)
    return partition if partition is not None and node_id in partition.replicas else None


def _choose(
    key: _Key,
    where: list[LogDirectory],
    placed: PartitionImage | None,
    node_id: int,
    found: FoundCopies,
) -> None:
    """Set aside what lies elsewhere than the metadata says, if it says one of these."""
    if placed is None:
        return
    named = directory_of(placed, node_id)
    if named not in [each.directory_id for each in where]:
        return  # whoever opens them refuses both
    for directory in where:
        if directory.directory_id != named and directory not in found.failed:
            try:
                path = directory.stray_partition_directory(*key)
            except OSError as error:
                found.failed[directory] = error
                continue
            directory.partitions = [
                each for each in directory.partitions if (each.topic, each.partition) != key
            ]
            logger.warning("%s-%d is there twice: what lay here is now %s", *key, path)


def _promote(copy: PartitionDirectory, directory: LogDirectory) -> str:
    path = directory.use_future_directory(copy.path, copy.topic, copy.partition)
    directory.partitions.append(copy._replace(path=path))
    logger.info("%s-%d has been moved: it lies in %s now", copy.topic, copy.partition, path)
    return path


def _put_aside(copy: PartitionDirectory, directory: LogDirectory) -> None:
    path = directory.stray_future_directory(copy.path, copy.topic, copy.partition)
    logger.warning(
        "the log of %s-%d that was being moved is gone: what was copied of it is now %s",
        copy.topic,
        copy.partition,
        path,
    )
