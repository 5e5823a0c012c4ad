"""A new single controller, which begins its quorum alone, as `kafka-storage format --standalone`.

| the node | its voter |
| --- | --- |
| has a controller listener, and names no voters | dynamic (kraft.version 1): others can be added |
| names itself in controller.quorum.voters | static (kraft.version 0), as in Kafka |
| has no controller listener | static: no other node could reach it |

Source: Kafka's StorageTool; in Kafka every controller has a listener.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.codecs.records.control import KRaftVersion, KRaftVoters, Voter
from wirebroker.config.listeners.other_controllers import names_other_controllers
from wirebroker.config.quorum import voters_of
from wirebroker.config.rows.releases import RELEASE_VERSION, RELEASES
from wirebroker.coordinator.controller.features.feature_control import new_cluster_levels
from wirebroker.quorum.formatting.directory_format import write_checkpoint
from wirebroker.quorum.log.metadata_snapshot import BOOTSTRAP_FILE, SUFFIX
from wirebroker.quorum.log.metadata_store import DIRECTORY_NAME

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirebroker.codecs.metadata_records import MetadataRecord
    from wirebroker.codecs.records.control import VoterEndpoint
    from wirebroker.config import Config
    from wirebroker.storage.files import Files

_SEGMENT: Final = ".log"


def format_standalone(
    log_directory: str,
    config: Config,
    *,
    files: Files,
    directory_id: bytes,
    endpoints: Sequence[VoterEndpoint],
    first_users: Sequence[MetadataRecord] = (),
) -> bool:
    """Write the first snapshot of a new single controller that others can reach.

    Args:
        log_directory: The metadata log's directory, locked, with its identity.
        config: The node's configuration.
        files: The files.
        directory_id: The directory's id.
        endpoints: The addresses of the controller's listeners.
        first_users: The users of a new cluster.

    Returns:
        Whether the directory was new and is formatted now.

    Raises:
        OSError: The disk failed.
    """
    is_alone = not voters_of(config) and not names_other_controllers(config)
    if not endpoints or not is_alone or not _is_new(log_directory, files):
        return False
    levels = new_cluster_levels(RELEASES[config.str(RELEASE_VERSION)])
    voter = Voter(config.node_id, directory_id, tuple(endpoints), 0, 1)
    write_checkpoint(
        log_directory,
        files,
        [*levels, *first_users],
        [KRaftVersion(1), KRaftVoters((voter,))],
    )
    return True


def _is_new(log_directory: str, files: Files) -> bool:
    if files.exists(f"{log_directory}/{BOOTSTRAP_FILE}"):
        return False
    log = f"{log_directory}/{DIRECTORY_NAME}"
    return not files.exists(log) or not any(
        name.endswith((SUFFIX, _SEGMENT)) for name in files.list_files(log)
    )
