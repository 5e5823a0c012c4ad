"""The choice of the log directory for a new replica.

    requested (AlterReplicaLogDirs)    once, if that directory is online
    assigned by the metadata           if online; otherwise the replica is offline as well
    with the fewest partitions         among those not cordoned (KIP-1066); if all are, the first

Source: Kafka's LogManager.getOrCreateLog and nextLogDirs, Partition.createLogInAssignedDirectoryId.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from wirebroker.coordinator.controller.image.cluster_image import UNASSIGNED_DIRECTORY, directory_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirebroker.config import Config
    from wirebroker.coordinator.controller.image.cluster_image import PartitionImage
    from wirebroker.disks.data_directory import DataDirectory

    _Placed = list[tuple[PartitionImage, DataDirectory]]

_MOST_PREFERRED: Final = 10_000


class DirectoryChoice:
    """The directories, and the requests for new replicas."""

    __slots__ = ("_directories", "_node_id", "_preferred")

    def __init__(self, directories: Sequence[DataDirectory], *, node_id: int) -> None:
        self._directories = directories
        self._node_id = node_id
        # By topic and index.
        self._preferred: dict[tuple[str, int], DataDirectory] = {}

    def prefer(self, topic: str, index: int, directory: DataDirectory) -> None:
        """Request a directory for a new replica; the oldest requests may be dropped."""
        self._preferred[topic, index] = directory
        if len(self._preferred) > _MOST_PREFERRED:
            del self._preferred[next(iter(self._preferred))]

    def use_cordon(self, config: Config) -> None:
        """Cordon the directories that a configuration names."""
        named = config.list("cordoned.log.dirs")
        paths = {str(Path(path).absolute()) for path in named}
        for directory in self._directories:
            directory.is_cordoned = "*" in named or directory.path in paths

    def choose(
        self, topic: str, new: Sequence[PartitionImage], usable: Sequence[DataDirectory]
    ) -> _Placed:
        """Return each new partition with one of the usable directories."""
        counts = {directory: len(directory.partitions) for directory in usable}
        by_id = {directory.directory_id: directory for directory in usable}
        open_ones = [directory for directory in usable if not directory.is_cordoned] or usable[:1]
        placed: _Placed = []
        for partition in new:
            emptiest = min(open_ones, key=lambda directory: counts[directory])
            target = by_id.get(directory_of(partition, self._node_id), emptiest)
            preferred = self._preferred.pop((topic, partition.index), target)
            target = preferred if preferred in usable else target
            counts[target] += 1
            placed.append((partition, target))
        return placed

    def lost(self, new: Sequence[PartitionImage]) -> _Placed:
        """Return the partitions assigned to an offline directory, with it."""
        offline = {
            directory.directory_id: directory
            for directory in self._directories
            if not directory.is_online
        }
        if not offline:
            return []
        # The id of a directory that could not be opened is unknown.
        unknown = offline.get(UNASSIGNED_DIRECTORY, next(iter(offline.values())))
        online_ids = {
            directory.directory_id for directory in self._directories if directory.is_online
        }
        online_ids.add(UNASSIGNED_DIRECTORY)
        named = [(partition, directory_of(partition, self._node_id)) for partition in new]
        return [
            (partition, offline.get(directory_id, unknown))
            for partition, directory_id in named
            if directory_id not in online_ids
        ]
