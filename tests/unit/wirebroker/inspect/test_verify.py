"""`wirebroker verify` reports nothing on intact data and every damage."""

from __future__ import annotations

import asyncio
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.support.brokers.servers import broker_of, running
from tests.support.coordinators.kit import new_topic
from tests.unit.wirebroker.inspect.directory_kit import (
    NOW,
    append,
    contents,
    create_topics,
    rows,
    run,
)
from wirebroker.base.clock import SystemClock
from wirebroker.codecs.records.batch import write_crc
from wirebroker.inspect.verify.verify import Verification
from wirebroker.inspect.views.read_only_files import ReadOnlyFiles, lock_holder

if TYPE_CHECKING:
    from wirebroker.inspect.verify.findings import Finding

FIRST = "00000000000000000000"


def findings(capsys, *directories):
    status, reported = rows(capsys, "verify", *directories)
    assert reported[-1]["type"] == "summary"
    errors = [row for row in reported if row.get("severity") == "error"]
    assert status == (1 if errors else 0)
    assert reported[-1]["error_count"] == len(errors)
    return reported[:-1]


def errors(capsys, *directories):
    return [row for row in findings(capsys, *directories) if row["severity"] == "error"]


def test_cleanly_stopped_broker_has_no_findings(made, capsys):
    before = contents(made)
    assert findings(capsys, made) == []
    assert contents(made) == before
    status, text = run(capsys, "verify", made)
    assert (status, text) == (0, "4 partitions: 0 errors, 0 warnings, 0 notes\n")


def test_damage_repaired_by_a_start_suggests_a_start_or_a_repair(data, capsys):
    (data / ".kafka_cleanshutdown").unlink()
    with next((data / "plain-0").glob("*105.log")).open("ab") as file:
        file.write(b"torn")
    status, text = run(capsys, "verify", data)
    assert status == 0
    last = text.splitlines()[-1]
    assert last == f"next: start the broker, or run wirebroker repair {data}"


def test_error_is_followed_by_advice(data, capsys):
    folder = data.with_name("a data")
    data.rename(folder)
    log = next((folder / "plain-0").glob("*0.log"))
    content = bytearray(log.read_bytes())
    content[70] ^= 1
    log.write_bytes(content)
    status, text = run(capsys, "verify", folder)
    assert status == 1
    last = text.splitlines()[-1]
    assert last.startswith("next: restore a good copy, or stop the broker")
    assert f"wirebroker repair --dry-run '{folder}' to see" in last
    assert f"repair --full '{folder}' truncates each log at its damage, and records after" in last


def test_killed_broker_has_no_findings(data, capsys):
    (data / ".kafka_cleanshutdown").unlink()
    for suffix in ("index", "timeindex"):  # as Apache Kafka allocates them
        path = next((data / "plain-0").glob(f"*105.{suffix}"))
        path.write_bytes(path.read_bytes() + bytes(2400))
    assert findings(capsys, data) == []


@pytest.mark.parametrize(("folder", "count"), [("__cluster_metadata-0", 0), ("plain-0", 1)])
def test_only_the_metadata_log_may_be_open_after_a_clean_stop(data, capsys, folder, count):
    """Apache Kafka closes it last, if it has the time."""
    path = max((data / folder).glob("*.timeindex"))
    path.write_bytes(path.read_bytes()[:-12] + bytes(2400))
    messages = [finding["message"] for finding in findings(capsys, data)]
    assert len(messages) == count
    assert all("it ends with the timestamp" in message for message in messages)


def test_torn_end_is_a_warning_after_a_kill_and_an_error_after_a_clean_stop(data, capsys):
    log = next((data / "plain-0").glob("*105.log"))
    size = log.stat().st_size
    with log.open("ab") as file:
        file.write(b"torn")
    (error,) = errors(capsys, data)
    assert (error["path"], error["position"], error["offset"]) == (str(log), size, 156)
    (data / ".kafka_cleanshutdown").unlink()
    (warning,) = findings(capsys, data)
    assert warning["severity"] == "warning"
    assert "the next start fixes it" in warning["message"]


def test_damage_below_the_recovery_point_is_an_error_after_a_kill_too(data, capsys):
    (data / ".kafka_cleanshutdown").unlink()
    log = data / "plain-0" / f"{FIRST}.log"
    content = bytearray(log.read_bytes())
    content[100] ^= 4
    log.write_bytes(content)
    (error,) = errors(capsys, data)
    assert (error["position"], error["offset"]) == (0, 0)
    assert error["message"] == "the CRC-32C does not match"


def change_header(path, position, at, data):
    """Change bytes of the batch at a position, and correct its checksum."""
    content = bytearray(path.read_bytes())
    content[position + at : position + at + len(data)] = data
    write_crc(content, position)
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("at", "value", "words"),
    [
        (0, (3).to_bytes(8, "big"), "expected offset 5"),
        (12, (9).to_bytes(4, "big"), "leader epoch 9, but the checkpoint has 0"),
        (35, (5).to_bytes(8, "big"), "its header says 5"),
        (57, (4).to_bytes(4, "big"), "its records cannot be read"),
        (57, (6).to_bytes(4, "big"), "6 records in 5 offsets"),
        (21, (7).to_bytes(2, "big"), "unknown compression type 7"),
        (21, (0x100).to_bytes(2, "big"), "attributes 0x100"),
        (23, (2).to_bytes(4, "big"), "5 records in 3 offsets"),
    ],
)
def test_a_batch_that_contradicts_itself_is_found(data, capsys, at, value, words):
    log = data / "plain-0" / f"{FIRST}.log"
    _, reported = rows(capsys, "dump", log)
    position = reported[2]["position"] if at == 0 else 0
    change_header(log, position, at, value)
    reported = findings(capsys, data)
    assert any(words in row["message"] and row["path"] == str(log) for row in reported), reported
    assert all(row["position"] is not None for row in reported if row["path"] == str(log))


def test_a_missing_segment_is_found(data, capsys):
    for path in (data / "plain-0").glob("*55.*"):
        path.unlink()
    reported = findings(capsys, data)
    assert any("offsets 55 to 104 are missing" in row["message"] for row in reported)


@pytest.mark.parametrize("suffix", ["index", "timeindex"])
def test_inconsistent_index_is_found(data, capsys, suffix):
    for path in (data / "plain-0").glob(f"*.{suffix}"):
        content = bytearray(path.read_bytes())
        if content:
            content[7] ^= 1  # a position; a timestamp
            path.write_bytes(content)
            break
    (error,) = errors(capsys, data)
    assert error["path"] == str(path)


def test_a_missing_aborted_transaction_is_found(data, capsys):
    path = next((data / "plain-0").glob("*.txnindex"))
    path.write_bytes(path.read_bytes()[:34])
    (error,) = errors(capsys, data)
    assert error["path"] == str(path)
    assert "is missing" in error["message"]
    path.unlink()
    assert len(errors(capsys, data)) == 2


def test_snapshot_that_contradicts_the_batches_is_found(data, capsys):
    newest = max((data / "plain-0").glob("*.snapshot"))
    older = min((data / "plain-0").glob("*.snapshot"))
    shutil.copyfile(older, newest)
    assert findings(capsys, data)
    newest.write_bytes(newest.read_bytes()[:-1] + b"\x7f")
    assert any("damaged" in row["message"] for row in errors(capsys, data))


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("recovery-point-offset-checkpoint", "0\n1\nplain 0 157\n", "the log ends at 156"),
        ("recovery-point-offset-checkpoint", "0\n1\nplain 0 155\n", "stopped cleanly"),
        ("recovery-point-offset-checkpoint", "0\n2\nplain 0 155\n", "2 rows declared"),
        ("replication-offset-checkpoint", "0\n1\nplain 0 157\n", "the high watermark is 157"),
        ("log-start-offset-checkpoint", "0\n1\nplain 0 157\n", "the log start is 157"),
        ("meta.properties", "version=1\n", "cluster.id is missing"),
        (".kafka_cleanshutdown", "{", "damaged"),
        ("plain-0/leader-epoch-checkpoint", "0\n1\n0 200\n", "epoch 0 begins at 200"),
        ("plain-0/leader-epoch-checkpoint", "0\n2\n3 0\n2 5\n", "come after"),
        ("plain-0/partition.metadata", "version: 0\ntopic_id: nonsense", "damaged"),
        (
            "plain-0/partition.metadata",
            "version: 0\ntopic_id: L2q436H7QN2QzJw3tqURJA",
            "but the metadata has",
        ),
        ("__cluster_metadata-0/quorum-state", "{}", "it has no leaderEpoch"),
        (
            "__cluster_metadata-0/quorum-state",
            '{"leaderId":1,"leaderEpoch":0,"data_version":0}',
            "the log has epoch 1",
        ),
    ],
)
def test_invalid_small_files_are_found(data, capsys, name, content, words):
    (data / name).write_text(content)
    reported = findings(capsys, data)
    assert any(words in row["message"] for row in reported), reported


def test_empty_leader_epochs_of_kafka_are_valid_without_batches(tmp_path, capsys):
    async def create() -> None:
        async with running(tmp_path) as server:
            await create_topics(broker_of(server), [new_topic("unused")])

    asyncio.run(create())
    (tmp_path / "unused-0" / "leader-epoch-checkpoint").write_bytes(b"")
    assert findings(capsys, tmp_path) == []


def test_empty_leader_epochs_of_a_log_with_batches_are_reported(data, capsys):
    (data / "plain-0" / "leader-epoch-checkpoint").write_bytes(b"")
    (finding,) = findings(capsys, data)
    assert finding["severity"] == "warning"
    assert "it is empty, but the batches have leader epochs" in finding["message"]


def test_node_without_a_vote_needs_no_quorum_state(data, capsys):
    (data / "__cluster_metadata-0" / "quorum-state").unlink()
    (finding,) = findings(capsys, data)
    assert finding["severity"] == "note"
    assert "as on a node without a vote" in finding["message"]


def test_deleted_and_recreated_topic_may_be_in_two_directories(data, tmp_path, capsys):
    first = tmp_path / "first"
    (first / f"plain-0.{'0' * 32}-delete").mkdir(parents=True)
    properties = (data / "meta.properties").read_text().splitlines()
    lines = [line for line in properties if not line.startswith("directory.id")]
    (first / "meta.properties").write_text("\n".join(lines))
    assert errors(capsys, first, data) == []
    (first / "plain-0").mkdir()
    (error,) = errors(capsys, first, data)
    assert error["path"] == str(data / "plain-0")


def test_unreadable_metadata_record_is_found(data, capsys):
    log = data / "__cluster_metadata-0" / f"{FIRST}.log"
    _, reported = rows(capsys, "dump", log)
    position = next(row["position"] for row in reported if row.get("base_offset") == 1)
    content = bytearray(log.read_bytes())
    start = content.index(b"\x01\x0c", position + 61)  # frame 1, FeatureLevelRecord
    content[start + 1] = 0x7F
    write_crc(content, position)
    log.write_bytes(content)
    reported = errors(capsys, data)
    assert any("metadata record of type 127" in row["message"] for row in reported)


def test_folders_unknown_to_the_metadata_are_reported(data, capsys):
    (data / "unknown-0").mkdir()
    (data / f"gone-0.{'0' * 32}-delete").mkdir()
    (data / "holidays").mkdir()
    (data / "plain-0" / f"{FIRST}.log.deleted").touch()
    (data / "plain-0" / "notes.txt").touch()
    findings_by_path = {row["path"].removeprefix(f"{data}/"): row for row in findings(capsys, data)}
    assert {name: row["severity"] for name, row in findings_by_path.items()} == {
        "unknown-0": "warning",
        "unknown-0/partition.metadata": "warning",
        f"gone-0.{'0' * 32}-delete": "note",
        "holidays": "note",
        "plain-0": "note",
        "plain-0/notes.txt": "note",
    }


def test_directories_of_two_clusters_are_reported(data, tmp_path, capsys):
    other = tmp_path / "other"
    other.mkdir()
    text = (data / "meta.properties").read_text()
    lines = [
        "cluster.id=MkU3OEVBNTcwNTJENDM2Qk" if line.startswith("cluster.id") else line
        for line in text.splitlines()
    ]
    (other / "meta.properties").write_text("\n".join(lines))
    messages = [row["message"] for row in errors(capsys, data, other)]
    assert any(message.startswith("cluster_id MkU3OEVBNTcwNTJENDM2Qk") for message in messages)
    assert any("has the same directory id" in message for message in messages)


async def test_running_broker_causes_no_false_findings(data, capsys):
    async with running(data) as server:
        logs = {replica.topic: replica.log for replica in broker_of(server).replicas}
        log = logs["plain"]
        reported: list[Finding] = []

        def on_bytes(_count):
            # The broker may append between any two batches that are verified.
            append(log, [(None, b"x", ())], timestamp_ms=NOW + 200_000)
            if log.log_end_offset % 7 == 0:
                log.roll(now_ms=NOW)

        run = Verification(
            ReadOnlyFiles(),
            [str(data)],
            clock=SystemClock(),
            emit=reported.append,
            on_bytes=on_bytes,
        )
        assert lock_holder(str(data)) is not None
        run.run()
    assert [row.severity.value for row in reported] == ["note"], reported
    assert "a broker uses it" in reported[0].message
    assert lock_holder(str(data)) is None
    capsys.readouterr()
    assert findings(capsys, data) == []


async def test_segments_deleted_meanwhile_cause_no_findings(data):
    async with running(data) as server:
        logs = {replica.topic: replica.log for replica in broker_of(server).replicas}
        log = logs["plain"]
        reported: list[Finding] = []

        def on_bytes(_count):
            if len(log.segments) > 1:  # as retention does
                log.segments[0].delete()
                del log.segments._segments[0], log.segments._base_offsets[0]

        Verification(
            ReadOnlyFiles(),
            [str(data)],
            clock=SystemClock(),
            emit=reported.append,
            on_bytes=on_bytes,
        ).run()
    assert [row.severity.value for row in reported] == ["note"], reported


def test_a_negative_epoch_in_the_metadata_log_is_found(data, capsys):
    log = data / "__cluster_metadata-0" / f"{FIRST}.log"
    content = bytearray(log.read_bytes())
    content[12] ^= 0x80
    log.write_bytes(content)
    messages = [row["message"] for row in errors(capsys, data)]
    assert any(message.startswith("a start cannot read the metadata log") for message in messages)
