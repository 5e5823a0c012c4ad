"""The directories that this process holds: those of log.dirs, and one of the metadata log's own.

Each tells the cluster's id or is given it: the first that knows it tells all that come after it.
One that is locked by another process, or belongs to another node or cluster, keeps the broker from
starting.

Source: Kafka's MetaPropertiesEnsemble.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from wirebroker.config import StartError
from wirebroker.storage.log_directory import LogDirectory, LogDirectoryError

if TYPE_CHECKING:
    from wirebroker.config import Config
    from wirebroker.storage.files import Files

logger = logging.getLogger("wirebroker")


class LockedDirectories:
    """Where this broker's data lies.

    Attributes:
        of_logs: The directories of log.dirs, in their order, once they are open.
    """

    __slots__ = ("_config", "_files", "_of_metadata", "of_logs")

    def __init__(self, config: Config, files: Files) -> None:
        self._config = config
        self._files = files
        self.of_logs: list[LogDirectory] = []
        # Of the metadata log, if that is none of them.
        self._of_metadata: LogDirectory | None = None

    def open(self, cluster_id: str | None = None) -> None:
        """Lock all of them, and say who they belong to.

        Args:
            cluster_id: The cluster that they must belong to, if another one is not possible.

        Raises:
            StartError: One of them cannot be used; `close` lets go of the others.
        """
        cluster_id = cluster_id or self._config.optional_str("wirebroker.cluster.id")
        paths = [str(Path(path).absolute()) for path in self._config.log_directories]
        home = self._config.optional_str("metadata.log.dir")
        if home and str(Path(home).absolute()) not in paths:
            # It knows the cluster when all others are new.
            self._of_metadata = self._open(home, cluster_id)
            cluster_id = self._of_metadata.cluster_id
        for path in self._config.log_directories:
            directory = self._open(path, cluster_id)
            cluster_id = directory.cluster_id
            self.of_logs.append(directory)
            for problem in directory.problems:
                logger.warning("%s", problem)

    def close(self) -> None:
        """Let go of them."""
        for directory in self.of_logs:
            directory.close()
        if self._of_metadata is not None:
            self._of_metadata.close()

    @property
    def cluster_id(self) -> str:
        """The cluster that they belong to."""
        return self.of_logs[0].cluster_id

    @property
    def metadata_home(self) -> str:
        """The absolute path of the directory that the metadata log lies in."""
        home = self._config.optional_str("metadata.log.dir") or self.of_logs[0].path
        return str(Path(home).absolute())

    def _open(self, path: str, cluster_id: str | None) -> LogDirectory:
        absolute = str(Path(path).absolute())
        try:
            return LogDirectory.open(
                absolute, self._files, node_id=self._config.node_id, cluster_id=cluster_id
            )
        except LogDirectoryError as error:
            what, _, mend = str(error).partition("; ")
            raise StartError(what, mend) from error
        except OSError as error:
            is_path_taken = isinstance(error, FileExistsError | NotADirectoryError)
            reason = "it is no directory" if is_path_taken else error.strerror or error
            raise StartError(
                f"cannot use the data directory {path}: {reason}",
                "choose another (--data-dir DIR)"
                if is_path_taken
                else "check its owner and permissions, or choose another (--data-dir DIR)",
            ) from error
