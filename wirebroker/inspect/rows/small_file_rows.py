"""The text files of a data directory as rows; invalid contents raise ValueError."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, cast

from wirebroker.codecs.json_text import MAX_INT32, MAX_INT64, json_integer, parse_json
from wirebroker.codecs.primitives import uuid_from_text, uuid_text
from wirebroker.inspect.rows.file_kinds import FileKind
from wirebroker.inspect.rows.rows import damage
from wirebroker.storage.checkpoints import CheckpointError, read_rows
from wirebroker.storage.meta_properties import parse_meta_properties

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wirebroker.inspect.rows.rows import Row
    from wirebroker.storage.files import Files

_PARTITION_METADATA = re.compile(r"version: *(\d+)\s+topic_id: *(\S+)\s*")


def small_file_rows(files: Files, path: str, kind: FileKind) -> Iterator[Row]:
    """Yield the rows of a text file."""
    try:
        match kind:
            case FileKind.OFFSET_CHECKPOINT:
                yield from offset_checkpoint_rows(files, path)
            case FileKind.LEADER_EPOCHS:
                yield from leader_epoch_rows(files, path)
            case FileKind.PARTITION_METADATA:
                yield partition_metadata_row(files.read_file(path))
            case FileKind.META_PROPERTIES:
                yield meta_properties_row(files.read_file(path))
            case FileKind.CLEAN_SHUTDOWN:
                yield clean_shutdown_row(files.read_file(path))
            case _:
                assert kind is FileKind.QUORUM_STATE, kind
                yield quorum_state_row(files.read_file(path))
    except CheckpointError as error:
        yield damage(str(error).removeprefix(path).lstrip(), 0)
    except ValueError as error:
        yield damage(f"it is damaged: {error}", 0)


def offset_checkpoint_rows(files: Files, path: str) -> Iterator[Row]:
    """Yield the rows of an offset checkpoint.

    Raises:
        CheckpointError: It is damaged.
    """
    for topic, partition, offset in read_rows(files, path, columns=3):
        yield {
            "type": "checkpoint",
            "topic": topic,
            "partition": int(partition),
            "offset": int(offset),
        }


def leader_epoch_rows(files: Files, path: str) -> Iterator[Row]:
    """Yield the rows of a leader-epoch-checkpoint; raises like `offset_checkpoint_rows`."""
    for epoch, start_offset in read_rows(files, path, columns=2):
        yield {"type": "leader_epoch", "epoch": int(epoch), "start_offset": int(start_offset)}


def partition_metadata_row(content: bytes) -> Row:
    """Return the row of partition.metadata."""
    match = _PARTITION_METADATA.fullmatch(content.decode())
    if match is None or match[1] != "0":
        raise ValueError("it is not `version: 0` and a topic_id")
    if uuid_text(uuid_from_text(match[2])) != match[2]:
        raise ValueError(f"{match[2]} is not a uuid")  # bits beyond the 16 bytes
    return {"type": "partition_metadata", "version": int(match[1]), "topic_id": match[2]}


def meta_properties_row(content: bytes) -> Row:
    """Return the row of meta.properties."""
    properties = parse_meta_properties(content.decode())
    return {
        "type": "meta_properties",
        "cluster_id": properties.cluster_id,
        "node_id": properties.node_id,
        "directory_id": uuid_text(properties.directory_id),
    }


def clean_shutdown_row(content: bytes) -> Row:
    """Return the row of .kafka_cleanshutdown."""
    row: Row = {"type": "clean_shutdown", "version": 0, "broker_epoch": -1}
    if content:  # empty before Kafka 3.7
        fields = _json_object(content)
        if fields["version"] != 0:
            raise ValueError(f"unknown version {fields['version']}")
        row["broker_epoch"] = json_integer(fields["brokerEpoch"], -1, MAX_INT64)
    return row


def quorum_state_row(content: bytes) -> Row:
    """Return the row of quorum-state."""
    fields = _json_object(content)
    json_integer(fields["leaderEpoch"], 0, MAX_INT32)
    json_integer(fields["data_version"], 0, 1)
    return {"type": "quorum_state", **fields}


def _json_object(content: bytes) -> dict[str, Any]:
    parsed = parse_json(content)
    if not isinstance(parsed, dict):
        raise ValueError("it is not a JSON object")  # noqa: TRY004 - damage is a ValueError here
    return _Fields(cast("dict[str, Any]", parsed))


class _Fields(dict[str, Any]):
    def __missing__(self, name: str) -> Any:
        raise ValueError(f"it has no {name}")
