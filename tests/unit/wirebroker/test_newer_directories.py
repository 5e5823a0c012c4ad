"""A directory that something newer wrote: one clear line, status 2, and nothing is touched."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.batches import batch
from tests.support.raw_client import RawClient
from tests.support.requests import append, create_topic
from tests.support.servers import running
from wirebroker.cluster.metadata_batches import BatchBuilder
from wirebroker.codecs.control_records import SnapshotFooter, SnapshotHeader
from wirebroker.codecs.record_batch import BatchHeader, build_batch, iterate_batches
from wirebroker.coordinator.feature_control import feature_level

if TYPE_CHECKING:
    from pathlib import Path

LOG = "__cluster_metadata-0/00000000000000000000.log"
# Frame version, type, version, and what follows it.
UNKNOWN_KIND = b"\x01\x63\x00\x00"
NEWER_VERSION = b"\x01\x02\x09\x00"
NEWER_FRAME = b"\x02\x02\x00\x00"
METADATA_VERSION_31 = bytes.fromhex("010c00") + b"\x11metadata.version\x00\x1f\x00"


def tree(directory: Path) -> dict[str, bytes]:
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file()
    }


def last_header(content: bytes) -> BatchHeader:
    *_, (_, header) = iterate_batches(memoryview(content))
    return header


async def write_something(directory: Path) -> None:
    async with running(directory) as server:
        client = await RawClient.connect(server.address)
        await create_topic(client, "t", 2)
        await append(client, "t", batch(b"value"))
        await client.close()


def serve(directory: Path) -> tuple[int, str]:
    command = [sys.executable, "-m", "wirebroker", "serve", "--port", "0"]
    command += ["--data-dir", str(directory)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == ""
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (UNKNOWN_KIND, "type 99"),
        (NEWER_VERSION, "version 9"),
        (NEWER_FRAME, "frame"),
        (METADATA_VERSION_31, "metadata.version at level 31"),
    ],
)
def test_a_log_with_newer_records_is_refused_untouched(tmp_path, value, words):
    asyncio.run(write_something(tmp_path))
    path = tmp_path / LOG
    header = last_header(path.read_bytes())
    newer = build_batch(
        [(None, value, ())],
        base_offset=header.last_offset + 1,
        leader_epoch=header.leader_epoch,
        timestamp_ms=header.max_timestamp,
    )
    path.write_bytes(path.read_bytes() + newer)
    before = tree(tmp_path)
    assert ".kafka_cleanshutdown" in before
    status, error = serve(tmp_path)
    assert status == 2
    assert words in error
    assert "start the newer broker that wrote it" in error
    assert len(error.splitlines()) == 1
    assert tree(tmp_path) == before


def test_a_folder_formatted_for_a_newer_broker_is_refused_before_anything_is_written(tmp_path):
    (tmp_path / "meta.properties").write_text(
        "version=1\ncluster.id=MkU3OEVBNTcwNTJENDM2Qk\nnode.id=1\n"
        "directory.id=MkU3OEVBNTcwNTJENDM2Qk\n"
    )
    builder = BatchBuilder(base_offset=0, leader_epoch=0, timestamp_ms=1)
    builder.add_control([SnapshotHeader(1)])
    builder.add(feature_level("metadata.version", 31))
    builder.add_control([SnapshotFooter()])
    (tmp_path / "bootstrap.checkpoint").write_bytes(b"".join(builder.batches.buffers))
    status, error = serve(tmp_path)
    assert status == 2
    assert "metadata.version at level 31" in error
    # An empty log is no change.
    assert not any((tmp_path / LOG).parent.glob("*.checkpoint"))
    assert not (tmp_path / LOG).exists() or (tmp_path / LOG).read_bytes() == b""
