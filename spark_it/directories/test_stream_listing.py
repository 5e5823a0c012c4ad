"""A stream over log directories lists them once in each call."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

from spark_it.tools import session
from tests.unit.storage.log_kit import NOW, append, batch, make_log
from wirebroker.segments.log_directories import LogDirectories
from wirebroker.storage.recovery.log_recovery import load_log

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.long, pytest.mark.java]

PARTITIONS, RECORDS = 5, 4


@pytest.fixture
def listings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    monkeypatch.setattr(sys, "path", [*sys.path, *session.python_folders()])
    for number in range(PARTITIONS):
        (tmp_path / f"topic-{number}").mkdir()
        log = make_log(tmp_path / f"topic-{number}", segment_bytes=300, index_interval_bytes=100)
        load_log(log, recovery_point=0, clean=False, now_ms=NOW, log_start_offset=0)
        for _ in range(RECORDS):
            append(log, batch(timestamp_ms=NOW))
        log.close(clean=True)
    listings: list[Any] = []
    find = LogDirectories.find

    def counted(self: LogDirectories, is_wanted_topic: Any) -> Any:
        listings.append(is_wanted_topic)
        return find(self, is_wanted_topic)

    monkeypatch.setattr(LogDirectories, "find", counted)
    return listings


@pytest.mark.parametrize("options", [{}, {"maxOffsetsPerTrigger": "10"}])
@pytest.mark.parametrize("is_available_now", [False, True])
@pytest.mark.parametrize("known", [{}, {"0": 3}])
def test_each_call_lists_directories_once(
    tmp_path: Path,
    listings: list[Any],
    options: dict[str, str],
    known: dict[str, int],
    *,
    is_available_now: bool,
) -> None:
    from wirebroker.segments.options import parse_options
    from wirebroker.segments.row_schema import COLUMN_TYPES
    from wirebroker.segments.stream import SegmentStreamReader

    source_options = {"path": str(tmp_path), "subscribe": "topic", **options}
    schema: Any = COLUMN_TYPES
    reader = SegmentStreamReader(parse_options(source_options, is_stream=True), schema)
    if is_available_now:
        reader.prepareForTriggerAvailableNow()
        assert len(listings) == 1
        listings.clear()
    start: dict[str, dict[str, Any]] = {"topic": known} if known else {}
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    assert len(listings) == 1
    listings.clear()
    ranges: Any = reader.partitions(start, end)
    assert len(listings) == 1
    planned = sum(range_of_offsets.piece.size for range_of_offsets in ranges)
    expected = PARTITIONS * RECORDS - sum(known.values())
    assert 0 < planned <= 10 if options else planned == expected
