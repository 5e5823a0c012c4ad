"""Formatting of a node, from its configuration and the flags of a tool.

Source: Kafka's StorageTool.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.config.rows.row import ConfigError
from wirebroker.coordinator.controller.features.feature_control import feature_level
from wirebroker.quorum.formatting.directory_format import Formatting, format_directories
from wirebroker.quorum.formatting.first_levels import (
    FirstLevels,
    first_levels,
    known_release,
    parse_levels,
)
from wirebroker.quorum.formatting.first_voters import (
    VOTERS,
    QuorumFlags,
    first_voters,
    is_controller,
)
from wirebroker.security.sasl.first_users import first_users

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from wirebroker.codecs.metadata_records import MetadataRecord
    from wirebroker.config import Config
    from wirebroker.storage.files import Files

_SCRAM_RELEASE: Final = "3.5-IV2"


class FormatRequest(NamedTuple):
    """The arguments of a tool that formats a node.

    Attributes:
        quorum: The flags for the voters.
        release: None for the latest release.
        features: NAME=LEVEL texts.
        users: SCRAM users, in the format of first_users.py.
        ignores_formatted: Whether directories may be formatted already.
    """

    config: Config
    cluster_id: str
    quorum: QuorumFlags
    release: str | None = None
    features: Sequence[str] = ()
    users: Sequence[str] = ()
    ignores_formatted: bool = False


def format_node(request: FormatRequest, files: Files, tell: Callable[[str], None]) -> FirstLevels:
    """Format a node's directories; return the levels of the new cluster.

    `tell` gets a line for each directory that is formatted, or one if all are formatted already.

    Raises:
        ConfigError: The arguments or the directories cannot be used; nothing was written.
        OSError: The disk failed.
    """
    config = request.config
    features = parse_levels(request.features)
    if request.release is not None:
        known_release(request.release)
    voters = first_voters(config, request.quorum)
    is_dynamic = not config.list(VOTERS)
    levels = first_levels(request.release, features, is_dynamic=is_dynamic)
    formatting = Formatting(
        request.cluster_id,
        config.node_id,
        directories_of(config),
        metadata_directory_of(config),
        levels.release,
        first_records(levels, request.users),
        is_controller(config),
        levels.kraft_level,
        voters,
    )
    format_directories(formatting, files, tell, ignores_formatted=request.ignores_formatted)
    return levels


def first_records(levels: FirstLevels, users: Sequence[str]) -> list[MetadataRecord]:
    """Return the records of a new cluster's levels and users.

    Raises:
        ConfigError: A user is invalid, or the metadata.version has no users.
    """
    if users and levels.metadata_level < known_release(_SCRAM_RELEASE):
        raise ConfigError(f"SCRAM is only supported in metadata.version {_SCRAM_RELEASE} or later.")
    records = [feature_level(name, level) for name, level in levels.recorded.items()]
    return records + first_users(users)


def metadata_directory_of(config: Config) -> str:
    """Return the absolute path of the metadata log's directory."""
    directory = config.optional_str("metadata.log.dir") or config.log_directories[0]
    return str(Path(directory).absolute())


def directories_of(config: Config) -> list[str]:
    """Return the absolute paths of all directories, sorted."""
    paths = {str(Path(directory).absolute()) for directory in config.log_directories}
    return sorted(paths | {metadata_directory_of(config)})
