"""Directories of newer software or with files that protect them in Apache Kafka are refused.

The error is one line and status 2, and nothing is changed.
"""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.brokers.servers import broker_of, controller_of, running
from tests.support.protocol.raw_client import RawClient
from tests.support.protocol.requests import append, create_topic
from tests.support.records.batches import batch
from tests.unit.wirebroker.quorum.log.metadata_kit import write
from wirebroker.codecs.acls import AclEntry, entry_of
from wirebroker.codecs.metadata_records import MetadataRecord, RecordType, metadata_record
from wirebroker.codecs.records.batch import BatchHeader, build_batch, iterate_batches
from wirebroker.codecs.records.control import SnapshotFooter, SnapshotHeader
from wirebroker.config.rows.authorizer import STANDARD
from wirebroker.coordinator.controller.features.feature_control import feature_level
from wirebroker.coordinator.controller.image.cluster_image import ResourceType, config_record
from wirebroker.quorum.log.metadata_batches import BatchBuilder

if TYPE_CHECKING:
    from pathlib import Path

LOG = "__cluster_metadata-0/00000000000000000000.log"
# Frame version, type, version, and the rest.
UNKNOWN_KIND = b"\x01\x63\x00\x00"
NEWER_VERSION = b"\x01\x02\x09\x00"
NEWER_FRAME = b"\x02\x02\x00\x00"
METADATA_VERSION_34 = bytes.fromhex("010c00") + b"\x11metadata.version\x00\x22\x00"


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


def serve(directory: Path, *arguments: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "wirebroker", "serve", "--port", "0"]
    command += ["--data-dir", str(directory), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == ""
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (UNKNOWN_KIND, "type 99"),
        (NEWER_VERSION, "version 9"),
        (NEWER_FRAME, "frame"),
        (METADATA_VERSION_34, "metadata.version at level 34"),
    ],
)
async def test_a_log_with_newer_records_is_refused_untouched(tmp_path, value, words):
    await write_something(tmp_path)
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


def format_folder(tmp_path: Path, *records: MetadataRecord) -> None:
    (tmp_path / "meta.properties").write_text(
        "version=1\ncluster.id=MkU3OEVBNTcwNTJENDM2Qk\nnode.id=1\n"
        "directory.id=MkU3OEVBNTcwNTJENDM2Qk\n"
    )
    builder = BatchBuilder(base_offset=0, leader_epoch=0, timestamp_ms=1)
    builder.add_control([SnapshotHeader(1)])
    for record in records:
        builder.add(record)
    builder.add_control([SnapshotFooter()])
    (tmp_path / "bootstrap.checkpoint").write_bytes(b"".join(builder.batches.buffers))


def test_directory_formatted_for_a_newer_broker_is_refused_unchanged(tmp_path):
    format_folder(tmp_path, feature_level("metadata.version", 34))
    status, error = serve(tmp_path)
    assert status == 2
    assert "metadata.version at level 34" in error
    # An empty log counts as unchanged.
    assert not any((tmp_path / LOG).parent.glob("*.checkpoint"))
    assert not (tmp_path / LOG).exists() or (tmp_path / LOG).read_bytes() == b""


AN_ACL = metadata_record(RecordType.ACCESS_CONTROL_ENTRY, id=bytes([1]) * 16, principal="User:a")


async def write_records(directory: Path, *records: MetadataRecord) -> None:
    async with running(directory) as server:
        await controller_of(server).submit(write(*records))


async def test_directory_with_acls_is_refused_without_an_authorizer(tmp_path):
    await write_records(tmp_path, AN_ACL)
    before = tree(tmp_path)
    status, error = serve(tmp_path)
    assert status == 2
    assert "/__cluster_metadata-0 contains ACLs, which would not be enforced" in error
    assert "set authorizer.class.name" in error
    assert "--unprotected" in error
    assert len(error.splitlines()) == 1
    assert tree(tmp_path) == before


async def test_stored_dynamic_configs_apply_like_those_of_a_file(tmp_path):
    name = "listener.name.outside.principal.builder.class"
    config = config_record(ResourceType.BROKER, "1", name, "com.example.Builder")
    harmless = config_record(ResourceType.BROKER, "", "ssl.client.auth", "none")
    await write_records(tmp_path, config, harmless)
    status, error = serve(tmp_path)
    assert status == 2
    assert f"contains {name}, which would not be enforced" in error


async def test_directory_formatted_with_users_has_them_at_start(tmp_path):
    format_folder(
        tmp_path, metadata_record(RecordType.USER_SCRAM_CREDENTIAL, name="a", mechanism=1)
    )
    async with running(tmp_path) as server:
        assert broker_of(server).metadata.image.scram_users().keys() == {"a"}


async def test_unprotected_setting_opens_the_directory_and_keeps_acls(tmp_path):
    await write_records(tmp_path, AN_ACL)

    async def kept() -> dict[bytes, AclEntry]:
        settings = {"wirebroker.unprotected": "true"}
        async with running(tmp_path, settings=settings) as server:
            return dict(broker_of(server).metadata.image.acls)

    assert (await kept()) == {bytes([1]) * 16: entry_of(AN_ACL.body)}


async def test_directory_with_acls_is_opened_with_an_authorizer(tmp_path):
    await write_records(tmp_path, AN_ACL)
    async with running(tmp_path, settings={"authorizer.class.name": STANDARD}) as server:
        assert broker_of(server).authorization is not None


async def test_removed_acls_do_not_prevent_a_start(tmp_path):
    removal = metadata_record(RecordType.REMOVE_ACCESS_CONTROL_ENTRY, id=bytes([1]) * 16)
    await write_records(tmp_path, AN_ACL, removal)
    await write_something(tmp_path)
