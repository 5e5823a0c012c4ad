"""Topic ids in partition directories, and two topics of one name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from wirebroker.codecs.primitives import uuid_text
from wirebroker.segments.errors import RecreatedTopicError
from wirebroker.segments.log_directories import LogDirectories, topic_ids
from wirebroker.storage.partition_metadata import PARTITION_METADATA, content_for

if TYPE_CHECKING:
    from pathlib import Path

OLD, NEW = bytes(range(16)), bytes(range(1, 17))


def put(directory: Path, partition: int, content: bytes | None) -> None:
    folder = directory / f"topic-{partition}"
    folder.mkdir(exist_ok=True)
    if content is not None:
        (folder / PARTITION_METADATA).write_bytes(content)


def test_folders_without_a_topic_id_belong_to_any_topic(tmp_path: Path) -> None:
    put(tmp_path, 0, None)
    put(tmp_path, 1, b"version: 0\ntopic_id: none of it")
    put(tmp_path, 2, content_for(OLD))
    partitions = LogDirectories((str(tmp_path),)).find(lambda *_: True)
    assert [partition.topic_id for partition in partitions.values()] == ["", "", uuid_text(OLD)]
    assert topic_ids(partitions) == {"topic": uuid_text(OLD)}


def test_folders_of_two_topics_are_refused(tmp_path: Path) -> None:
    put(tmp_path, 0, content_for(OLD))
    put(tmp_path, 1, content_for(NEW))
    directories = LogDirectories((str(tmp_path),))
    message = f"topic topic was recreated.*{uuid_text(OLD)}.*{uuid_text(NEW)}.*Remove the folders"
    with pytest.raises(RecreatedTopicError, match=message):
        directories.find(lambda *_: True)


def test_a_read_detects_a_folder_that_now_belongs_to_another_topic(tmp_path: Path) -> None:
    put(tmp_path, 0, content_for(OLD))
    (partition,) = LogDirectories((str(tmp_path),)).find(lambda *_: True).values()
    partition.check_topic_id("topic")
    put(tmp_path, 0, content_for(NEW))
    with pytest.raises(RecreatedTopicError, match=f"{uuid_text(OLD)}.*{uuid_text(NEW)}"):
        partition.check_topic_id("topic")
