"""Formatting of data directories as Kafka's storage tool does it.

    meta.properties                                         in each directory
    __cluster_metadata-0/00000000000000000000-0000000000.checkpoint
                                                            in the metadata directory

The checkpoint contains the new cluster's feature levels and users, and the first voters of a
dynamic quorum. Source: Kafka 4.4's Formatter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.base.clock import SystemClock
from wirebroker.codecs.primitives import random_uuid, uuid_text
from wirebroker.codecs.records.control import KRaftVersion, KRaftVoters, Voter
from wirebroker.config.rows.row import ConfigError
from wirebroker.quorum.log.metadata_snapshot import FORMATTED, encode_first_snapshot
from wirebroker.quorum.log.metadata_store import TOPIC
from wirebroker.storage.file_names import partition_of
from wirebroker.storage.log_directory import META_PROPERTIES
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
        metadata_directory: The directory of the metadata log.
        release: The name of the metadata.version.
        records: Levels and users of the new cluster.
        voter: This node as the only first voter of a dynamic quorum, or None. It determines the
            directory's id.
    """

    cluster_id: str
    node_id: int
    directories: Sequence[str]
    metadata_directory: str
    release: str
    records: Sequence[MetadataRecord]
    voter: Voter | None


def properties_of(directory: str, files: Files) -> MetaProperties | None:
    """Return a directory's identity; None if it is not formatted.

    Raises:
        ConfigError: Its meta.properties is damaged.
    """
    file = f"{directory}/{META_PROPERTIES}"
    if not files.exists(file):
        return None
    try:
        return parse_meta_properties(files.read_whole(file).decode())
    except ValueError as error:
        raise ConfigError(f"{file} is damaged ({error})") from None


class FormatFacts(NamedTuple):
    """Facts about directories for `info`."""

    found: list[str]
    metadata: str | None
    problems: list[str]


def facts_of(directories: Sequence[str], files: Files) -> FormatFacts:
    """Return which directories exist, their identity and their problems.

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
        shown = _shown(properties)
        if facts.metadata is None:
            facts = facts._replace(metadata=shown)
        elif _identity(shown) != _identity(facts.metadata):
            facts.problems.append(
                f"Metadata for {directory}/{META_PROPERTIES} was {shown}, but other directories"
                f" featured {facts.metadata}"
            )
    return facts


def _shown(properties: MetaProperties) -> str:
    return (
        f"{{cluster.id={properties.cluster_id}, directory.id={uuid_text(properties.directory_id)},"
        f" node.id={properties.node_id}, version=1}}"
    )


def _identity(shown: str) -> list[str]:
    return [each for each in shown.split(", ") if not each.startswith("directory.id=")]


def format_directories(
    wanted: Formatting, files: Files, tell: Callable[[str], None], *, ignores_formatted: bool
) -> None:
    """Format unformatted directories; check the others, or skip them with `ignores_formatted`.

    Raises:
        ConfigError: A directory is formatted, belongs to another cluster or node, or has data.
    """
    new = [each for each in wanted.directories if not _is_formatted(wanted, each, files)]
    formatted = [each for each in wanted.directories if each not in new]
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
    for directory in sorted(new, key=lambda each: each == wanted.metadata_directory):
        tell(
            f"Formatting {_kind(wanted, directory)} {directory} with metadata.version"
            f" {wanted.release}."
        )
        _format(wanted, directory, files)


def _is_formatted(wanted: Formatting, directory: str, files: Files) -> bool:
    found = properties_of(directory, files)
    if found is None:
        return False
    for name, expected, read in (
        ("cluster.id", wanted.cluster_id, found.cluster_id),
        ("node.id", wanted.node_id, found.node_id),
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
    taken = {each for each in files.list_subdirectories(directory) if partition_of(each)}
    log = f"{directory}/{_METADATA_LOG}"
    if _METADATA_LOG in taken and set(files.list_files(log)) <= {FORMATTED.file_name}:
        taken.remove(_METADATA_LOG)
    if taken:
        raise ConfigError(
            f"{directory} has no {META_PROPERTIES} but partitions ({min(taken)}), and was left as"
            " it is; choose another directory, or restore the file"
        )


def _kind(wanted: Formatting, directory: str) -> str:
    if directory != wanted.metadata_directory:
        return "data directory"
    return "metadata directory" if wanted.voter is None else "dynamic metadata voter directory"


def _format(wanted: Formatting, directory: str, files: Files) -> None:
    """Write a directory's files; the last one is its identity, which marks it as formatted."""
    is_of_metadata = directory == wanted.metadata_directory
    directory_id = random_uuid()
    files.make_directory(directory)
    if is_of_metadata:
        voters: list[ControlRecord] = []
        if wanted.voter is not None:
            directory_id = wanted.voter.directory_id
            voters = [KRaftVersion(1), KRaftVoters((wanted.voter,))]
        log = f"{directory}/{_METADATA_LOG}"
        files.make_directory(log)
        content = encode_first_snapshot(SystemClock().now_ms(), wanted.records, voters=voters)
        files.write_whole(f"{log}/{FORMATTED.file_name}", content)
        files.sync_directory(directory)
    properties = MetaProperties(wanted.cluster_id, wanted.node_id, directory_id)
    files.write_whole(f"{directory}/{META_PROPERTIES}", format_meta_properties(properties).encode())
