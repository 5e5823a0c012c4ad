"""`wirebroker shadow`: what it copies, where it resumes, and what it reports."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.support.brokers.servers import ThreadedServer, config_of
from tests.support.tools.waiting import eventually
from wirebroker.cli import main as cli

if TYPE_CHECKING:
    from tests.support.cli.verbs import Verbs

PATIENCE_S = 60


class Shadows:
    def __init__(self, address: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.address = address
        self.folder = folder
        self._capsys = capsys

    def command(self, *topics: str, once: bool = True) -> list[str]:
        flags = [argument for topic in topics for argument in ("--topics", topic)]
        return [
            *("shadow", self.address, *flags, "--data-dir", str(self.folder)),
            *("--output", "json", *(["--once"] if once else [])),
        ]

    def run(self, *topics: str, status: int = 0) -> dict[str, Any]:
        self._capsys.readouterr()
        assert cli.run(self.command(*topics)) == status
        report: dict[str, Any] = json.loads(self._capsys.readouterr().out)
        return report

    def refused(self, *topics: str) -> str:
        self._capsys.readouterr()
        assert cli.run(self.command(*topics)) == 1
        return self._capsys.readouterr().err

    def stored(self, partition: str) -> bytes:
        return stored(self.folder / partition)


def stored(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.glob("*.log")))


def id_of(verbs: Verbs, topic: str) -> str:
    (description,) = verbs.json("topic", "describe", topic)
    return str(description["topic_id"])


@pytest.fixture
def shadows(address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Shadows:
    return Shadows(address, tmp_path / "copy", capsys)


@pytest.fixture
def data(source: ThreadedServer) -> Path:
    return Path(source.server.data_directories[0])


def fill(verbs: Verbs, topic: str, *values: str, partition: int = 0) -> None:
    lines = "".join(f"{value}\n" for value in values).encode()
    assert verbs.feed(lines, "produce", topic, "-p", str(partition)).status == 0


def row_of(report: dict[str, Any], topic: str, partition: int = 0) -> dict[str, Any]:
    (partition_row,) = [
        row
        for row in report["partitions"]
        if (row["topic"], row["partition"]) == (topic, partition)
    ]
    return partition_row


def test_copy_has_the_sources_bytes_ids_and_configs_and_is_served(
    verbs: Verbs, shadows: Shadows, data: Path
) -> None:
    verbs.do("topic", "create", "copied", "-p", "2", "-c", "retention.ms=123456789")
    fill(verbs, "copied", "a", "b")
    fill(verbs, "copied", "c", partition=1)
    report = shadows.run("cop.*")
    assert [row["state"] for row in report["partitions"]] == ["done", "done"]
    assert report["copied_records"] == 3
    fill(verbs, "copied", "d")
    assert shadows.run("cop.*")["copied_records"] == 1
    for partition in ("copied-0", "copied-1"):
        assert shadows.stored(partition) == stored(data / partition) != b""
        copied_metadata, source_metadata = (
            folder / partition / "partition.metadata" for folder in (shadows.folder, data)
        )
        assert copied_metadata.read_bytes() == source_metadata.read_bytes()

    with ThreadedServer(config_of(shadows.folder)) as copy:
        copy_verbs = type(verbs)("{}:{}".format(*copy.address), verbs._capsys)
        assert copy_verbs.do("consume", "copied", "-p", "0", "-o", "start", "-e").lines == [
            "a",
            "b",
            "d",
        ]
        settings = copy_verbs.json("config", "list", "topic", "copied")
        assert {row["name"]: row["value"] for row in settings} == {"retention.ms": "123456789"}
        fill(copy_verbs, "copied", "e")  # in a separate epoch
    assert cli.run(["verify", str(shadows.folder)]) == 0
    assert "since it was copied: its records may differ" in shadows.refused("copied")


def test_transactions_are_copied_with_their_markers(
    address: str, verbs: Verbs, shadows: Shadows, data: Path
) -> None:
    verbs.do("topic", "create", "decided")
    producer = Producer({"bootstrap.servers": address, "transactional.id": "shadowed"})
    producer.init_transactions(PATIENCE_S)
    for ends in (producer.commit_transaction, producer.abort_transaction):
        producer.begin_transaction()
        producer.produce("decided", "value")
        producer.flush(PATIENCE_S)
        ends()
    producer.begin_transaction()
    producer.produce("decided", "open")
    producer.flush(PATIENCE_S)
    report = shadows.run("decided")
    producer.abort_transaction()
    row = row_of(report, "decided")
    assert row["fault_count"] == row["gap_count"] == 0
    assert (row["log_end_offset"], row["open_transactions"]) == (5, 1)
    assert shadows.stored("decided-0") == stored(data / "decided-0")[: row["copied_bytes"]]


def test_copy_starts_at_the_log_start_and_reports_later_deletions(
    verbs: Verbs, shadows: Shadows
) -> None:
    verbs.do("topic", "create", "cut")
    fill(verbs, "cut", *"abcdef")  # one batch
    verbs.do("topic", "trim", "cut", "--before-offset", "2", "--yes")
    row = row_of(shadows.run("cut"), "cut")
    assert (row["log_start_offset"], row["log_end_offset"], row["gap_count"]) == (2, 6, 0)
    fill(verbs, "cut", "g")
    fill(verbs, "cut", "h")
    verbs.do("topic", "trim", "cut", "--before-offset", "7", "--yes")
    row = row_of(shadows.run("cut"), "cut")
    assert (row["gaps"], row["fault_count"], row["state"]) == ([[6, 7]], 0, "done")
    assert (row["log_start_offset"], row["log_end_offset"]) == (2, 8)


def test_internal_topics_are_copied_only_if_named(verbs: Verbs, shadows: Shadows) -> None:
    verbs.do("topic", "create", "committed")
    fill(verbs, "committed", "a")
    consumer = Consumer({"bootstrap.servers": shadows.address, "group.id": "g"})
    consumer.commit(offsets=[TopicPartition("committed", 0, 1)], asynchronous=False)
    consumer.close()
    report = shadows.run(".*commit.*|__consumer_offsets")
    assert {row["topic"] for row in report["partitions"]} == {"committed"}
    report = shadows.run("committed", "__consumer_offsets")
    assert row_of(report, "__consumer_offsets")["copied_records"] > 0


def test_recreated_topic_is_not_mixed_with_the_old_copy(verbs: Verbs, shadows: Shadows) -> None:
    verbs.do("topic", "create", "reused")
    fill(verbs, "reused", "old")
    shadows.run("reused")
    before, ids = shadows.stored("reused-0"), [id_of(verbs, "reused")]
    verbs.do("topic", "delete", "reused", "--yes")
    verbs.do("topic", "create", "reused")
    fill(verbs, "reused", "new", "er")
    ids.append(id_of(verbs, "reused"))
    refusal = shadows.refused("reused")
    assert (
        f"topic reused was recreated since it was copied: the copy has topic id {ids[0]}, "
        f"the topic now has {ids[1]}"
    ) in refusal
    assert shadows.stored("reused-0") == before


def test_killed_copy_continues_where_it_was(verbs: Verbs, shadows: Shadows, data: Path) -> None:
    verbs.do("topic", "create", "killed")
    fill(verbs, "killed", *map(str, range(500)))
    command = [sys.executable, "-m", "wirebroker", *shadows.command("killed", "later", once=False)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as shadow:
        source_bytes = stored(data / "killed-0")
        eventually(lambda: shadows.stored("killed-0") == source_bytes, timeout_s=PATIENCE_S)
        # Topics that are created later are copied too.
        verbs.do("topic", "create", "later")
        fill(verbs, "later", "a")
        eventually(lambda: shadows.stored("later-0") != b"", timeout_s=PATIENCE_S)
        shadow.kill()
    fill(verbs, "killed", *map(str, range(500)))
    assert row_of(shadows.run("killed", "later"), "killed")["copied_records"] == 500
    assert shadows.stored("killed-0") == stored(data / "killed-0")
    assert cli.run(["verify", str(shadows.folder)]) == 0


def test_killed_copy_keeps_records_after_a_gap(verbs: Verbs, shadows: Shadows) -> None:
    verbs.do("topic", "create", "gapped", "-c", "internal.segment.bytes=100")
    for value in "abc":
        fill(verbs, "gapped", value)
    shadows.run("gapped")
    for value in "defghi":
        fill(verbs, "gapped", value)
    verbs.do("topic", "trim", "gapped", "--before-offset", "5", "--yes")
    assert row_of(shadows.run("gapped"), "gapped")["gaps"] == [[3, 5]]
    before = shadows.stored("gapped-0")
    # The state after kill -9: no clean stop, and nothing known to be flushed.
    (shadows.folder / ".kafka_cleanshutdown").unlink()
    (shadows.folder / "recovery-point-offset-checkpoint").write_text("0\n0\n")
    row = row_of(shadows.run("gapped"), "gapped")
    assert (row["log_end_offset"], row["copied_records"], row["fault_count"]) == (9, 0, 0)
    assert shadows.stored("gapped-0") == before


def test_stopped_shadow_prints_its_report(verbs: Verbs, shadows: Shadows) -> None:
    verbs.do("topic", "create", "stopped")
    fill(verbs, "stopped", "a")
    command = [sys.executable, "-m", "wirebroker", *shadows.command("stopped", once=False)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as shadow:
        eventually(lambda: shadows.stored("stopped-0") != b"", timeout_s=PATIENCE_S)
        shadow.terminate()
        out, _ = shadow.communicate(timeout=PATIENCE_S)
        assert shadow.returncode == 143
    assert row_of(json.loads(out), "stopped")["state"] == "followed"
    assert (shadows.folder / ".kafka_cleanshutdown").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--topics", "("], "is not a regular expression"),
        (["--topics", "a", "-b", "127.0.0.1:1"], "give the brokers once"),
        ([], "--topics"),
    ],
)
def test_usage_error_is_one_line(
    shadows: Shadows, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    command = ["shadow", shadows.address, "--data-dir", str(shadows.folder), *arguments]
    assert cli.run(command) == 2
    assert words in capsys.readouterr().err
    assert not shadows.folder.exists()


def test_table_output_has_the_same_values(
    verbs: Verbs, shadows: Shadows, capsys: pytest.CaptureFixture[str]
) -> None:
    verbs.do("topic", "create", "shown")
    fill(verbs, "shown", "a", "b")
    command = [
        argument for argument in shadows.command("shown") if argument not in {"--output", "json"}
    ]
    capsys.readouterr()
    assert cli.run(command) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[1].split()[:6] == ["shown", "0", "0", "2", "2", "2"]
    assert out.endswith("bytes copied; 0 gaps, 0 faults\n")


def test_copy_without_a_matching_topic_fails(
    shadows: Shadows, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [
        argument for argument in shadows.command("typo") if argument not in {"--output", "json"}
    ]
    capsys.readouterr()
    assert cli.run(command) == 1
    assert capsys.readouterr().out.startswith("no topic matches\n")
