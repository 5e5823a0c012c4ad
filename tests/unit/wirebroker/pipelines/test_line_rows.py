"""Destinations of lines: the partition that Java's producer chooses, or dead letters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from wirebroker.client.records.partitioning import partition_for
from wirebroker.pipelines.ingest.line_rows import Line, LinePlacer, PlacingOptions
from wirebroker.pipelines.job.job_folder import BatchPlan
from wirebroker.pipelines.rows.typed_rows import parse_schema

if TYPE_CHECKING:
    from wirebroker.pipelines.rows.placed_rows import PlacedRow

PLAN = BatchPlan(3, 6, 2, {})
COLUMNS = parse_schema({"id": "long", "who": "string?", "at": "timestamp?"})
OPTIONAL = {"who": "string?", "at": "timestamp?", "n": "long?"}
WISH = PlacingOptions(
    *("json", COLUMNS, False, ",", "who", "at", False, 1_000, False),
    *("job", "topic", "dead"),
)


def place(content: bytes, **changes: Any) -> PlacedRow | None:
    return LinePlacer(WISH._replace(**changes), PLAN).place(Line(content, "file", 0, 9))


def placed(content: bytes, **changes: Any) -> PlacedRow:
    row = place(content, **changes)
    assert row is not None
    return row


def reason_of(row: PlacedRow) -> str:
    assert row.is_dead
    headers = {header["key"]: header["value"].decode() for header in row.headers}
    assert headers.keys() == {"reason", "file", "job"}
    return headers["reason"]


def test_row_is_partitioned_by_key_with_its_timestamp():
    row = placed(b'{"who":"kim", "id":1, "at":1769857200250}')
    partition = partition_for(b"kim", 6)
    assert row == (
        *(partition, "file", 0, 9, "topic", partition, b"kim"),
        b'{"id":1,"who":"kim","at":"2026-01-31T11:00:00.250000Z"}',
        *(1769857200250, [], False, False),
    )
    assert placed(b'{"id":  1}', is_raw=True).value == b'{"id":  1}'
    assert placed(b"1,kim,", format="csv").key == b"kim"


def test_row_without_a_key_always_goes_to_the_same_partition():
    rows = [placed(b'{"id":%d}' % number) for number in range(100)]
    assert {row.key for row in rows} == {None}
    assert {row.partition for row in rows} == set(range(6))
    assert rows == [placed(b'{"id":%d}' % number) for number in range(100)]


def test_bad_rows_become_dead_letters_with_the_reason():
    row = placed(b'{"id":"x"}')
    assert reason_of(row) == "field id is not of type long: 'x'"
    assert (row.topic, row.key, row.value, row.timestamp) == ("dead", None, b'{"id":"x"}', None)
    assert row.partition in (0, 1)
    assert row.slice < 6
    large = placed(b'{"id":1,"who":"%s"}' % (b"x" * 100_000))
    assert reason_of(large).startswith("is too large: 200")
    assert large.value is not None
    assert len(large.value) == 64 << 10
    assert "librdkafka sends as now" in reason_of(placed(b'{"id":1,"at":0}'))
    assert "before 1970" in reason_of(placed(b'{"id":1,"at":-1}'))


@pytest.mark.parametrize(("line", "kind"), [(b"", "json"), (b" \r", "csv"), (b"id,who,at", "csv")])
def test_empty_lines_and_csv_headers_are_no_rows(line, kind):
    assert place(line, format=kind) is None


def test_line_of_whitespace_delimiters_is_a_row():
    row = place(b"\t\t", format="csv", delimiter="\t", columns=parse_schema(OPTIONAL), key="who")
    assert row is not None
    assert row.value == b'{"who":null,"at":null,"n":null}'
