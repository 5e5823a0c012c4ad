"""Where the data of workers lies.

    data/worker1/  data/worker2/  ...     each a log directory of Kafka's, of one node
    data/          data/worker2/  ...     if data/ was a single broker's, which stays in place

A folder `worker2` can't be taken for a partition's. Apache Kafka, too, opens each of them; a
`data/` that stayed in place only once the workers' folders are out of it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from wirebroker.base.wording import few_of
from wirebroker.config import Config, StartError
from wirebroker.config.listeners.listeners import controller_listeners_of
from wirebroker.config.quorum import is_member

if TYPE_CHECKING:
    from collections.abc import Sequence

_META_PROPERTIES: Final = "meta.properties"
_FOLDER: Final = re.compile(r"worker[1-9][0-9]{0,2}")
_MOST_SHOWN: Final = 3
# Beyond what anybody starts: workers are found by their folders, one after the other.
MOST_WORKERS: Final = 100


class WorkerDirectories:
    """The directories of each worker.

    Args:
        directories: Those of log.dirs, as they are written.
    """

    __slots__ = ("_directories", "_is_in_place")

    def __init__(self, directories: Sequence[str]) -> None:
        self._directories = tuple(directories)
        self._is_in_place = any(_is_formatted(Path(each)) for each in self._directories)

    def of(self, worker: int) -> tuple[str, ...]:
        """Return where the data of a worker lies; they count from 1."""
        return tuple(self.within(each, worker) for each in self._directories)

    def within(self, directory: str, worker: int) -> str:
        """Return a worker's place in a directory that all have in common."""
        if worker == 1 and self._is_in_place:
            return directory
        return str(Path(directory) / f"worker{worker}")

    @property
    def known(self) -> int:
        """Return the greatest worker that has had data here; 0: none has."""
        for worker in range(MOST_WORKERS, 0, -1):
            if any(_is_formatted(Path(each)) for each in self.of(worker)):
                return worker
        return 0

    @property
    def has_folders(self) -> bool:
        """Whether some worker has a folder of its own; quick, for every start."""
        first = 2 if self._is_in_place else 1
        return any(_is_formatted(Path(each)) for each in self.of(first))

    def __str__(self) -> str:
        return ", ".join(self._directories)


def check_alone(config: Config) -> None:
    """Refuse to start one broker where several have their data.

    Raises:
        StartError: The workers that there were hold replicas, or have the directory to themselves;
            or it is one worker's folder.
    """
    check_is_no_workers(config)
    directories = WorkerDirectories(config.log_directories)
    if not directories.has_folders:
        return
    if any(_is_formatted(Path(each)) for each in config.log_directories):
        check_fewer(directories, 1, first_node=config.node_id)
        return
    raise StartError(
        f"{directories} holds the data of {directories.known} workers",
        f"start it with --workers {directories.known}",
    )


def check_is_no_workers(config: Config) -> None:
    """Refuse a worker's folder to brokers that nobody could join, the other workers neither.

    Raises:
        StartError: It is one worker's, and others are beside it.
    """
    folders = [Path(each).absolute() for each in config.log_directories]
    if not all(_FOLDER.fullmatch(each.name) for each in folders):
        return
    if is_member(config) or controller_listeners_of(config):
        return
    parents = WorkerDirectories([str(each.parent) for each in folders])
    clusters = {_cluster_of(each) for each in folders} - {None}
    beside = {
        _cluster_of(Path(each))
        for worker in range(1, parents.known + 1)
        for each in parents.of(worker)
        if Path(each) not in folders
    }
    if not clusters.isdisjoint(beside):
        raise StartError(
            f"{', '.join(config.log_directories)} is one of the folders of {parents.known} workers",
            f"start all of them: serve --workers {parents.known}, with log.dirs={parents}",
        )


def check_fewer(directories: WorkerDirectories, count: int, *, first_node: int) -> None:
    """Refuse fewer workers than have replicas.

    Args:
        directories: Where their data lies.
        count: How many are to start.
        first_node: The node id of the first.

    Raises:
        StartError: Some that would not run have replicas, or it can't be found out.
    """
    known = directories.known
    if count >= known:
        return
    gone = set(range(first_node + count, first_node + known))
    held = _held_by(gone, directories)
    if held:
        raise StartError(
            f"{directories} is of {known} workers, and those beyond {count} have replicas "
            f"({few_of(held, _MOST_SHOWN)})",
            f"start it with --workers {known}, or move them first "
            "(kafka-reassign-partitions.sh; docs/workers.md)",
        )


def _held_by(nodes: set[int], directories: WorkerDirectories) -> list[str]:
    """Return the partitions that have a replica on one of these nodes."""
    from wirebroker.base.clock import SystemClock  # noqa: PLC0415 - few starts read it all
    from wirebroker.inspect.views.metadata_view import (  # noqa: PLC0415
        UnreadableMetadataError,
        image_of,
    )

    try:
        image = image_of(list(directories.of(1)), SystemClock())
    except UnreadableMetadataError as error:
        raise StartError(
            f"the metadata in {directories} cannot be read: {error}",
            f"wirebroker verify {directories.of(1)[0]} tells more",
        ) from None
    if image is None:
        raise StartError(
            f"{directories} is of {directories.known} workers, and the metadata of the first is "
            "missing",
            "put it back, or choose another directory (--data-dir DIR)",
        )
    return [
        f"{topic.name}-{index}"
        for topic in image.topics.values()
        for index, partition in topic.partitions.items()
        if not nodes.isdisjoint(partition.replicas)
    ]


def _cluster_of(directory: Path) -> str | None:
    """Return which cluster a directory belongs to; None if it is new or does not say it."""
    from wirebroker.config.java.properties import parse_properties  # noqa: PLC0415 - few starts ask

    try:
        return parse_properties((directory / _META_PROPERTIES).read_text())["cluster.id"]
    except (OSError, ValueError, KeyError):
        return None  # what is wrong with it is said when it is opened


def _is_formatted(directory: Path) -> bool:
    return (directory / _META_PROPERTIES).exists()
