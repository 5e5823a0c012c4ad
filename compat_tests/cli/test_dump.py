"""`wirebroker dump` and `verify` compared with DumpLogSegments on the same files."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from compat_tests.cli import record_groups
from compat_tests.clients import confluent
from compat_tests.clients.all import LIBRARIES
from compat_tests.clients.message import WAIT_S, Message
from compat_tests.support import topics
from tests.support.brokers.brokers import make_broker
from tests.support.cli.script_transcripts import our_scripts
from tests.support.tools.tools import java_command, kafka_jars
from wirebroker.codecs.group_records import GroupRecordKind
from wirebroker.codecs.share_state_records import ShareStateKind

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from compat_tests.conftest import StartBroker
    from tests.support.cli.script_transcripts import Answer

pytestmark = pytest.mark.java
CLIENT = LIBRARIES[0]
TOPIC = "orders"
DUMPER = "org.apache.kafka.tools.DumpLogSegments"
# Kafka's different names, by the type of our rows.
NAMES = {
    "batch": {
        "baseOffset": "base_offset",
        "lastOffset": "last_offset",
        "count": "record_count",
        "baseSequence": "base_sequence",
        "lastSequence": "last_sequence",
        "producerId": "producer_id",
        "producerEpoch": "producer_epoch",
        "partitionLeaderEpoch": "leader_epoch",
        "isTransactional": "is_transactional",
        "isControl": "is_control",
        "position": "position",
        "CreateTime": "max_timestamp",
        "size": "size",
        "magic": "magic",
        "compresscodec": "compression_type",
        "crc": "crc",
        "isvalid": "is_valid_crc",
    },
    "record": {
        "offset": "offset",
        "CreateTime": "timestamp",
        "keySize": "key_size",
        "valueSize": "value_size",
        "sequence": "sequence",
    },
    "offset_index_entry": {"offset": "offset", "position": "position"},
    "time_index_entry": {"timestamp": "timestamp", "offset": "offset"},
    "aborted_transaction": {
        "version": "version",
        "producerId": "producer_id",
        "firstOffset": "first_offset",
        "lastOffset": "last_offset",
        "lastStableOffset": "last_stable_offset",
    },
    "producer": {
        "producerId": "producer_id",
        "producerEpoch": "producer_epoch",
        "coordinatorEpoch": "coordinator_epoch",
        "lastTimestamp": "timestamp_ms",
    },
}


def kafkas_rows(files: list[Path], *options: str) -> dict[str, list[dict[str, str]]]:
    names = ",".join(map(str, files))
    command = [java_command(), "-Xmx256m", "-cp", f"{kafka_jars()}/*", DUMPER, *options]
    done = subprocess.run(
        [*command, "--files", names], capture_output=True, text=True, check=True, timeout=120
    )
    rows: dict[str, list[dict[str, str]]] = {}
    current: list[dict[str, str]] = []
    for line in done.stdout.splitlines():
        if line.startswith("Dumping "):
            current = rows.setdefault(line.removeprefix("Dumping "), [])
        elif not line.startswith(("Log starting offset", "Snapshot end offset")):
            current.append(dict(re.findall(r"(\w+): (\S+)", line)))
    return rows


def our_rows(*arguments: object) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "wirebroker", *map(str, arguments), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    return [json.loads(line) for line in done.stdout.splitlines()]


def in_kafkas_words(row: dict[str, Any]) -> dict[str, str]:
    """Return the fields that Kafka's tool also prints."""
    names = NAMES[row["type"]]
    return {
        kafka_field: str(row[field]).lower() if isinstance(row[field], bool) else str(row[field])
        for kafka_field, field in names.items()
    }


def fill(bootstrap: str, topic: str) -> None:
    topics.create(bootstrap, topic, configs={"segment.bytes": "1048576"})
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        messages = [Message(b"%d " % number * 100) for number in range(1000)]
        CLIENT.produce(bootstrap, topic, messages, codec=codec)
    for commits in (True, False):
        producer = confluent.make_producer(bootstrap, {"transactional.id": f"{topic}-{commits}"})
        producer.init_transactions(WAIT_S)
        producer.begin_transaction()
        producer.produce(topic, value=b"in a transaction", partition=0)
        producer.flush(WAIT_S)  # an abort discards unsent records
        (producer.commit_transaction if commits else producer.abort_transaction)(WAIT_S)


@pytest.fixture(scope="module")
def filled(broker_kind: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a stopped broker with one topic, which the tests only read."""
    with make_broker(broker_kind, tmp_path_factory.mktemp("filled")) as broker:
        fill(broker.bootstrap, TOPIC)
        producer = confluent.make_producer(broker.bootstrap, {"enable.idempotence": True})
        for key, value in ((b"key", b"value"), (None, None), (b"", b""), (b"key", None)):
            producer.produce(TOPIC, key=key, value=value, partition=0)
        producer.flush(WAIT_S)
    return broker.data_dir


def test_dumped_numbers_match_kafka_tool(filled: Path) -> None:
    folder = filled / f"{TOPIC}-0"
    files = sorted(
        path
        for path in folder.iterdir()
        if path.suffix in {".log", ".index", ".timeindex", ".txnindex", ".snapshot"}
        and path.stat().st_size
    )
    kafka_rows_by_file = kafkas_rows(files)
    wirebroker_rows: dict[str, list[dict[str, str]]] = {}
    for row in our_rows("dump", *files):
        if row["type"] == "file":
            current = wirebroker_rows.setdefault(row["path"], [])
        else:
            current.append(in_kafkas_words(row))
    assert any(path.endswith(".txnindex") for path in wirebroker_rows)
    for path in map(str, files):
        expected = kafka_rows_by_file[path]
        assert len(wirebroker_rows[path]) == len(expected), path
        for wirebroker_row, kafka_row in zip(wirebroker_rows[path], expected, strict=True):
            assert wirebroker_row == {name: kafka_row[name] for name in wirebroker_row}, path


def test_dumped_record_sequences_and_sizes_match_kafka_tool(filled: Path) -> None:
    logs = sorted((filled / f"{TOPIC}-0").glob("*.log"))
    kafka_rows_by_file = kafkas_rows(logs, "--deep-iteration", "--print-data-log")
    expected = [row for log in logs for row in kafka_rows_by_file[str(log)]]
    wirebroker_rows = [row for row in our_rows("dump", "--deep", *logs) if row["type"] != "file"]
    assert [in_kafkas_words(row) for row in wirebroker_rows] == [
        {name: kafka_row[name] for name in NAMES[row["type"]]}
        for row, kafka_row in zip(wirebroker_rows, expected, strict=True)
    ]
    sizes = {
        (row["key_size"], row["value_size"]) for row in wirebroker_rows if row["type"] == "record"
    }
    assert {(3, 5), (-1, -1), (0, 0), (3, -1)} <= sizes
    assert any(row.get("sequence", 0) > 0 for row in wirebroker_rows)


def same_dump(run: Callable[..., Answer], logs: list[Path], decoder: str) -> str:
    """Return the output of both tools."""
    expected = record_groups.kafkas_dump(logs, decoder)
    result = run("kafka-dump-log", [decoder, "--files", ",".join(map(str, logs))])
    assert (result.status, result.err) == (0, "")
    assert result.out.splitlines() == expected.splitlines()
    return result.out


def test_states_of_transactions_are_printed_like_kafka_tool(
    filled: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    logs = [path for path in filled.glob("__transaction_state-*/*.log") if path.stat().st_size]
    printed = same_dump(our_scripts(capfd), logs, "--transaction-log-decoder")
    assert printed.count('"transactionStatus":"Complete') == 2


@pytest.mark.nightly  # makes groups of each kind at Apache Kafka
def test_records_of_groups_are_printed_like_kafka_tool(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    data = record_groups.make_directory(tmp_path)
    run = our_scripts(capfd)
    numbers: set[tuple[str, str]] = set()
    for topic, decoder in record_groups.DECODERS.items():
        printed = same_dump(run, record_groups.logs_of(data, topic), decoder)
        types = re.findall(r'key: {"type":"(\d+)"', printed)
        numbers |= {(topic, number) for number in types}
    newer = {("__consumer_offsets", str(int(kind))) for kind in GroupRecordKind}
    states = {("__share_group_state", str(int(kind))) for kind in ShareStateKind}
    # Kafka writes only tombstones of one kind.
    assert numbers >= newer | states


def test_verify_and_kafka_tool_accept_the_same_files(filled: Path) -> None:
    findings = our_rows("verify", filled)
    assert [row for row in findings if row.get("severity") in {"error", "warning"}] == []
    indexes = sorted((filled / f"{TOPIC}-0").glob("*.index"))
    kafkas_rows([path for path in indexes if path.stat().st_size], "--index-sanity-check")


def test_directory_of_killed_broker_has_no_errors(start_broker: StartBroker, topic: str) -> None:
    broker = start_broker()
    fill(broker.bootstrap, topic)
    broker.kill9()
    findings = our_rows("verify", broker.data_dir)
    assert [row for row in findings if row.get("severity") == "error"] == []
    repaired = our_rows("repair", "--dry-run", broker.data_dir)
    assert our_rows("repair", broker.data_dir)[:-1] == repaired[:-1]
    findings = our_rows("verify", broker.data_dir)
    assert [row for row in findings if row.get("severity") in {"error", "warning"}] == []
