"""Scans of random log files: every codec, transactions, compaction, headers, splits.

The rows are compared with the log's own readers.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.property.compaction_workload import DIRECTORY, Workload
from tests.support.harness.budget import SharedBudget
from tests.support.records.column_rows import rows_of
from tests.support.storage.compaction import batches_of, committed_records_of, records_of
from wirebroker.codecs.records.batch import iterate_records
from wirebroker.segments.log_directories import LogDirectories
from wirebroker.segments.offset_ranges import RowRange, batch_ranges, split
from wirebroker.segments.options import parse_options
from wirebroker.segments.row_scan import ScanOptions, scan_rows

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

    import pytest

    from wirebroker.codecs.records.record import Record

WISH = ScanOptions(
    keys=True,
    values=True,
    headers=True,
    includes_control=False,
    is_committed=False,
    fail_on_data_loss=True,
)


def a_log(random: Random, folder: Path) -> Workload:
    """Fill a log and copy its files into a directory, like an archive."""
    workload = Workload(random)
    for _ in range(random.choice((1, 20, 150))):
        workload.step()
        if random.random() < 0.02:
            workload.compact()
    directory = folder / "topic-0"
    directory.mkdir(parents=True)
    workload.log.producer_state.take_snapshot()
    for name in workload.files.list_directory(DIRECTORY):
        content = workload.files.read_file(f"{DIRECTORY}/{name}")
        (directory / name).write_bytes(content)
    return workload


def expected(records: list[Record], start: int, end: int) -> list[tuple[Any, ...]]:
    return [
        (
            record.offset,
            record.timestamp,
            record.key,
            record.value,
            [(name.encode(), value) for name, value in record.headers],
        )
        for record in records
        if start <= record.offset < end
    ]


def read(ranges: list[RowRange], *, is_committed: bool) -> list[tuple[Any, ...]]:
    scan_request = WISH._replace(is_committed=is_committed)
    return [
        row
        for row_range in ranges
        for rows in scan_rows(row_range, scan_request)
        for row in rows_of(rows.columns)
    ]


def test_rows_of_random_logs_equal_the_records_of_log_readers(
    pytestconfig: pytest.Config, tmp_path: Path
) -> None:
    budget = SharedBudget(pytestconfig, seconds=3)
    random = budget.random
    for number, _ in enumerate(budget.rounds()):
        folder = tmp_path / str(number)
        log = a_log(random, folder).log
        for is_committed in (False, True):
            end = log.last_stable_offset if is_committed else log.log_end_offset
            start = random.choice((0, 0, random.randrange(end + 1)))
            source_options = {
                "path": str(folder),
                "subscribe": "topic",
                "startingOffsets": json.dumps({"topic": {"0": start}}),
                "kafka.isolation.level": "read_committed" if is_committed else "read_uncommitted",
                "minPartitions": random.choice("129"),
            }
            options = parse_options(source_options, is_stream=False)
            ranges = batch_ranges(LogDirectories(options.directories), options)
            assert sum(row_range.size for row_range in ranges) == end - start, budget.seed
            model = committed_records_of(log) if is_committed else records_of(log)
            rows = read(split(ranges, options), is_committed=is_committed)
            assert rows == expected(model, start, end), (budget.seed, source_options)


def test_offsets_for_times_equal_those_of_the_log(
    pytestconfig: pytest.Config, tmp_path: Path
) -> None:
    budget = SharedBudget(pytestconfig, seconds=1)
    random = budget.random
    for number, _ in enumerate(budget.rounds()):
        folder = tmp_path / str(number)
        log = a_log(random, folder).log
        # Like ListOffsets, this finds markers as well.
        records = [r for header, batch in batches_of(log) for r in iterate_records(batch, header)]
        if not records:
            continue
        options = parse_options({"path": str(folder), "subscribe": "topic"}, is_stream=False)
        (partition,) = LogDirectories(options.directories).find(options.wants).values()
        log_on_disk = partition.log()
        for _ in range(10):
            timestamp = random.choice(records).timestamp + random.choice((-1, 0, 1, 1000))
            expected_offset = next((r.offset for r in records if r.timestamp >= timestamp), None)
            offset = log_on_disk.offset_for_time(timestamp, log.log_end_offset)
            assert offset == expected_offset, (budget.seed, timestamp)
