"""Opening, locking and listing a log directory."""

import os

import pytest

from wirebroker.codecs.primitives import uuid_from_text, uuid_text
from wirebroker.storage.directory_identity import LogDirectoryError
from wirebroker.storage.files import Files
from wirebroker.storage.log_directory import LogDirectory, PartitionDirectory

CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qk"
TOPIC_ID = uuid_from_text("L2q436H7QN2QzJw3tqURJA")


def open_directory(path, *, node_id=1, cluster_id=None, files=None):
    return LogDirectory.open(str(path), files or Files(), node_id=node_id, cluster_id=cluster_id)


def test_a_new_directory_gets_an_identity_that_stays(tmp_path):
    first = open_directory(tmp_path / "data" / "deep", cluster_id=CLUSTER_ID)
    assert (first.cluster_id, first.node_id, len(first.directory_id)) == (CLUSTER_ID, 1, 16)
    assert not first.was_clean
    first.close()
    second = open_directory(tmp_path / "data" / "deep")
    assert second.directory_id == first.directory_id != bytes(16)
    assert second.cluster_id == CLUSTER_ID
    second.close()


def test_without_a_cluster_id_one_is_drawn(tmp_path):
    directory = open_directory(tmp_path)
    assert len(uuid_from_text(directory.cluster_id)) == 16
    directory.close()


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"node_id": 2}, "belongs to node 1, this is node 2"),
        ({"cluster_id": uuid_text(bytes(range(16)))}, "belongs to cluster MkU3"),
    ],
)
def test_foreign_directory_is_refused_and_unlocked(tmp_path, asked, sentence):
    open_directory(tmp_path, cluster_id=CLUSTER_ID).close()
    with pytest.raises(LogDirectoryError, match=sentence):
        open_directory(tmp_path, **asked)
    open_directory(tmp_path).close()


def test_a_directory_in_use_is_refused(tmp_path):
    directory = open_directory(tmp_path)
    with pytest.raises(LogDirectoryError, match="in use by another broker"):
        open_directory(tmp_path)
    directory.close()


@pytest.mark.parametrize(
    "name",
    [
        "build-1",
        "t-0",
        "__cluster_metadata-0",
        "gone-3.0123-delete",
        "a-4.01-stray",
        "a-5.0-future",
    ],
)
def test_folders_like_partitions_without_an_identity_are_left_alone(tmp_path, name):
    (tmp_path / name).mkdir()
    with pytest.raises(LogDirectoryError) as refused:
        open_directory(tmp_path)
    assert f"has partition directories ({name}) but no meta.properties" in str(refused.value)
    assert "choose another data directory" in str(refused.value)
    assert [path.name for path in tmp_path.rglob("*")] == [name]


def test_of_many_such_folders_a_few_are_named(tmp_path):
    for number in range(9):
        (tmp_path / f"run-{number}").mkdir()
    with pytest.raises(LogDirectoryError, match=r"\(run-0, run-1, run-2 and 6 more\)"):
        open_directory(tmp_path)


def test_other_folders_and_files_are_no_reason_to_refuse(tmp_path):
    (tmp_path / "lost+found").mkdir()
    (tmp_path / "notes-1").write_text("")
    directory = open_directory(tmp_path)
    directory.close()
    assert directory.unknown_directories == ["lost+found"]


def test_damaged_properties_are_refused(tmp_path):
    (tmp_path / "meta.properties").write_text("rubbish")
    with pytest.raises(LogDirectoryError, match=r"meta\.properties is damaged \(version is None"):
        open_directory(tmp_path)


def test_a_directory_without_an_id_gets_one(tmp_path):
    (tmp_path / "meta.properties").write_text(f"version=1\nnode.id=1\ncluster.id={CLUSTER_ID}\n")
    directory = open_directory(tmp_path)
    directory.close()
    assert directory.directory_id != bytes(16)
    assert uuid_text(directory.directory_id) in (tmp_path / "meta.properties").read_text()


def test_a_clean_stop_is_known_once(tmp_path):
    directory = open_directory(tmp_path)
    directory.mark_clean_shutdown(broker_epoch=945)
    directory.close()
    marker = tmp_path / ".kafka_cleanshutdown"
    assert marker.read_bytes() == b'{"version":0,"brokerEpoch":945}'
    directory = open_directory(tmp_path)
    assert (directory.was_clean, directory.previous_broker_epoch) == (True, 945)
    assert marker.exists(), "only read so far"
    directory.remove_clean_shutdown_marker()
    directory.close()
    directory = open_directory(tmp_path)
    assert (directory.was_clean, directory.previous_broker_epoch) == (False, -1)
    directory.remove_clean_shutdown_marker()
    directory.close()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"\xff",
        b"[" * 200_000,
        b'{"version":0}',
        b'{"brokerEpoch":1e400}',
        b'{"brokerEpoch":NaN}',
        b'{"brokerEpoch":true}',
        b'{"brokerEpoch":9223372036854775808}',
        b'{"brokerEpoch":-2}',
    ],
    ids=lambda content: repr(content[:40]),
)
def test_clean_shutdown_marker_of_another_version_counts(tmp_path, content):
    (tmp_path / ".kafka_cleanshutdown").write_bytes(content)
    directory = open_directory(tmp_path)
    assert (directory.was_clean, directory.previous_broker_epoch) == (True, -1)
    directory.close()


def test_partitions_are_listed_by_their_names(tmp_path):
    open_directory(tmp_path).close()
    for name in (
        "plain-0",
        "with-dashes.and_dots-12",
        "__cluster_metadata-0",
        "gone-3.0123456789abcdef0123456789abcdef-delete",
        "stray-4.0123456789abcdef0123456789abcdef-stray",
        "moving-5.0123456789abcdef0123456789abcdef-future",
        "lost+found",
    ):
        (tmp_path / name).mkdir()
    (tmp_path / "plain-0" / "partition.metadata").write_bytes(
        b"version: 0\ntopic_id: L2q436H7QN2QzJw3tqURJA"
    )
    (tmp_path / "with-dashes.and_dots-12" / "partition.metadata").write_bytes(b"")
    (tmp_path / "file-0").write_bytes(b"")
    directory = open_directory(tmp_path)
    directory.close()
    assert sorted(directory.partitions) == [
        PartitionDirectory("__cluster_metadata", 0, f"{tmp_path}/__cluster_metadata-0", None),
        PartitionDirectory("plain", 0, f"{tmp_path}/plain-0", TOPIC_ID),
        PartitionDirectory("with-dashes.and_dots", 12, f"{tmp_path}/with-dashes.and_dots-12", None),
    ]
    assert [path.split("/")[-1][:6] for path in directory.to_delete] == ["gone-3"]
    assert [path.split("/")[-1][:5] for path in directory.strays] == ["stray"]
    assert [(future.topic, future.partition) for future in directory.futures] == [("moving", 5)]
    assert directory.unknown_directories == ["lost+found"]


def test_damaged_topic_id_is_logged_and_taken_from_metadata(tmp_path):
    open_directory(tmp_path).close()
    (tmp_path / "t-0").mkdir()
    (tmp_path / "t-0" / "partition.metadata").write_bytes(b"version: 0\ntopic_id: short")
    directory = open_directory(tmp_path)
    directory.close()
    assert [partition.topic_id for partition in directory.partitions] == [None]
    assert "t-0/partition.metadata is damaged" in directory.problems[0]


def test_a_created_partition_is_found_again(tmp_path):
    directory = open_directory(tmp_path)
    path = directory.create_partition_directory("t", 3, TOPIC_ID)
    assert path == directory.partition_path("t", 3) == f"{tmp_path}/t-3"
    metadata = tmp_path / "t-3" / "partition.metadata"
    assert metadata.read_bytes() == b"version: 0\ntopic_id: L2q436H7QN2QzJw3tqURJA"
    directory.close()
    directory = open_directory(tmp_path)
    assert directory.partitions == [PartitionDirectory("t", 3, path, TOPIC_ID)]
    directory.close()


@pytest.mark.parametrize("topic", ["t", "a.b-c_d", "x" * 249])
def test_a_deleted_partition_is_renamed_and_listed_for_removal(tmp_path, topic):
    directory = open_directory(tmp_path)
    directory.create_partition_directory(topic, 0, TOPIC_ID)
    directory.create_partition_directory(topic, 1, TOPIC_ID)
    deleted = directory.delete_partition_directory(topic, 0)
    stray = directory.stray_partition_directory(topic, 1)
    directory.close()
    assert len(os.path.basename(deleted)) <= 255  # noqa: PTH119 - a name, no file
    directory = open_directory(tmp_path)
    assert (directory.to_delete, directory.strays, directory.partitions) == ([deleted], [stray], [])
    directory.close()


def test_damaged_checkpoint_is_logged_and_others_are_read(tmp_path):
    directory = open_directory(tmp_path)
    directory.write_recovery_points({("t", 0): 1})
    directory.write_log_start_offsets({("t", 0): 2})
    directory.write_high_watermarks({("t", 0): 3})
    assert directory.read_recovery_points() == {("t", 0): 1}
    assert directory.read_log_start_offsets() == {("t", 0): 2}
    assert directory.read_high_watermarks() == {("t", 0): 3}
    assert directory.problems == []
    (tmp_path / "recovery-point-offset-checkpoint").write_text("rubbish")
    assert directory.read_recovery_points() == {}
    assert "recovery-point-offset-checkpoint" in directory.problems[0]
    assert 0 < directory.free_bytes() <= directory.total_bytes()
    directory.close()


def test_many_partitions_are_all_listed(tmp_path):
    directory = open_directory(tmp_path)
    for number in range(1_000):
        directory.create_partition_directory("t", number, TOPIC_ID)
    directory.close()
    directory = open_directory(tmp_path)
    directory.close()
    assert sorted(partition.partition for partition in directory.partitions) == list(range(1_000))


def test_clean_shutdown_marker_is_removed_durably_before_writes(tmp_path):
    class Watched(Files):
        __slots__ = ("synced",)
        synced: list[str]

        def sync_directory(self, path):
            self.synced.append(path)
            super().sync_directory(path)

    first = open_directory(tmp_path)
    first.mark_clean_shutdown(broker_epoch=1)
    first.close()
    files = Watched()
    files.synced = []
    second = open_directory(tmp_path, files=files)
    assert second.was_clean
    second.remove_clean_shutdown_marker()
    assert files.synced == [str(tmp_path)]
    second.close()
