"""The directories that this process has locked: log.dirs and metadata.log.dir.

The id of their cluster is taken from the first that has one.

Source: Kafka's MetaPropertiesEnsemble.
"""

from __future__ import annotations

import errno
import logging
from pathlib import Path
from typing import TYPE_CHECKING

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.config import StartError
from wirebroker.config.listeners.other_controllers import names_other_controllers
from wirebroker.coordinator.controller.image.topic_names import CLUSTER_METADATA_TOPIC
from wirebroker.disks.data_directory import is_disk_failure
from wirebroker.storage.directory_identity import (
    META_PROPERTIES,
    DamagedDirectoryError,
    LogDirectoryError,
)
from wirebroker.storage.log_directory import LogDirectory

if TYPE_CHECKING:
    from wirebroker.config import Config
    from wirebroker.storage.files import Files

logger = logging.getLogger("wirebroker")


class LogDirLocks:
    """The data directories of this broker.

    Attributes:
        of_logs: Those of log.dirs, in their order, including failed ones.
    """

    __slots__ = ("_config", "_files", "_metadata_directory", "of_logs")

    def __init__(self, config: Config, files: Files) -> None:
        self._config = config
        self._files = files
        self.of_logs: list[LogDirectory] = []
        # Only if it is not in log.dirs.
        self._metadata_directory: LogDirectory | None = None

    def open(self, cluster_id: str | None = None) -> None:
        """Lock and identify all directories; log and skip failed ones if possible.

        Raises:
            StartError: A directory cannot be used; `close` releases the others.
        """
        cluster_id = cluster_id or self._config.optional_str("wirebroker.cluster.id")
        if cluster_id is None:
            self._check_may_begin_cluster()
        named = {str(Path(path).absolute()): path for path in self._config.log_directories}
        paths = list(named)
        if self.metadata_home not in paths:
            # It has a cluster id even if all others are new.
            self._metadata_directory = self._open(self.metadata_home, cluster_id)
            cluster_id = self._metadata_directory.cluster_id
        # The metadata log's directory comes first: another disk may have been replaced.
        for path in sorted(paths, key=lambda path: path != self.metadata_home):
            directory = self._open_or_fail(named[path], cluster_id)
            self.of_logs.append(directory)
            if not directory.has_failed:
                cluster_id = directory.cluster_id
            for problem in directory.problems:
                logger.warning("%s", problem)
        self.of_logs.sort(key=lambda opened: paths.index(opened.path))
        self._check_any_online()

    def begin_use(self) -> None:
        """Remove the clean-stop markers, before the first change.

        Raises:
            OSError: A required disk has failed.
            StartError: No directory is left.
        """
        for index, directory in enumerate(self.of_logs):
            if directory.has_failed:
                continue
            try:
                directory.remove_clean_shutdown_marker()
            except OSError as error:
                if not self._can_do_without(directory.path, error):
                    raise
                _say_failed(directory.path, error)
                directory.close()
                self.of_logs[index] = LogDirectory.failed(directory.path, self._files)
        self._check_any_online()

    def take_back(self) -> None:
        """Undo the identity of new directories, after a start that had no effect elsewhere."""
        for directory in (*self.of_logs, self._metadata_directory):
            if directory is None or not directory.is_new:
                continue
            try:
                # What a start has written by then.
                directory.remove_partition_directory(CLUSTER_METADATA_TOPIC, 0)
                directory.forget_identity()
            except OSError as error:
                logger.warning(
                    "cannot release %s from node %d: %s",
                    directory.path,
                    directory.node_id,
                    error.strerror or error,
                )

    def close(self) -> None:
        """Release all directories."""
        for directory in self.of_logs:
            directory.close()
        if self._metadata_directory is not None:
            self._metadata_directory.close()

    @property
    def online(self) -> list[LogDirectory]:
        """The opened directories of log.dirs."""
        return [directory for directory in self.of_logs if not directory.has_failed]

    @property
    def cluster_id(self) -> str:
        """The id of their cluster."""
        return self.online[0].cluster_id

    @property
    def metadata_directory_id(self) -> bytes:
        """The id of the metadata log's directory."""
        if self._metadata_directory is not None:
            return self._metadata_directory.directory_id
        home = self.metadata_home
        return next(opened.directory_id for opened in self.of_logs if opened.path == home)

    @property
    def metadata_home(self) -> str:
        """The absolute path of the metadata log's directory."""
        home = self._config.optional_str("metadata.log.dir") or self._config.log_directories[0]
        return str(Path(home).absolute())

    def _check_may_begin_cluster(self) -> None:
        """Refuse to begin a second cluster if other controllers may begin one.

        Raises:
            StartError: This node is one of several controllers and its directory is new.
        """
        identity = f"{self.metadata_home}/{META_PROPERTIES}"
        if not names_other_controllers(self._config) or not self._is_missing(identity):
            return
        raise StartError(
            f"the data directory {self.metadata_home} is new, and the settings name other"
            " controllers: this node cannot tell which cluster it belongs to",
            "give all of them the same id: wirebroker.cluster.id=ID or CLUSTER_ID, or format their"
            " directories (`wirebroker format --cluster-id ID`); `wirebroker kafka-storage"
            " random-uuid` prints a new id",
        )

    def _check_any_online(self) -> None:
        if not self.online:
            raise StartError(
                "none of the data directories can be used",
                "check the disks and their permissions, or choose others (--data-dir DIR)",
            )

    def _can_do_without(self, path: str, error: OSError) -> bool:
        return (
            len(self._config.log_directories) > 1
            and path != self.metadata_home
            and is_disk_failure(error)
        )

    def _is_missing(self, path: str) -> bool:
        try:
            return not self._files.exists(path)
        except OSError:
            return False

    def _open_or_fail(self, path: str, cluster_id: str | None) -> LogDirectory:
        absolute = str(Path(path).absolute())
        try:
            return self._open(path, cluster_id)
        except StartError as refusal:
            error = refusal.__cause__
            if isinstance(error, DamagedDirectoryError):
                error = OSError(errno.EIO, str(error).partition(";")[0])
            # A missing directory is a mistake in log.dirs.
            if (
                not isinstance(error, OSError)
                or self._is_missing(absolute)
                or not self._can_do_without(absolute, error)
            ):
                raise
            _say_failed(absolute, error)
            return LogDirectory.failed(absolute, self._files)

    def _open(self, path: str, cluster_id: str | None) -> LogDirectory:
        absolute = str(Path(path).absolute())
        try:
            return LogDirectory.open(
                absolute, self._files, node_id=self._config.node_id, cluster_id=cluster_id
            )
        except LogDirectoryError as error:
            problem, _, remedy = str(error).partition("; ")
            raise StartError(problem, remedy) from error
        except OSError as error:
            is_path_taken = isinstance(error, FileExistsError | NotADirectoryError)
            reason = "it is not a directory" if is_path_taken else error.strerror or error
            raise StartError(
                f"cannot use the data directory {path}: {reason}",
                "choose another (--data-dir DIR)"
                if is_path_taken
                else "check its owner and permissions, or choose another (--data-dir DIR)",
            ) from error


def why_not_started(error: OSError | KafkaError) -> StartError:
    """Return the error for a start that failed because of the disk or the controller."""
    if isinstance(error, OSError) or error.code is ErrorCode.KAFKA_STORAGE_ERROR:
        return StartError(
            f"the data directory cannot be used: {error}",
            "check the disk and its permissions, or choose another (--data-dir DIR)",
        )
    return StartError(
        f"the controller refuses this node: {error}",
        "change what it names, or choose another directory (--data-dir DIR)",
    )


def _say_failed(path: str, error: OSError) -> None:
    logger.error(
        "the data directory %s cannot be used: %s; its partitions are offline until a restart",
        path,
        error.strerror or error,
    )
