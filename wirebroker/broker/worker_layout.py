"""Layout of the workers' data.

    data/worker1/  data/worker2/  ...     one log directory in Kafka's format per node
    data/          data/worker2/  ...     if data/ was a single broker's, which stays in place

`worker2` cannot be a partition's folder. Apache Kafka can open all of them; such a `data/` only
after the workers' folders are moved out.
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
# Workers are found by checking their folders one by one.
MOST_WORKERS: Final = 100


class WorkerDirectories:
    """The workers' directories within those of log.dirs."""

    __slots__ = ("_directories", "_is_in_place")

    def __init__(self, directories: Sequence[str]) -> None:
        self._directories = tuple(directories)
        self._is_in_place = any(_is_formatted(Path(each)) for each in self._directories)

    def of(self, worker: int) -> tuple[str, ...]:
        """Return the directories of a worker, counted from 1."""
        return tuple(self.within(each, worker) for each in self._directories)

    def within(self, directory: str, worker: int) -> str:
        """Return a worker's directory within a common one."""
        if worker == 1 and self._is_in_place:
            return directory
        return str(Path(directory) / f"worker{worker}")

    @property
    def known(self) -> int:
        """The highest worker that has data here; 0 for none."""
        for worker in range(MOST_WORKERS, 0, -1):
            if any(_is_formatted(Path(each)) for each in self.of(worker)):
                return worker
        return 0

    @property
    def has_folders(self) -> bool:
        """Whether a worker has its own folder; a quick check for every start."""
        first = 2 if self._is_in_place else 1
        return any(_is_formatted(Path(each)) for each in self.of(first))

    def __str__(self) -> str:
        return ", ".join(self._directories)


def check_alone(config: Config) -> None:
    """Refuse to start one broker on the data of several.

    Raises:
        StartError: Other workers hold replicas, or it is one worker's folder.
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
    """Refuse a worker's folder to a broker that the other workers cannot join.

    Raises:
        StartError: It is a worker's folder, next to others.
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
    """Refuse to start only `count` workers if further ones have replicas.

    Raises:
        StartError: They have, or the metadata cannot be read.
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
    """Return the partitions that have a replica on these nodes."""
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
    """Return the cluster id of a directory, or None."""
    from wirebroker.config.java.properties import parse_properties  # noqa: PLC0415 - few starts ask

    try:
        return parse_properties((directory / _META_PROPERTIES).read_text())["cluster.id"]
    except (OSError, ValueError, KeyError):
        return None  # the error is reported when it is opened


def _is_formatted(directory: Path) -> bool:
    return (directory / _META_PROPERTIES).exists()
