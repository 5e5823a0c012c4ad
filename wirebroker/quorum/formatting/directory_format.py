"""Formatting of data directories as Kafka's storage tool does it.

    meta.properties                                         in each directory
    __cluster_metadata-0/00000000000000000000-0000000000.checkpoint
                                                            in the metadata directory

Only a controller has the checkpoint: the new cluster's feature levels and users, and of a dynamic
quorum the kraft.version and the first voters, unless the node joins later.

Source: Kafka 4.4's Formatter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.base.clock import SystemClock
from wirebroker.codecs.primitives import random_uuid, uuid_text
from wirebroker.codecs.records.control import KRaftVersion, KRaftVoters, Voter
from wirebroker.config.rows.row import ConfigError
from wirebroker.quorum.log.metadata_snapshot import FORMATTED, encode_first_snapshot
from wirebroker.quorum.log.metadata_store import TOPIC
from wirebroker.storage.directory_identity import META_PROPERTIES
from wirebroker.storage.file_names import partition_of
from wirebroker.storage.meta_properties import (
    MetaProperties,
    format_meta_properties,
    parse_meta_properties,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from wirebroker.codecs.metadata_records import MetadataRecord
    from wirebroker.codecs.records.control import ControlRecord
    from wirebroker.storage.files import Files

_METADATA_LOG: Final = f"{TOPIC}-0"


class Formatting(NamedTuple):
    """Format of a node's directories.

    Attributes:
        release: The name of the metadata.version.
        records: Levels and users of the new cluster.
        is_controller: Whether the node has the controller role.
        kraft_level: The level of kraft.version.
        voters: The first voters of a dynamic quorum. If this node is one of them, its entry
            determines the metadata directory's id.
    """

    cluster_id: str
    node_id: int
    directories: Sequence[str]
    metadata_directory: str
    release: str
    records: Sequence[MetadataRecord]
    is_controller: bool
    kraft_level: int = 0
    voters: tuple[Voter, ...] = ()

    @property
    def own_voter(self) -> Voter | None:
        """This node's entry among the voters."""
        return next((voter for voter in self.voters if voter.voter_id == self.node_id), None)

    @property
    def controls(self) -> list[ControlRecord]:
        """The control records for the checkpoint's header."""
        if not self.kraft_level:
            return []
        voters: list[ControlRecord] = [KRaftVoters(self.voters)] if self.voters else []
        return [KRaftVersion(self.kraft_level), *voters]


def properties_of(directory: str, files: Files) -> MetaProperties | None:
    """Return a directory's identity; None if it is not formatted.

    Raises:
        ConfigError: meta.properties is damaged.
    """
    file = f"{directory}/{META_PROPERTIES}"
    if not files.exists(file):
        return None
    try:
        return parse_meta_properties(files.read_file(file).decode())
    except ValueError as error:
        raise ConfigError(f"{file} is damaged ({error})") from None


class FormatFacts(NamedTuple):
    """Facts about directories for `info`."""

    found: list[str]
    metadata: str | None
    problems: list[str]


def facts_of(directories: Sequence[str], files: Files) -> FormatFacts:
    """Return which directories exist, their identity and problems.

    Raises:
        ConfigError: A meta.properties is damaged.
    """
    facts = FormatFacts([], None, [])
    for directory in directories:
        if not files.exists(directory):
            facts.problems.append(f"{directory} does not exist")
            continue
        facts.found.append(directory)
        properties = properties_of(directory, files)
        if properties is None:
            facts.problems.append(f"{directory} is not formatted.")
            continue
        metadata_text = _shown(properties)
        if facts.metadata is None:
            facts = facts._replace(metadata=metadata_text)
        elif _identity(metadata_text) != _identity(facts.metadata):
            facts.problems.append(
                f"Metadata for {directory}/{META_PROPERTIES} was {metadata_text}, but other"
                f" directories featured {facts.metadata}"
            )
    return facts


def _shown(properties: MetaProperties) -> str:
    return (
        f"{{cluster.id={properties.cluster_id}, directory.id={uuid_text(properties.directory_id)},"
        f" node.id={properties.node_id}, version=1}}"
    )


def _identity(metadata_text: str) -> list[str]:
    return [field for field in metadata_text.split(", ") if not field.startswith("directory.id=")]


def format_directories(
    formatting: Formatting, files: Files, tell: Callable[[str], None], *, ignores_formatted: bool
) -> None:
    """Format unformatted directories; check the others, or skip them.

    Raises:
        ConfigError: A directory is formatted, belongs to another cluster or node, or has data.
    """
    new = [
        directory
        for directory in formatting.directories
        if not _is_formatted(formatting, directory, files)
    ]
    formatted = [directory for directory in formatting.directories if directory not in new]
    if formatted and not ignores_formatted:
        raise ConfigError(
            f"Log directory {formatted[0]} is already formatted. Use --ignore-formatted to ignore"
            " this directory and format the others."
        )
    if not new:
        tell("All of the log directories are already formatted.")
        return
    for directory in new:
        _check_empty(directory, files)
    for directory in sorted(new, key=lambda directory: directory == formatting.metadata_directory):
        tell(
            f"Formatting {_kind(formatting, directory)} {directory} with metadata.version"
            f" {formatting.release}."
        )
        _format(formatting, directory, files)


def _is_formatted(formatting: Formatting, directory: str, files: Files) -> bool:
    properties = properties_of(directory, files)
    if properties is None:
        return False
    for name, expected, read in (
        ("cluster.id", formatting.cluster_id, properties.cluster_id),
        ("node.id", formatting.node_id, properties.node_id),
    ):
        if read != expected:
            raise ConfigError(
                f"Invalid {name} in: {directory}/{META_PROPERTIES}. Expected {expected}, but read"
                f" {read}"
            )
    return True


def _check_empty(directory: str, files: Files) -> None:
    """Refuse a directory with partitions; an interrupted format may have left a checkpoint."""
    if not files.exists(directory):
        return
    partition_folders = {
        name for name in files.list_subdirectories(directory) if partition_of(name)
    }
    log = f"{directory}/{_METADATA_LOG}"
    if _METADATA_LOG in partition_folders and set(files.list_files(log)) <= {FORMATTED.file_name}:
        partition_folders.remove(_METADATA_LOG)
    if partition_folders:
        raise ConfigError(
            f"{directory} has no {META_PROPERTIES} but partitions ({min(partition_folders)}), and"
            " was left as it is; choose another directory, or restore the file"
        )


def _kind(formatting: Formatting, directory: str) -> str:
    if directory != formatting.metadata_directory:
        return "data directory"
    if not formatting.voters:
        return "metadata directory"
    is_voter = formatting.own_voter is not None
    return "dynamic metadata voter directory" if is_voter else "dynamic metadata directory"


def _format(formatting: Formatting, directory: str, files: Files) -> None:
    """Write the files; the last one, the identity, marks the directory as formatted."""
    directory_id = random_uuid()
    files.make_directory(directory)
    if directory == formatting.metadata_directory:
        if formatting.own_voter is not None:
            directory_id = formatting.own_voter.directory_id
        if formatting.is_controller:
            write_checkpoint(directory, files, formatting.records, formatting.controls)
    properties = MetaProperties(formatting.cluster_id, formatting.node_id, directory_id)
    files.write_file(f"{directory}/{META_PROPERTIES}", format_meta_properties(properties).encode())


def write_checkpoint(
    directory: str,
    files: Files,
    records: Sequence[MetadataRecord],
    controls: Sequence[ControlRecord],
) -> None:
    """Write a new cluster's first snapshot into a log directory.

    Raises:
        OSError: The disk failed.
    """
    log = f"{directory}/{_METADATA_LOG}"
    files.make_directory(log)
    content = encode_first_snapshot(SystemClock().now_ms(), records, voters=controls)
    files.write_file(f"{log}/{FORMATTED.file_name}", content)
    files.sync_directory(directory)
