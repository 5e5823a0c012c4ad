"""The cluster image of a directory's metadata log, read as by a start.

The code of a start runs over unchanged files: truncations happen in memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.codecs.errors import KafkaError, MalformedFrameError, without_frames
from wirebroker.config.rows.row import StartError
from wirebroker.coordinator.controller.features.feature_control import check_features
from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
from wirebroker.coordinator.controller.image.image_builder import ImageBuilder
from wirebroker.inspect.views.overlay_files import OverlayFiles
from wirebroker.inspect.views.storage_warnings import storage_warnings
from wirebroker.quorum.log.metadata_batches import decode_batch
from wirebroker.quorum.log.metadata_snapshot import read_snapshot
from wirebroker.quorum.log.metadata_store import DIRECTORY_NAME, MetadataStore

if TYPE_CHECKING:
    from wirebroker.base.clock import Clock

# A running broker may remove a snapshot or segment after it was listed.
_TRIES = 3


class UnreadableMetadataError(Exception):
    """The metadata log cannot be read; the text is the end of a sentence."""


def read_image(directory: str, clock: Clock) -> ClusterImage | None:
    """Return the cluster image of a log directory; None without a metadata log.

    Raises:
        UnreadableMetadataError: Reading failed.
    """
    if not OverlayFiles().exists(f"{directory}/{DIRECTORY_NAME}"):
        return None
    problem: Exception | None = None
    for _ in range(_TRIES):
        store = MetadataStore(OverlayFiles(), directory, clock)
        try:
            with storage_warnings():  # the check of the log reports them
                store.open()
                return recover_image(store)
        except FileNotFoundError as error:
            problem = without_frames(error)
        except (KafkaError, MalformedFrameError, StartError, OSError) as error:
            raise UnreadableMetadataError(_reason(error)) from error
    raise UnreadableMetadataError(str(problem))


def recover_image(store: MetadataStore) -> ClusterImage:
    """Recover an opened store and return its image.

    Raises:
        KafkaError, MalformedFrameError: A record or snapshot is unreadable or from a newer version.
        StartError: Records are missing.
    """
    builder = ImageBuilder(ClusterImage())
    offset = epoch = 0
    content = store.read_snapshot()
    if content is not None:
        for header, view in read_snapshot(content).batches:
            builder.apply_all(decode_batch(view, header))
        offset, epoch = store.snapshots[-1]
    for header, batch in store.recover():
        epoch = header.leader_epoch
        if not header.is_control:
            builder.apply_all(decode_batch(batch, header, from_offset=offset))
    image, _ = builder.build(offset=store.end_offset, epoch=epoch)
    check_features(image.features)
    return image


def image_of(directories: list[str], clock: Clock) -> ClusterImage | None:
    """Return the first image of the directories; raises like `read_image`."""
    for directory in directories:
        image = read_image(directory, clock)
        if image is not None:
            return image
    return None


def _reason(error: Exception) -> str:
    return (error.message or str(error)) if isinstance(error, KafkaError) else str(error)
