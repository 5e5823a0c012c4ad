"""The identity of a log directory: whose it is, in `meta.properties`.

Source: Kafka's MetaPropertiesEnsemble.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.base.text import few_of
from wirebroker.codecs.primitives import random_uuid, uuid_text
from wirebroker.storage.file_names import partition_of
from wirebroker.storage.meta_properties import (
    MetaProperties,
    format_meta_properties,
    parse_meta_properties,
)

if TYPE_CHECKING:
    from wirebroker.storage.files import Files

META_PROPERTIES: Final = "meta.properties"

_MOST_NAMES_SHOWN: Final = 3


class LogDirectoryError(Exception):
    """The log directory cannot be used."""


class DamagedDirectoryError(LogDirectoryError):
    """The identity is unreadable; a broker with other directories starts without it."""


def check_is_log_directory(path: str, files: Files) -> None:
    """Refuse a directory with subdirectories that only look like partitions.

    As in Apache Kafka, `meta.properties` is synced before the first partition is created.
    """
    if files.exists(f"{path}/{META_PROPERTIES}"):
        return
    names = [
        name for name in sorted(files.list_subdirectories(path)) if partition_of(name) is not None
    ]
    if names:
        raise LogDirectoryError(
            f"{path} has partition directories ({few_of(names, _MOST_NAMES_SHOWN)}) but no "
            f"{META_PROPERTIES}, and was not changed; choose another data directory, or restore "
            f"its {META_PROPERTIES}"
        )


def identify(path: str, files: Files, *, node_id: int, cluster_id: str | None) -> MetaProperties:
    """Return the identity of the directory at `path`, and write what it lacks.

    Without `cluster_id` any cluster's is accepted, or one is generated.

    Raises:
        LogDirectoryError: It belongs to another node or cluster, or the file is damaged.
        OSError: The disk failed.
    """
    file = f"{path}/{META_PROPERTIES}"
    try:
        properties = parse_meta_properties(files.read_file(file).decode())
    except FileNotFoundError as error:
        if files.exists(file):
            raise DamagedDirectoryError(
                f"{file} is not a regular file; restore it, or choose another data directory"
            ) from error
        properties = MetaProperties(cluster_id or uuid_text(random_uuid()), node_id, random_uuid())
        files.write_file(file, format_meta_properties(properties).encode())
        return properties
    except ValueError as error:
        raise DamagedDirectoryError(
            f"{file} is damaged ({error}); restore it, or choose another data directory"
        ) from None
    if properties.node_id != node_id:
        raise LogDirectoryError(
            f"the data directory {path} belongs to node {properties.node_id}, this is node "
            f"{node_id}; set node.id={properties.node_id}, or choose another directory"
        )
    if cluster_id is not None and properties.cluster_id != cluster_id:
        raise LogDirectoryError(
            f"the data directory {path} belongs to cluster {properties.cluster_id}, not to "
            f"{cluster_id}; choose another directory"
        )
    if properties.directory_id == bytes(16):
        properties = properties._replace(directory_id=random_uuid())
        files.write_file(file, format_meta_properties(properties).encode())
    return properties
