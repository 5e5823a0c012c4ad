"""Layout of the workers' data.

    data/worker1/  data/worker2/  ...     one log directory in Kafka's format per node
    data/          data/worker2/  ...     if data/ was a single broker's, which stays in place

Apache Kafka can open all of them; such a `data/` only after the workers' folders are moved out.
`worker2` cannot be a partition's folder.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from wirebroker.base.text import few_of
from wirebroker.config import Config, StartError
from wirebroker.config.listeners.listeners import controller_listeners_of
from wirebroker.config.quorum import is_member

if TYPE_CHECKING:
    from collections.abc import Sequence

_META_PROPERTIES: Final = "meta.properties"
_FOLDER: Final = re.compile(r"worker[1-9][0-9]{0,2}")
_MOST_SHOWN: Final = 3
# Workers are found by checking their folders one by one.
MOST_WORKERS: Final = 100


class WorkerDirectories:
    """The workers' directories within those of log.dirs."""

    __slots__ = ("_directories", "_is_in_place")

    def __init__(self, directories: Sequence[str]) -> None:
        self._directories = tuple(directories)
        self._is_in_place = any(_is_formatted(Path(path)) for path in self._directories)

    def of(self, worker: int) -> tuple[str, ...]:
        """Return the directories of a worker, counted from 1."""
        return tuple(self.within(path, worker) for path in self._directories)

    def within(self, directory: str, worker: int) -> str:
        """Return a worker's directory within a common one."""
        if worker == 1 and self._is_in_place:
            return directory
        return str(Path(directory) / f"worker{worker}")

    @property
    def known(self) -> int:
        """The highest worker that has data here, or 0."""
        for worker in range(MOST_WORKERS, 0, -1):
            if any(_is_formatted(Path(path)) for path in self.of(worker)):
                return worker
        return 0

    @property
    def has_folders(self) -> bool:
        """Whether a worker has its own folder."""
        first = 2 if self._is_in_place else 1
        return any(_is_formatted(Path(path)) for path in self.of(first))

    def __str__(self) -> str:
        return ", ".join(self._directories)


def check_alone(config: Config) -> None:
    """Refuse to start one broker on the data of several.

    Raises:
        StartError: Other workers hold replicas, or it is one worker's folder.
    """
    check_is_not_worker_directory(config)
    directories = WorkerDirectories(config.log_directories)
    if not directories.has_folders:
        return
    if any(_is_formatted(Path(path)) for path in config.log_directories):
        check_fewer(directories, 1, first_node=config.node_id)
        return
    raise StartError(
        f"{directories} holds the data of {directories.known} workers",
        f"start it with --workers {directories.known}",
    )


def check_is_not_worker_directory(config: Config) -> None:
    """Refuse a worker's folder to a broker that the other workers cannot join.

    Raises:
        StartError: It is a worker's folder, next to others.
    """
    folders = [Path(path).absolute() for path in config.log_directories]
    if not all(_FOLDER.fullmatch(folder.name) for folder in folders):
        return
    if is_member(config) or controller_listeners_of(config):
        return
    parents = WorkerDirectories([str(folder.parent) for folder in folders])
    clusters = {_cluster_of(folder) for folder in folders} - {None}
    sibling_clusters = {
        _cluster_of(Path(path))
        for worker in range(1, parents.known + 1)
        for path in parents.of(worker)
        if Path(path) not in folders
    }
    if not clusters.isdisjoint(sibling_clusters):
        raise StartError(
            f"{', '.join(config.log_directories)} belongs to a broker with {parents.known} workers",
            f"start all of them: serve --workers {parents.known}, with log.dirs={parents}",
        )


def check_fewer(directories: WorkerDirectories, count: int, *, first_node: int) -> None:
    """Refuse to start only `count` workers if further ones have replicas.

    Raises:
        StartError: They have, or the metadata cannot be read.
    """
    worker_count = directories.known
    if count >= worker_count:
        return
    removed_nodes = set(range(first_node + count, first_node + worker_count))
    replicas = _replicas_of(removed_nodes, directories)
    if replicas:
        raise StartError(
            f"{directories} holds the data of {worker_count} workers; "
            f"those beyond {count} have replicas "
            f"({few_of(replicas, _MOST_SHOWN)})",
            f"start it with --workers {worker_count}, or move them first "
            "(kafka-reassign-partitions.sh; docs/workers.md)",
        )


def _replicas_of(nodes: set[int], directories: WorkerDirectories) -> list[str]:
    from wirebroker.base.clock import SystemClock  # noqa: PLC0415
    from wirebroker.inspect.views.metadata_view import (  # noqa: PLC0415
        UnreadableMetadataError,
        image_of,
    )

    try:
        image = image_of(list(directories.of(1)), SystemClock())
    except UnreadableMetadataError as error:
        raise StartError(
            f"the metadata in {directories} cannot be read: {error}",
            f"wirebroker verify {directories.of(1)[0]} shows more",
        ) from None
    if image is None:
        raise StartError(
            f"{directories} holds the data of {directories.known} workers, but the first one's "
            "metadata is missing",
            "restore it, or choose another directory (--data-dir DIR)",
        )
    return [
        f"{topic.name}-{index}"
        for topic in image.topics.values()
        for index, partition in topic.partitions.items()
        if not nodes.isdisjoint(partition.replicas)
    ]


def _cluster_of(directory: Path) -> str | None:
    from wirebroker.config.java.properties import parse_properties  # noqa: PLC0415

    try:
        return parse_properties((directory / _META_PROPERTIES).read_text())["cluster.id"]
    except (OSError, ValueError, KeyError):
        return None  # reported when it is opened


def _is_formatted(directory: Path) -> bool:
    return (directory / _META_PROPERTIES).exists()
