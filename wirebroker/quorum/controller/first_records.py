"""The first records of a cluster, from a formatted directory or the configuration.

| the directory has | first records |
| --- | --- |
| `bootstrap.checkpoint` (Kafka before 4.4, wirebroker with a static voter) | its feature levels |
| feature levels in the first snapshot (Kafka 4.4, wirebroker with dynamic voters) | its records |
| neither | the levels of `wirebroker.release.version`; the file is written |

Source: Kafka's BootstrapDirectory and ActivationRecordsGenerator.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from wirebroker.authorization.acl_updates import unserved_protection
from wirebroker.codecs.errors import KafkaError, MalformedFrameError
from wirebroker.config.protection import asking_names, check_directory
from wirebroker.config.rows.releases import RELEASE_VERSION, RELEASES
from wirebroker.config.rows.row import StartError
from wirebroker.coordinator.controller.features.feature_control import (
    activation_records,
    bootstrap_levels,
    check_features,
)
from wirebroker.coordinator.controller.image.cluster_image import (
    METADATA_VERSION,
    ResourceType,
    to_records,
)
from wirebroker.coordinator.controller.image.image_builder import ImageBuilder
from wirebroker.quorum.log.metadata_snapshot import (
    BOOTSTRAP_FILE,
    bootstrap_records,
    encode_bootstrap,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirebroker.base.clock import Clock
    from wirebroker.codecs.metadata_records import MetadataRecord
    from wirebroker.config import Config
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.quorum.raft.raft_node import RaftNode
    from wirebroker.storage.files import Files

# What to do about a log that cannot be read.
NEWER: Final = "start the newer broker that wrote it, or restore it from a backup"

LOGGER = logging.getLogger(__name__)


class FirstRecords:
    """The first records that this node would write; `first_users` belong to them."""

    __slots__ = ("_config", "_first_users", "_formatted", "_path")

    def __init__(
        self, log_directory: str, config: Config, first_users: Sequence[MetadataRecord]
    ) -> None:
        self._path = f"{log_directory}/{BOOTSTRAP_FILE}"
        self._config = config
        self._first_users = first_users
        self._formatted: list[MetadataRecord] = []

    def prepare(
        self, files: Files, image: ClusterImage, node: RaftNode, *, node_id: int, clock: Clock
    ) -> None:
        """Check what the directory contains, then complete it if it is new.

        Raises:
            StartError: It cannot be read, is from a newer broker, or would lose its protection.
            OSError: The disk failed.
        """
        try:
            self._read(files)
            self._check(image, node, node_id)
        except (KafkaError, MalformedFrameError) as error:
            raise StartError(
                f"the metadata log in {node.directory} cannot be read: {error}", NEWER
            ) from None
        # Until here the log was only read.
        self._store(files, image, is_unused=node.is_unused, now_ms=clock.now_ms())

    def _read(self, files: Files) -> None:
        if files.exists(self._path):
            self._formatted = bootstrap_records(files.read_file(self._path))

    def _check(self, image: ClusterImage, node: RaftNode, node_id: int) -> None:
        check_features(image.features)
        bootstrap = self._bootstrap(image, is_unused=node.is_unused)
        check_features(bootstrap_levels(bootstrap))
        if not bootstrap and METADATA_VERSION in image.features:
            self._warn_of_ignored(image)
        initial_image = ImageBuilder(image).apply_all(bootstrap).build(offset=0, epoch=0)[0]
        protection = (
            *unserved_protection(initial_image, self._config),
            *_protecting_configs(initial_image, node_id),
        )
        check_directory(protection, node.directory, self._config)

    def _store(self, files: Files, image: ClusterImage, *, is_unused: bool, now_ms: int) -> None:
        is_new = is_unused and METADATA_VERSION not in image.features
        if is_new and not files.exists(self._path):
            files.write_file(self._path, encode_bootstrap(now_ms, self._metadata_level))

    def of(self, image: ClusterImage, *, is_unused: bool) -> list[MetadataRecord]:
        """Return the first records of a term; none if the cluster is complete."""
        return activation_records(
            image,
            bootstrap=self._bootstrap(image, is_unused=is_unused),
            metadata_level=self._metadata_level,
            min_insync_replicas=self._config.int("min.insync.replicas"),
        )

    @property
    def _metadata_level(self) -> int:
        return RELEASES[self._config.str(RELEASE_VERSION)]

    def _bootstrap(self, image: ClusterImage, *, is_unused: bool) -> list[MetadataRecord]:
        is_complete = METADATA_VERSION in image.features
        if is_complete and not is_unused:
            return []
        return [*(to_records(image) if is_complete else self._formatted), *self._first_users]

    def _warn_of_ignored(self, image: ClusterImage) -> None:
        if self._first_users:
            LOGGER.warning("the cluster is not new: ignoring the initial users")
        level, release = image.features[METADATA_VERSION], self._config.str(RELEASE_VERSION)
        if self._config.is_set(RELEASE_VERSION) and RELEASES[release] != level:
            LOGGER.warning(
                "the cluster is not new: it keeps metadata.version %d, and %s=%s has no effect; "
                "run `wirebroker features upgrade` to raise it",
                level,
                RELEASE_VERSION,
                release,
            )


def _protecting_configs(image: ClusterImage, node_id: int) -> tuple[str, ...]:
    cluster_wide = image.config(ResourceType.BROKER, "")
    return asking_names({**cluster_wide, **image.config(ResourceType.BROKER, str(node_id))})
