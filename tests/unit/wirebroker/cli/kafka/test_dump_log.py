"""`kafka-dump-log` prints the records of internal topics as Apache Kafka's tool does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.cli.script_transcripts import our_scripts
from tests.support.records.recorded import recorded_records
from wirebroker.cli.kafka.formatters.dumped_records import dumped
from wirebroker.cli.kafka.formatters.record_json import OFFSET_TOPIC_FORMS, TRANSACTION_FORMS
from wirebroker.codecs.coordinator_records import group_metadata_record
from wirebroker.codecs.records.batch import build_batch
from wirebroker.codecs.transaction_records import encode_transaction_value, transaction_key

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.cli.script_transcripts import Answer

DECODERS = {
    "__consumer_offsets": "--offsets-decoder",
    "__share_group_state": "--share-group-state-decoder",
}
RECORDED = recorded_records()
METADATA_KEY = b"\x00\x03\x00\x01g"


@pytest.fixture
def ours(capfd: pytest.CaptureFixture[str]) -> Any:
    return our_scripts(capfd)


def dump_of(run: Any, folder: Path, records: list[tuple[Any, ...]], *flags: str) -> Answer:
    """Write the records to a segment and dump it. The folder's name is no internal topic's."""
    log = folder / f"{0:020d}.log"
    log.write_bytes(build_batch(records, timestamp_ms=1_700_000_000_000))
    result: Answer = run("kafka-dump-log", ["--files", str(log), *flags])
    return result


@pytest.mark.parametrize("topic", DECODERS)
def test_recorded_groups_are_printed_as_by_kafka(topic: str, ours: Any, tmp_path: Path) -> None:
    recorded = [record for record in RECORDED if record.topic == topic]
    records = [(record.key, record.value, ()) for record in recorded]
    result = dump_of(ours, tmp_path, records, DECODERS[topic], "--skip-record-metadata")
    assert (result.status, result.err) == (0, "")
    lines = [line for line in result.out.splitlines() if line.startswith("| ")]
    assert lines == [f"| {record.dump}" for record in recorded]


def test_metadata_of_a_record_precedes_its_key(ours: Any, tmp_path: Path) -> None:
    result = dump_of(ours, tmp_path, [(METADATA_KEY, None, ())], "--offsets-decoder")
    assert result.out.splitlines()[-1] == (
        "| offset: 0 CreateTime: 1700000000000 keySize: 5 valueSize: -1 sequence: -1 headerKeys: []"
        ' key: {"type":"3","data":{"groupId":"g"}} payload: <DELETE>'
    )


def test_records_of_other_kinds_and_broken_ones_are_skipped(ours: Any, tmp_path: Path) -> None:
    records = [(b"\x00\x09\x00\x01g", b"", ()), (METADATA_KEY, b"\x00", ()), (b"\x00", b"", ())]
    result = dump_of(ours, tmp_path, records, "--offsets-decoder", "--skip-record-metadata")
    assert result.status == 0
    assert result.out.splitlines()[-3:] == [
        "| key: Unknown record type 9 at offset 0, skipping.",
        "| key: Error at offset 1, skipping. ConsumerGroupMetadataValue: the version is cut off",
        "| key: Error at offset 2, skipping. Could not read version from key's buffer.",
    ]


def test_record_without_a_key_is_refused(ours: Any, tmp_path: Path) -> None:
    result = dump_of(ours, tmp_path, [(None, b"v", ())], "--transaction-log-decoder")
    assert result.status == 1
    assert result.err.startswith(
        "Failed to decode message at offset 0 using the specified decoder"
        " (message had a missing key)"
    )


def test_transactions_are_printed_with_their_kind() -> None:
    lines = list(dumped(TRANSACTION_FORMS, 0, transaction_key("tx"), None))
    assert lines == [
        'key: {"type":"0","data":{"transactionalId":"tx"}}',
        "payload: <DELETE>",
    ]
    for status, name in ((1, "Ongoing"), (99, "99")):
        value = encode_transaction_value(0, transaction_status=status)
        _, payload = dumped(TRANSACTION_FORMS, 0, transaction_key("tx"), value)
        assert f'"transactionStatus":"{name}",' in payload


@pytest.mark.parametrize(
    ("subscription", "assignment", "shown"),
    [
        # Version 0; version 1 with a partition; version 3.
        (
            "0000 00000001 000174 ffffffff",
            "0000 00000001 000174 00000001 00000002 00000001 61",
            '"subscription":{"topics":["t"],"userData":null},'
            '"assignment":{"assignedPartitions":[{"topic":"t","partitions":[2]}],"userData":"YQ=="}',
        ),
        (
            "0001 00000000 ffffffff 00000001 000174 00000001 00000002",
            "",
            '"subscription":{"topics":[],"userData":null,'
            '"ownedPartitions":[{"topic":"t","partitions":[2]}]},"assignment":""',
        ),
        (
            "0003 00000000 ffffffff 00000000 00000005 000172",
            "0009 00000000 ffffffff",
            '"subscription":{"topics":[],"userData":null,"ownedPartitions":[],"generationId":5,'
            '"rackId":"r"},"assignment":{"assignedPartitions":[],"userData":null}',
        ),
        # Malformed ones stay as they are.
        ("0000 00000009", "ff", '"subscription":"AAAAAAAJ","assignment":"/w=="'),
    ],
)
def test_subscriptions_and_assignments_of_consumers_are_decoded(
    subscription: str, assignment: str, shown: str
) -> None:
    member = {
        "member_id": "m",
        "group_instance_id": None,
        "client_id": "c",
        "client_host": "/h",
        "rebalance_timeout": 3,
        "session_timeout": 4,
        "subscription": bytes.fromhex(subscription),
        "assignment": bytes.fromhex(assignment),
    }
    for protocol_type in ("consumer", "connect"):
        key, value = group_metadata_record(
            "g", protocol_type=protocol_type, generation=1, members=[member]
        )
        _, payload = dumped(OFFSET_TOPIC_FORMS, 0, key, value)
        assert (shown in payload) == (protocol_type == "consumer" or "AAAAAAAJ" in shown)
