"""Directories formatted by Apache Kafka's storage tool; a separate metadata log directory."""

import json
from pathlib import Path

import pytest

from tests.support.brokers.servers import config_of, running
from tests.unit.wirebroker.quorum.log.metadata_kit import DIRECTORY_ID, Node
from wirebroker.broker.server import Server
from wirebroker.codecs.metadata_records import encode_metadata_record
from wirebroker.codecs.records.batch import iterate_batches
from wirebroker.codecs.records.control import (
    KRaftVersion,
    KRaftVoters,
    LeaderChange,
    SnapshotFooter,
    SnapshotHeader,
    Voter,
    VoterEndpoint,
)
from wirebroker.config import StartError
from wirebroker.coordinator.controller.features.feature_control import (
    bootstrap_levels,
    feature_level,
    new_cluster_levels,
)
from wirebroker.quorum.controller.controller_terms import ControllerTerms
from wirebroker.quorum.log.metadata_batches import BatchBuilder
from wirebroker.quorum.log.metadata_snapshot import BOOTSTRAP_FILE, control_records

LEVELS = {"metadata.version": 30, "group.version": 1, "eligible.leader.replicas.version": 1}
ENDPOINT = VoterEndpoint("CONTROLLER", "127.0.0.1", 9093)
FIRST_SNAPSHOT = "00000000000000000000-0000000000.checkpoint"
LOG = "00000000000000000000.log"


def voters(*ids, directory_id=DIRECTORY_ID):
    dynamic = tuple(Voter(voter, directory_id, (ENDPOINT,), 0, 1) for voter in ids)
    return [KRaftVersion(1), KRaftVoters(dynamic)]


def snapshot(*, controls=(), records=()):
    builder = BatchBuilder(base_offset=0, leader_epoch=0, timestamp_ms=1)
    builder.add_control([SnapshotHeader(1), *controls])
    for record in records:
        builder.add(record)
    builder.add_control([SnapshotFooter()])
    return b"".join(builder.batches.buffers)


@pytest.fixture
def node(tmp_path):
    (tmp_path / BOOTSTRAP_FILE).write_bytes(snapshot(records=level_records()))
    return Node(tmp_path)


def level_records():
    return [feature_level(name, level) for name, level in LEVELS.items()]


def format_with_levels(tmp_path):
    """Format a directory as Apache Kafka 4.4 does; return the log and the records."""
    log = tmp_path / "__cluster_metadata-0"
    log.mkdir()
    (log / FIRST_SNAPSHOT).write_bytes(snapshot(controls=voters(1), records=level_records()))
    return log, level_records()


class KilledError(Exception):
    """The simulated end of the process."""


async def killed(_controller, _term):
    raise KilledError


def format_with_voters(tmp_path, *ids):
    log = tmp_path / "__cluster_metadata-0"
    log.mkdir()
    (log / FIRST_SNAPSHOT).write_bytes(snapshot(controls=voters(*ids)))
    return log


async def start_and_close(node):
    log = await node.start()
    await log.close()
    return log.follower.image


def quorum_state(node):
    return json.loads(Path(f"{node.log_directory}/quorum-state").read_text())


async def test_cluster_starts_with_the_formatted_feature_levels(node):
    image = await start_and_close(node)
    assert image.features == LEVELS
    assert image.configs[4, ""] == {"min.insync.replicas": "1"}
    assert quorum_state(node)["data_version"] == 0
    again = await start_and_close(node)
    assert (again.features, again.configs) == (image.features, image.configs)


async def test_feature_levels_of_the_first_snapshot_are_written_like_kafka(tmp_path):
    """Apache Kafka 4.4's storage tool writes no bootstrap.checkpoint."""
    log, records = format_with_levels(tmp_path)
    node = Node(tmp_path)
    image = await start_and_close(node)
    assert image.features == LEVELS
    assert image.configs[4, ""] == {"min.insync.replicas": "1"}
    again = await start_and_close(node)
    assert (again.features, again.configs) == (image.features, image.configs)
    content = (log / LOG).read_bytes()
    assert [content.count(encode_metadata_record(record)) for record in records] == [1] * len(
        records
    )
    assert not (tmp_path / BOOTSTRAP_FILE).exists()


@pytest.mark.parametrize("starts", [1, 2])
@pytest.mark.parametrize("formatted", ["by Kafka 4.4", "by Kafka 4.3", "not at all"])
async def test_a_start_after_a_crash_before_the_first_records_writes_them(
    tmp_path, monkeypatch, starts, formatted
):
    """The first batch of an epoch has the leader and the voters; then the broker is killed."""
    expected, is_beside = LEVELS, True
    if formatted == "by Kafka 4.4":
        format_with_levels(tmp_path)
        is_beside = False
    elif formatted == "by Kafka 4.3":
        format_with_voters(tmp_path, 1)
        (tmp_path / BOOTSTRAP_FILE).write_bytes(snapshot(records=level_records()))
    else:
        expected = bootstrap_levels(new_cluster_levels())
    node = Node(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(ControllerTerms, "_activate", killed)
        for _ in range(starts):
            with pytest.raises(KilledError):
                await node.open()
    image = await start_and_close(node)
    assert image.features == expected
    assert image.configs[4, ""] == {"min.insync.replicas": "1"}
    content = (tmp_path / "__cluster_metadata-0" / LOG).read_bytes()
    written = [encode_metadata_record(feature_level(*level)) for level in expected.items()]
    assert [content.count(record) for record in written] == [1] * len(written)
    assert (tmp_path / BOOTSTRAP_FILE).exists() is is_beside


async def test_voters_of_the_first_snapshot_become_part_of_the_log(node, tmp_path):
    log = format_with_voters(tmp_path, 1)
    await start_and_close(node)
    assert quorum_state(node)["data_version"] == 1
    content = memoryview((log / LOG).read_bytes())
    position, header = next(iterate_batches(content))
    records = list(control_records(content[position : position + header.size], header))
    assert isinstance(records[0], LeaderChange)
    assert records[1:] == voters(1)
    # The next epoch begins with its leader record alone.
    await start_and_close(node)
    content = memoryview((log / LOG).read_bytes())
    counts = [header.record_count for _, header in iterate_batches(content) if header.is_control]
    assert counts == [3, 1]


async def test_a_directory_formatted_for_more_voters_is_refused(node, tmp_path):
    format_with_voters(tmp_path, 1, 2)
    with pytest.raises(StartError, match=r"other voters: \[2\]"):
        await node.start()


async def test_a_directory_whose_only_voter_has_another_directory_id_is_refused(node, tmp_path):
    log = format_with_voters(tmp_path, 1)
    path = log / FIRST_SNAPSHOT
    path.write_bytes(snapshot(controls=voters(1, directory_id=bytes([9]) * 16)))
    with pytest.raises(StartError, match=r"another directory\.id"):
        await node.start()


async def test_separate_metadata_directory_has_the_same_identity(tmp_path):
    settings = {"metadata.log.dir": str(tmp_path / "metadata")}

    async with running(tmp_path / "a", tmp_path / "b", settings=settings):
        other = Server(config_of(tmp_path / "c", settings=settings))
        with pytest.raises(StartError, match="in use"):
            await other.start()
    names = ("a", "b", "metadata")
    texts = [(tmp_path / name / "meta.properties").read_text() for name in names]
    clusters = [line for text in texts for line in text.splitlines() if "cluster.id" in line]
    directories = {line for text in texts for line in text.splitlines() if "directory.id" in line}
    assert len(set(clusters)) == 1
    assert len(directories) == 3
    assert not (tmp_path / "metadata" / ".kafka_cleanshutdown").exists()
    assert (tmp_path / "metadata" / "__cluster_metadata-0").is_dir()


async def test_new_log_directories_join_the_metadata_directorys_cluster(tmp_path):
    settings = {"metadata.log.dir": str(tmp_path / "metadata")}

    async def cluster_id(name):
        async with running(tmp_path / name, settings=settings) as server:
            assert server.broker is not None
            return server.broker.cluster_id

    first = await cluster_id("a")
    assert (await cluster_id("replaced")) == first
