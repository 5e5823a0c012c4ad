"""The command line of each plan does what the console does."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.console.changes import made, prepared, run_line, state_of

# A name, a kind of change, and its values.
CASES: list[tuple[str, str, dict[str, Any]]] = [
    ("create-topic", "create-topic", {"topic": "made"}),
    (
        "create-topic-with-all",
        "create-topic",
        {"topic": "-made", "partitions": 3, "replicas": 1, "configs": "retention.ms=1000\n"},
    ),
    ("add-partitions", "add-partitions", {"topic": "orders", "partitions": 4}),
    ("empty-topic", "empty-topic", {"topic": "orders"}),
    ("trim-offset", "trim-topic", {"topic": "orders", "before_offset": 3, "partitions": "1"}),
    ("trim-time", "trim-topic", {"topic": "orders", "before_time": "1970-01-01T00:00:03"}),
    ("trim-ago", "trim-topic", {"topic": "orders", "before_time": "7d"}),
    ("delete-topic", "delete-topic", {"topic": "orders", "confirm": "orders"}),
    ("delete-topics", "delete-topics", {"topics": "orders\nlatest", "confirm": 2}),
    (
        "topic-configs",
        "alter-topic-configs",
        {"topic": "latest", "set": "retention.ms=1000", "unset": "cleanup.policy"},
    ),
    ("all-brokers", "alter-broker-configs", {"broker": "all", "set": "log.retention.ms=99"}),
    (
        "group-configs",
        "alter-group-configs",
        {"group": "it's one", "set": "consumer.session.timeout.ms=50000"},
    ),
    (
        "client-metrics",
        "alter-client-metrics",
        {"subscription": "all", "set": "interval.ms=5000\nmetrics=org.apache."},
    ),
    ("produce", "produce-record", {"topic": "orders", "key": "it's", "value": "two\nlines é"}),
    (
        "produce-all",
        "produce-record",
        {
            "topic": "orders",
            "partition": 1,
            "key": "00 ff",
            "key_form": "hex",
            "value_form": "null",
            "headers": '[{"key": "a", "value": null}, {"key": "b", "value": {"base64": "/w=="}}]',
        },
    ),
    (
        "resend",
        "resend-record",
        {"source_topic": "orders", "source_partition": 1, "source_offset": 2, "topic": "copies"},
    ),
    ("copy", "copy-records", {"source": "orders", "topic": "copies"}),
    (
        "copy-range",
        "copy-records",
        {
            "source": "orders",
            "topic": "copies",
            "partitions": "0,1",
            "from_offset": 1,
            "until_time": "1970-01-01T00:00:04Z",
            "most": 4,
            "keep_partitions": "yes",
        },
    ),
    ("reset-start", "reset-offsets", {"group": "billing", "to": "start"}),
    ("reset-end", "reset-offsets", {"group": "billing", "to": "end"}),
    ("reset-offset", "reset-offsets", {"group": "billing", "to": "offset", "value": 3}),
    ("reset-shift", "reset-offsets", {"group": "billing", "to": "shift", "value": -1}),
    (
        "reset-time",
        "reset-offsets",
        {"group": "billing", "to": "time", "value": "1970-01-01T00:00:02"},
    ),
    ("reset-ago", "reset-offsets", {"group": "billing", "to": "time", "value": "2h"}),
    (
        "reset-partitions",
        "reset-offsets",
        {"group": "-new", "to": "offset", "value": 4, "topics": "orders:1\ncopies"},
    ),
    ("reset-share", "reset-offsets", {"group": "workers", "to": "end"}),
    ("delete-group", "delete-group", {"group": "billing"}),
    ("delete-share-group", "delete-group", {"group": "workers"}),
    ("delete-offsets", "delete-offsets", {"group": "billing", "topics": "orders:1"}),
    ("delete-share-offsets", "delete-offsets", {"group": "workers", "topics": "orders"}),
]
# Together they take half a minute.
_EACH_DAY = {"create-topic-with-all", "produce-all", "copy-range", "reset-partitions"}


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        pytest.param(kind, values, id=name, marks=() if name in _EACH_DAY else pytest.mark.long)
        for name, kind, values in CASES
    ],
)
async def test_a_command_leaves_the_same_cluster_as_the_change(
    open_cluster, tmp_path, kind: str, values: dict[str, Any]
):
    async with open_cluster("changed") as one, open_cluster("commanded") as other:
        before = await state_of(one.client)
        assert await state_of(other.client) == before
        plan = await prepared(other, kind, **values)
        await made(one, kind, **values)
        await run_line(plan.command, tmp_path)
        after = await state_of(one.client)
        assert after != before
        assert await state_of(other.client) == after
