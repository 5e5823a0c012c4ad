"""`wirebroker dump`: contents of files as text and JSON, and their errors."""

from __future__ import annotations

import io
import os
import subprocess
import sys

import pytest

from tests.support.records.clocks import HandClock
from tests.support.records.recorded import recorded_records
from tests.unit.wirebroker.inspect.directory_kit import COUNT, NOW, contents, rows, run
from wirebroker.cli import main as cli
from wirebroker.cli.plumbing.progress import Progress
from wirebroker.codecs.group_records import (
    GroupMemberKey,
    GroupRecordKind,
    group_record,
    group_record_tombstone,
)
from wirebroker.codecs.records.batch import build_batch
from wirebroker.inspect.rows.json_lines import json_line
from wirebroker.inspect.rows.text_lines import printable, timestamp_text

FIRST = "00000000000000000000"


def of_type(dumped, kind):
    return [row for row in dumped if row["type"] == kind]


def test_a_segment_is_shown_batch_by_batch(made, capsys):
    log = made / "plain-0" / f"{FIRST}.log"
    status, dumped = rows(capsys, "dump", log)
    assert status == 0
    assert dumped[0] == {"type": "file", "path": str(log), "size": log.stat().st_size}
    batches = of_type(dumped, "batch")
    assert [row["base_offset"] for row in batches] == list(range(0, 55, 5))
    assert [row["last_offset"] for row in batches] == list(range(4, 55, 5))
    assert [row["compression_type"] for row in batches[:5]] == [
        "none", "gzip", "snappy", "lz4", "zstd",
    ]  # fmt: skip
    assert batches[1]["producer_id"] == 7
    assert batches[1]["max_timestamp"] == NOW + 1000
    assert all(row["is_valid_crc"] for row in batches)
    assert sum(row["size"] for row in batches) == log.stat().st_size
    assert batches[1]["position"] == batches[0]["size"]


def test_records_of_compressed_batches_are_shown_on_request(made, capsys):
    log = made / "plain-0" / f"{FIRST}.log"
    _, shallow = rows(capsys, "dump", log, "--records")
    assert {row["offset"] // 5 for row in of_type(shallow, "record")} == {0, 5, 10}
    _, deep = rows(capsys, "dump", log, "--deep")
    records = of_type(deep, "record")
    assert [row["offset"] for row in records] == list(range(55))
    assert records[6]["value"] == "value 1 " * 40
    assert records[6]["key"] == "key"
    assert records[6]["headers"] == [{"key": "header", "value": {"base64": "/w=="}}]
    assert records[6]["timestamp"] == NOW + 1000


def test_a_record_has_its_sequence_and_sizes(tmp_path, capsys):
    log = tmp_path / f"{FIRST}.log"
    records = [(b"key", b"value", ()), (None, None, ()), (b"", b"", ())]
    counted = build_batch(
        records, timestamp_ms=NOW, producer_id=1, producer_epoch=0, base_sequence=2**31 - 2
    )
    log.write_bytes(counted + build_batch(records, timestamp_ms=NOW, base_offset=3))
    _, dumped = rows(capsys, "dump", log, "--records")
    sizes = [
        (row["sequence"], row["key_size"], row["value_size"]) for row in of_type(dumped, "record")
    ]
    assert sizes[:3] == [(2**31 - 2, 3, 5), (2**31 - 1, -1, -1), (0, 0, 0)]
    assert sizes[3:] == [(-1, 3, 5), (-1, -1, -1), (-1, 0, 0)]
    _, text = run(capsys, "dump", log, "--records", "--max", 2)
    assert " sequence=2147483646 key_size=3 value_size=5 key=key value=value" in text


def test_range_of_offsets_can_be_selected(made, capsys):
    log = made / "plain-0" / f"{FIRST}.log"
    _, dumped = rows(capsys, "dump", log, "--from-offset", 12, "--to-offset", 21, "--deep")
    assert [row["base_offset"] for row in of_type(dumped, "batch")] == [10, 15, 20]
    assert [row["offset"] for row in of_type(dumped, "record")] == list(range(12, 22))
    _, dumped = rows(capsys, "dump", made / "plain-0", "--from-offset", 110, "--to-offset", 112)
    logs = [row["path"] for row in of_type(dumped, "file") if row["path"].endswith(".log")]
    assert logs == [str(made / "plain-0" / f"{105:020d}.log")]
    _, dumped = rows(capsys, "dump", log, "--max", 2)
    assert len(dumped) == 3


def test_every_file_of_a_directory_is_shown(made, capsys):
    status, dumped = rows(capsys, "dump", made, "--records")
    assert status == 0
    paths = {row["path"].removeprefix(f"{made}/") for row in of_type(dumped, "file")}
    assert paths == set(contents(made)) - {".lock"}
    kinds = {row["type"] for row in dumped}
    assert kinds == {
        "aborted_transaction",
        "batch",
        "checkpoint",
        "clean_shutdown",
        "file",
        "leader_epoch",
        "meta_properties",
        "offset_index_entry",
        "partition_metadata",
        "producer",
        "quorum_state",
        "record",
        "time_index_entry",
    }


def test_indexes_and_snapshots_are_shown(made, capsys):
    _, dumped = rows(capsys, "dump", made / "plain-0")
    aborted = of_type(dumped, "aborted_transaction")
    assert [row["producer_id"] for row in aborted] == [9, 10]
    assert [(row["first_offset"], row["last_offset"]) for row in aborted] == [
        (COUNT * 5 + 2, COUNT * 5 + 3),
        (COUNT * 5 + 4, COUNT * 5 + 5),
    ]
    assert {row["producer_id"] for row in of_type(dumped, "producer")} == {7, 8, 9, 10}
    positions = {row["position"]: row["last_offset"] for row in of_type(dumped, "batch")}
    for row in of_type(dumped, "offset_index_entry"):
        assert positions[row["position"]] == row["offset"]
    assert of_type(dumped, "leader_epoch") == [
        {"type": "leader_epoch", "epoch": 0, "start_offset": 0}
    ]


def test_internal_records_are_decoded(made, capsys):
    _, dumped = rows(capsys, "dump", made / "__consumer_offsets-0", "--records")
    first, second = (row["decoded"] for row in of_type(dumped, "record"))
    assert first["record_type"] == "OFFSET_COMMIT"
    assert (first["group_id"], first["topic"], first["offset"]) == ("group", "plain", 5)
    assert second["record_type"] == "GROUP_METADATA"
    assert second["generation"] == 3
    _, dumped = rows(capsys, "dump", made / "__cluster_metadata-0", "--records")
    decoded = [row["decoded"] for row in of_type(dumped, "record")]
    assert decoded[0]["control_type"] == "LEADER_CHANGE"
    topics = [record["name"] for record in decoded if record.get("record_type") == "TOPIC"]
    assert topics == ["plain", "compact", "__consumer_offsets"]
    _, dumped = rows(capsys, "dump", made / "plain-0", "--records", "--from-offset", 150)
    ends = [row["decoded"] for row in of_type(dumped, "record") if row["decoded"]]
    assert [marker["control_type"] for marker in ends] == ["COMMIT", "ABORT", "ABORT"]


def test_records_of_newer_groups_are_decoded(tmp_path, capsys):
    for recorded in recorded_records():
        folder = tmp_path / f"{recorded.topic}-0"
        folder.mkdir(exist_ok=True)
        log = folder / f"{FIRST}.log"
        log.write_bytes(build_batch([(recorded.key, recorded.value, ())], timestamp_ms=NOW))
        _, dumped = rows(capsys, "dump", log, "--records")
        (decoded,) = (row["decoded"] for row in of_type(dumped, "record"))
        assert "error" not in decoded
        assert decoded["is_tombstone"] == (recorded.value is None)
    _, text = run(capsys, "dump", log, "--records")
    assert "SHARE_" in text
    assert "group_id=shared topic_id=" in text


def test_keys_and_values_of_newer_groups_have_the_names_of_the_protocol(tmp_path, capsys):
    folder = tmp_path / "__consumer_offsets-0"
    folder.mkdir()
    log = folder / f"{FIRST}.log"
    member = GroupMemberKey(GroupRecordKind.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER, "g", "m")
    assignment = [{"topic_id": bytes(16), "partitions": [0, 1]}]
    records = [group_record(member, topic_partitions=assignment), group_record_tombstone(member)]
    log.write_bytes(build_batch([(*record, ()) for record in records], timestamp_ms=NOW))
    _, dumped = rows(capsys, "dump", log, "--records")
    first, second = (row["decoded"] for row in of_type(dumped, "record"))
    names = {
        "record_type": "CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER",
        "group_id": "g",
        "member_id": "m",
    }
    partitions = [{"topic_id": "AAAAAAAAAAAAAAAAAAAAAA", "partitions": [0, 1]}]
    assert first == {**names, "is_tombstone": False, "topic_partitions": partitions}
    assert second == {**names, "is_tombstone": True}


def test_text_output_has_one_line_per_batch(made, capsys):
    log = made / "plain-0" / f"{FIRST}.log"
    status, text = run(capsys, "dump", log, "--max", 2)
    assert status == 0
    lines = text.splitlines()
    assert lines[1].startswith(str(log))
    assert lines[2].split()[:4] == ["OFFSETS", "RECORDS", "POSITION", "BYTES"]
    assert lines[3].split()[:2] == ["0-4", "5"]
    assert "2023-11-14T22:13:21.000Z gzip" in lines[4]
    _, text = run(capsys, "dump", made, "--deep")
    assert "record_type" not in text
    assert "OFFSET_COMMIT group_id=group topic=plain partition=0" in text


def test_damage_is_reported_and_the_rest_is_shown(data, capsys):
    log = data / "plain-0" / f"{FIRST}.log"
    _, dumped = rows(capsys, "dump", log)
    batches = of_type(dumped, "batch")
    content = bytearray(log.read_bytes())
    content[batches[1]["position"] + 70] ^= 1  # a record
    content[batches[3]["position"] + 9] ^= 0x40  # a length
    log.write_bytes(content)
    status, dumped = rows(capsys, "dump", log, "--deep")
    assert status == 1
    assert [row["base_offset"] for row in of_type(dumped, "batch")] == [
        batch["base_offset"] for index, batch in enumerate(batches) if index != 3
    ]
    crc, length = of_type(dumped, "damage")
    assert crc["position"] == batches[1]["position"]
    assert crc["offset"] == 5
    assert length["position"] == batches[3]["position"]
    assert length["length"] == batches[3]["size"]


def test_torn_end_is_reported(data, capsys):
    log = data / "plain-0" / f"{FIRST}.log"
    size = log.stat().st_size
    with log.open("ab") as file:
        file.write(b"\0" * 30)
    status, dumped = rows(capsys, "dump", log)
    assert status == 1
    assert dumped[-1]["type"] == "damage"
    assert (dumped[-1]["position"], dumped[-1]["length"]) == (size, 30)


def test_zeros_of_preallocated_indexes_are_not_damage(data, capsys):
    for suffix in ("index", "timeindex"):
        path = data / "plain-0" / f"{FIRST}.{suffix}"
        _, before = rows(capsys, "dump", path)
        path.write_bytes(path.read_bytes() + bytes(1200))
        status, after = rows(capsys, "dump", path)
        assert status == 0
        assert after[1:] == before[1:]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["dump", "nowhere"], "nowhere: there is no such file"),
        (["dump", __file__], "unknown kind of file"),
        (["dump"], "Missing argument"),
        (["verify", "nowhere"], "nowhere"),
        (["repair", "nowhere"], "nowhere"),
        (["dump", ".", "--max", "-1"], "--max"),
    ],
)
def test_usage_error_is_one_line_with_status_2(arguments, words, capsys):
    assert cli.run(arguments) == 2
    printed = capsys.readouterr()
    assert words in printed.err
    assert printed.err.count("\n") == 1
    assert not printed.out


def test_closed_output_pipe_ends_without_an_error(made):
    command = [sys.executable, "-m", "wirebroker", "dump", str(made), "--deep"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


def test_dump_opens_files_for_reading_only(made, capsys, monkeypatch):
    opened = []
    real = os.open

    def open_and_note(path, flags, *arguments, **options):
        opened.append((path, flags))
        return real(path, flags, *arguments, **options)

    monkeypatch.setattr(os, "open", open_and_note)
    run(capsys, "dump", made)
    assert opened
    assert all(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) == 0 for _, flags in opened)


def test_control_characters_are_escaped():
    assert printable("a\x1b[2Jb\x9bc") == "a\\x1b[2Jb\\x9bc"
    assert printable("größe") == "größe"


@pytest.mark.parametrize(
    ("timestamp_ms", "text"),
    [
        (-1, "-"),
        (0, "1970-01-01T00:00:00.000Z"),
        (1_700_000_000_123, "2023-11-14T22:13:20.123Z"),
        ((1 << 63) - 1, str((1 << 63) - 1)),
    ],
)
def test_timestamps_are_readable(timestamp_ms, text):
    assert timestamp_text(timestamp_ms) == text


def test_json_shows_bytes_as_text_or_base64():
    assert json_line({"type": "x", "a": b"\xff", "b": b"g\xc3\xa4"}) == (
        '{"type":"x","a":{"base64":"/w=="},"b":"gä"}'
    )


def test_progress_line_is_overwritten():
    stream, clock = io.StringIO(), HandClock()
    progress = Progress(stream, 4_000_000, clock)
    progress.add(1_000_000)
    assert stream.getvalue() == ""
    clock.passed_ms = 1_000
    progress.add(1_000_000)
    assert stream.getvalue().endswith(" 50 %  2 of 4 MB  2 MB/s")
    progress.clear()
    assert stream.getvalue().endswith("\r\x1b[K")
