"""Records through a user's function: where its results go, and its exceptions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from wirebroker.client.records.partitioning import partition_for
from wirebroker.pipelines.job.errors import JobFileError
from wirebroker.pipelines.job.job_folder import BatchPlan
from wirebroker.pipelines.replay.record_rows import RecordOptions, RecordPlacer
from wirebroker.pipelines.replay.user_function import InputRecord, load_function, unchanged

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.pipelines.rows.placed_rows import PlacedRow

PLAN = BatchPlan(0, 4, 1, {})
WISH = RecordOptions("to", "dead", "job", keeps_partition=False, stops=False)
RECORD = InputRecord(b"k", b"v", [("h", None)], 7, "from", 2, 99)


def place(function: Callable[[InputRecord], Any], **changes: Any) -> list[PlacedRow]:
    return RecordPlacer(WISH._replace(**changes), PLAN, function).place(RECORD)


def test_record_is_partitioned_by_key_or_as_in_the_source():
    (row,) = place(unchanged)
    partition = partition_for(b"k", 4)
    headers = [{"key": "h", "value": None}]
    assert row == (
        *(partition, "from-00002", 99, 0, "to", partition, b"k", b"v", 7, headers),
        *(False, False),
    )
    assert place(unchanged, keeps_partition=True)[0].partition == 2


def test_function_may_return_none_one_or_many_records():
    assert place(lambda _: None) == []
    assert place(lambda _: []) == []
    rows = place(lambda record: [record._replace(value=b"%d" % number) for number in range(3)])
    assert [(row.line, row.value) for row in rows] == [(0, b"0"), (1, b"1"), (2, b"2")]


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda _: 1 // 0, "ZeroDivisionError"),
        (lambda _: "x", "the function returned str, not None, a record or a list of them"),
        (lambda record: record._replace(value="x"), "the value returned is str, not bytes"),
        (lambda record: [record, 7], "the function returned list"),
        (lambda record: record._replace(headers=[("h", "x")]), "not pairs of str and bytes"),
        (lambda record: record._replace(headers=[(b"h", b"x")]), "not pairs of str and bytes"),
        (lambda record: record._replace(headers=[("\ud83d", b"x")]), "not pairs of str and bytes"),
        (lambda record: record.headers.append(("h2", "x")) or record, "not pairs of str and bytes"),
        (lambda record: record._replace(timestamp="now"), "the timestamp returned is 'now'"),
        (lambda record: record._replace(timestamp=-2), "the timestamp returned is -2"),
        (lambda record: record._replace(timestamp=0), "has the time 0"),
    ],
)
def test_failing_function_causes_a_dead_letter_or_an_error(function, reason):
    (row,) = place(function)
    headers = {header["key"]: header["value"] for header in row.headers}
    assert set(headers) == {"h", "reason", "job", "place", "timestamp"}
    assert reason in headers["reason"].decode()
    assert (headers["place"], headers["job"], headers["h"]) == (b"from-2@99", b"job", None)
    # It has the current time: retention would delete a dead letter with an old timestamp.
    assert (row.timestamp, headers["timestamp"]) == (None, b"7")
    assert (row.is_dead, row.topic, row.partition, row.key, row.value) == (
        *(True, "dead", 0, b"k", b"v"),
    )
    with pytest.raises(JobFileError, match="the function fails for from-2@99"):
        place(function, stops=True)


def test_partition_missing_in_the_target_topic_is_reported():
    placer = RecordPlacer(WISH._replace(keeps_partition=True), PLAN, unchanged)
    (row,) = placer.place(RECORD._replace(partition=4))
    assert row.is_dead
    assert row.headers[1]["value"] == b"there is no partition 4: the topic has 4"


def test_function_is_loaded_from_its_file(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text("def upper(record):\n    return record._replace(value=record.value.upper())\n")
    assert place(load_function(f"{path}:upper"))[0].value == b"V"
    assert load_function("") is unchanged
    with pytest.raises(JobFileError, match=r"no function uper; did you mean upper\?"):
        load_function(f"{path}:uper")
    with pytest.raises(JobFileError, match="there is no file"):
        load_function("none.py:upper")
    path.write_text("1 / 0")
    with pytest.raises(JobFileError, match="ZeroDivisionError"):
        load_function(f"{path}:upper")
