"""Records produced, resent and copied from the console."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.console.changes import made, prepared, records_of
from tests.support.protocol.transactional_producer import TransactionalProducer
from tests.support.records.batches import batch
from wirebroker.client.errors import ClientError
from wirebroker.client.records import one_partition
from wirebroker.client.records.copying import CopyPlan, CopyRange, RecordCopier
from wirebroker.client.records.one_partition import PartitionFetcher
from wirebroker.client.records.producing import TopicWriter
from wirebroker.client.topics.leaders import TopicPartition
from wirebroker.client.topics.topics import create_topics
from wirebroker.codecs.records.codec import Codec
from wirebroker.console.changes.kinds.record_fields import fields_of, record_of
from wirebroker.console.changes.kinds.table import CHANGES

EVIL = "<script>alert(1)</script>\"'; rm -rf /\n$(reboot)`"


def bare(record) -> tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]:
    return record.key, record.value, list(record.headers)


async def last_of(collector, topic: str, partition: int) -> Any:
    return (await records_of(collector.client, topic))[TopicPartition(topic, partition)][-1]


# --- produce ---

PRODUCED: list[tuple[dict[str, Any], Any]] = [
    ({"value": "v"}, (None, b"v", [])),
    ({"value": ""}, (None, b"", [])),
    ({"key": "k", "value": " two\nlines ", "headers": "a=1\nb=\n"}, None),
    ({"key": EVIL, "value": EVIL, "headers": f"x={EVIL.splitlines()[0]}"}, None),
    ({"value": '{"a": 1}', "value_form": "json"}, (None, b'{"a": 1}', [])),
    ({"value": "00 FF\n0a", "value_form": "hex"}, (None, b"\x00\xff\n", [])),
    ({"key": "", "key_form": "hex", "value_form": "null"}, (b"", None, [])),
    (
        {"value_form": "null", "headers": '[{"key": "a", "value": null}]'},
        (None, None, [("a", None)]),
    ),
]


@pytest.mark.parametrize(("values", "expected"), PRODUCED)
def test_fields_become_a_record(values, expected):
    defaults = {field.name: field.default for field in CHANGES["produce-record"].fields}
    record = record_of(defaults | values)
    if expected is None:
        expected = (values["key"].encode(), values["value"].encode(), record[2])
    assert (record[0], record[1], list(record[2])) == expected


@pytest.mark.parametrize(
    "record",
    [
        (None, None, []),
        (b"", b"", []),
        (b"k", b"v", [("a", b"1"), ("a", b"2")]),
        (b"\xff", b"\x00\r\n", [("a", None)]),
        (b"k\r", "é\ttwo\nlines".encode(), [("a=b", b"1"), ("", b"\xff")]),
        (b"null", b"[]", [("[", b"x")]),
        (b"k", b"v", [("a", b" \n ")]),
        *((b"k", b"v", [("a", b"1" + end)]) for end in (b"\n", b"\r", b"\r\n", b"\x0b", b"\x1e")),
        (b"k", b"x" * 5000 + b"\xff", [("\udcff", b"1")]),
    ],
)
def test_a_record_as_fields_is_the_same_record(record):
    defaults = {field.name: field.default for field in CHANGES["resend-record"].fields}
    key, value, headers = record_of(defaults | fields_of(record), (b"other", b"other", []))
    assert (key, value, list(headers)) == record


def test_what_is_too_long_for_a_form_stays_as_in_the_record():
    record = (b"k", bytes(100_000), [("a", b"x" * 100_000)])
    fields = fields_of(record)
    assert (fields["value_form"], fields["headers_form"]) == ("same", "same")
    assert sum(map(len, fields.values())) < 100
    defaults = {field.name: field.default for field in CHANGES["resend-record"].fields}
    assert record_of(defaults | fields, record) == record


async def test_a_record_is_produced(open_cluster):
    async with open_cluster() as c:
        values = {"topic": "orders", "key": "k1", "value": EVIL, "headers": "trace=<b>"}
        plan = await prepared(c, "produce-record", **values)
        assert plan.lines[0] in {"partition: 0", "partition: 1"}
        assert plan.lines[1] == "key: k1 (2 bytes)"
        assert plan.lines[3] == "header trace: <b> (3 bytes)"
        partition = int(plan.lines[0][-1])
        assert await plan.apply() == f"stored in orders-{partition} at offset 5"
        record = await last_of(c, "orders", partition)
        assert bare(record) == (b"k1", EVIL.encode(), [("trace", b"<b>")])


async def test_a_record_without_key_goes_to_any_partition_or_a_given_one(open_cluster):
    async with open_cluster() as c:
        plan = await prepared(c, "produce-record", topic="orders", value="v")
        assert plan.lines[0] == "partition: chosen when it is written"
        assert "at offset 5" in await plan.apply()
        done = await made(c, "produce-record", topic="copies", value="v", partition=2)
        assert done == "stored in copies-2 at offset 0"


# --- resend ---

SOURCE = {"source_topic": "orders", "source_partition": 1, "source_offset": 2, "topic": "copies"}


async def test_a_record_is_sent_again_as_it_is(open_cluster):
    async with open_cluster() as c:
        plan = await prepared(c, "resend-record", **SOURCE, partition=0)
        assert plan.summary == "Write the record of orders-1 at offset 2 to topic copies again"
        assert plan.lines[0] == "partition: 0"
        assert await plan.apply() == "stored in copies-0 at offset 0"
        record = await last_of(c, "copies", 0)
        assert bare(record) == (b"k2", b"v2", [("trace", b"t2")])


async def test_an_edited_record_is_sent_again(open_cluster):
    async with open_cluster() as c:
        prefill = CHANGES["resend-record"].prefill
        assert prefill is not None
        texts = {name: str(value) for name, value in SOURCE.items()}
        values = {**SOURCE, **await prefill(c, texts), "value": "edited"}
        plan = await prepared(c, "resend-record", **values, partition=1)
        assert plan.lines[0] == "the record is changed before it is written"
        await plan.apply()
        record = await last_of(c, "copies", 1)
        assert bare(record) == (b"k2", b"edited", [("trace", b"t2")])


async def test_a_long_record_is_sent_again_by_a_pipe(open_cluster):
    async with open_cluster() as c:
        writer = TopicWriter(c.client, "latest", Codec.NONE)
        await writer.open()
        value = bytes(range(256)) * 400
        await writer.write([(0, (b"k", value, []))])
        source = {"source_topic": "latest", "source_partition": 0, "source_offset": 0}
        plan = await prepared(c, "resend-record", **source, topic="copies", partition=0)
        assert " consume " in plan.command
        assert len(plan.command) < 1000
        await plan.apply()
        assert (await last_of(c, "copies", 0)).value == value
        edited = {"headers_form": "text", "headers": "a=1", "partition": 0}
        plan = await prepared(c, "resend-record", **source, topic="copies", **edited)
        assert plan.command.endswith(" < FILE")
        assert " consume " not in plan.command


# --- copy ---


async def test_records_are_copied_with_their_timestamps(open_cluster):
    async with open_cluster() as c:
        values = {"source": "orders", "topic": "copies", "keep_partitions": "yes"}
        plan = await prepared(c, "copy-records", **values)
        assert plan.lines == (
            "source: topic orders, 2 partitions",
            "from: the start",
            "until: the current end",
            "at most 100,000 records",
            "partitions: the same numbers",
        )
        assert plan.notes == ("partition 0: offsets 0 to 4", "partition 1: offsets 0 to 4")
        assert plan.progress is not None
        assert plan.progress() == "0 records, 0 of 10 offsets"
        assert await plan.apply() == "10 records copied from orders to copies"
        assert plan.progress() == "10 records, 10 of 10 offsets"
        sources, copies = await records_of(c.client, "orders"), await records_of(c.client, "copies")
        for partition in range(2):
            copied = copies[TopicPartition("copies", partition)]
            assert copied == sources[TopicPartition("orders", partition)]


async def test_a_part_of_a_topic_is_copied(open_cluster):
    async with open_cluster() as c:
        values = {
            "source": "orders",
            "topic": "copies",
            "partitions": "1",
            "from_time": "1970-01-01T00:00:02",
            "until_offset": 4,
            "most": 2,
        }
        plan = await prepared(c, "copy-records", **values)
        assert plan.lines[-1] == "partition 1: offsets 1 to 3"
        assert plan.notes == ()
        assert await plan.apply() == "2 records copied from orders to copies"
        copies = await records_of(c.client, "copies")
        found = [row.value for rows in copies.values() for row in rows]
        assert sorted(value or b"" for value in found) == [b"v1", b"v2"]


async def test_a_copy_to_a_later_offset_names_the_end(open_cluster):
    async with open_cluster() as c:
        values = {"source": "orders", "topic": "copies", "partitions": "1", "until_offset": 99}
        plan = await prepared(c, "copy-records", **values)
        assert plan.lines[-1] == "partition 1: offsets 0 to the end"
        assert plan.notes == ("partition 1: offsets 0 to 4",)


async def test_a_copy_that_is_stopped_keeps_what_it_has_copied(open_cluster, monkeypatch):
    async with open_cluster() as c:
        plan = await prepared(c, "copy-records", source="orders", topic="copies")
        is_written, write = asyncio.Event(), TopicWriter.write

        async def write_once(writer: TopicWriter, records: Any) -> None:
            if is_written.is_set():
                await asyncio.Event().wait()  # until the copy is stopped
            await write(writer, records)
            is_written.set()

        monkeypatch.setattr(TopicWriter, "write", write_once)
        copy = asyncio.ensure_future(plan.apply())
        await is_written.wait()
        copy.cancel()
        await asyncio.wait([copy])
        assert copy.cancelled()
        assert plan.progress is not None
        copied = int(plan.progress().partition(" ")[0])
        rows = (await records_of(c.client, "copies")).values()
        assert 0 < copied == sum(map(len, rows)) < 10


def fetched(*, first: int = 0, code: int = 0, end: int = 20) -> Any:
    """Return a row of a FetchResponse, with a batch of one record if it has no error."""
    records = bytearray() if code else bytearray(batch(b"%d" % first))
    if records:
        records[:8] = first.to_bytes(8)
    return SimpleNamespace(
        error_code=code,
        records=bytes(records),
        aborted_transactions=[],
        last_stable_offset=end,
        high_watermark=end,
    )


@pytest.mark.parametrize("end", [1, 5, 10])
async def test_a_copy_ends_in_a_gap_that_compaction_left(open_cluster, monkeypatch, end):
    async def fetch(_fetcher: PartitionFetcher, _place: TopicPartition, offset: int) -> Any:
        return fetched(first=0 if offset == 0 else 10)

    monkeypatch.setattr(PartitionFetcher, "fetch", fetch)
    async with open_cluster() as c:
        ranges = [CopyRange(TopicPartition("orders", 0), 0, end)]
        plan = CopyPlan("orders", "copies", ranges, keeps_partitions=False, most=None)
        copier = RecordCopier(c.client, plan)
        await copier.run()
        assert (copier.copied, copier.passed) == (1, end)


async def test_a_copy_goes_on_when_leaders_have_moved(open_cluster, monkeypatch):
    rows = [fetched(code=6)] * 8 + [ClientError("broker 1 does not respond"), fetched()]

    async def fetch(*_: Any, **__: Any) -> Any:
        row = rows.pop(0)
        if isinstance(row, ClientError):
            raise row
        return [(None, row)]

    monkeypatch.setattr(one_partition, "fetch_from", fetch)
    async with open_cluster() as c:
        ranges = [CopyRange(TopicPartition("orders", 0), 0, 1)]
        plan = CopyPlan("orders", "copies", ranges, keeps_partitions=True, most=None)
        copier = RecordCopier(c.client, plan)
        await copier.run()
        assert (copier.copied, rows) == (1, [])


async def test_a_copy_that_fails_says_how_far_it_came(open_cluster, monkeypatch):
    rows = [fetched(), fetched(code=29)]

    async def fetch(*_: Any, **__: Any) -> Any:
        return [(None, rows.pop(0))]

    monkeypatch.setattr(one_partition, "fetch_from", fetch)
    async with open_cluster() as c:
        ranges = [CopyRange(TopicPartition("orders", 1), 0, 5)]
        plan = CopyPlan("orders", "copies", ranges, keeps_partitions=True, most=None)
        with pytest.raises(ClientError, match="1 record copied before, of partition 1 at least up"):
            await RecordCopier(c.client, plan).run()


async def test_aborted_and_control_records_are_not_copied(open_cluster):
    async with open_cluster() as c:

        async def ask(key: Any, version: int, body: Any) -> Any:
            return await c.client.request_of(1, key, body, at_most=version)

        await create_topics(c.client, {"written": 1}, configs={})
        producer = TransactionalProducer("app")
        await producer.begin(ask)
        for is_commit in (False, True):
            for request in producer.appending({("written", 0): [b"one", b"two"]}):
                await ask(*request)
            producer.ended(await ask(*producer.end(is_commit=is_commit)))
        for request in producer.appending({("written", 0): [b"open"]}):
            await ask(*request)
        plan = await prepared(c, "copy-records", source="written", topic="copies")
        assert plan.notes == ("partition 0: offsets 0 to 5",)
        assert await plan.apply() == "2 records copied from written to copies"


async def test_a_compacted_topic_refuses_records_without_keys(open_cluster):
    async with open_cluster() as c:
        with pytest.raises(ClientError, match="INVALID_RECORD"):
            await made(c, "produce-record", topic="latest", value="v")
