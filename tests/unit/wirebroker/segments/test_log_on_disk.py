"""Logs on disk that a broker changes while they are read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.storage.compaction import append as append_as_it_is
from tests.support.storage.compaction import append_marker
from tests.unit.storage.log_kit import NOW, append, batch, make_log
from tests.unit.wirebroker.segments.segments_kit import (
    offsets_in,
    offsets_of,
    options_for,
    ranges_for,
    wish_for,
)
from wirebroker.codecs.errors import KafkaError
from wirebroker.inspect.views.read_only_files import ReadOnlyFiles
from wirebroker.segments.errors import DataLossError, OptionError
from wirebroker.segments.log_on_disk import LogOnDisk
from wirebroker.segments.loss_report import take_losses
from wirebroker.segments.row_scan import scan_rows
from wirebroker.storage.compaction.segment_swap import (
    begin_swap,
    enter_swapped,
    finish_swap,
    old_segments,
    set_aside_old,
)
from wirebroker.storage.files import Files
from wirebroker.storage.recovery.log_recovery import load_log

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wirebroker.storage.log.log import Log


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    """Return an empty log, topic-0, of small segments."""
    (tmp_path / "topic-0").mkdir()
    made = make_log(tmp_path / "topic-0", segment_bytes=300, index_interval_bytes=100)
    load_log(made, recovery_point=0, clean=False, now_ms=NOW, log_start_offset=0)
    yield made
    made.close(clean=False)


def fill(log: Log, count: int) -> None:
    for number in range(count):
        append(log, batch(value=b"v%d" % number, timestamp_ms=NOW + number))


def test_partially_written_batch_is_not_read(log: Log, tmp_path: Path) -> None:
    fill(log, 3)
    size_before = log.segments.active.log.size()
    path = tmp_path / "topic-0" / f"{log.segments.active.base_offset:020d}.log"
    path.write_bytes(path.read_bytes() + bytes(batch())[:70])
    assert path.stat().st_size > size_before
    assert offsets_of(tmp_path) == [0, 1, 2]


def test_zeros_after_the_last_batch_are_ignored(log: Log, tmp_path: Path) -> None:
    fill(log, 3)
    path = tmp_path / "topic-0" / f"{log.segments.active.base_offset:020d}.log"
    path.write_bytes(path.read_bytes() + bytes(1000))
    assert offsets_of(tmp_path) == [0, 1, 2]


def test_reading_ends_at_the_checkpointed_high_watermark(log: Log, tmp_path: Path) -> None:
    fill(log, 9)
    (tmp_path / "replication-offset-checkpoint").write_text("0\n1\ntopic 0 7\n")
    assert offsets_of(tmp_path) == list(range(7))
    with pytest.raises(OptionError, match="topic-0 can be read up to offset 7, not to 8"):
        offsets_of(tmp_path, endingOffsets='{"topic": {"0": 8}}')


def test_reading_starts_at_the_log_start_offset(log: Log, tmp_path: Path) -> None:
    fill(log, 9)
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\ntopic 0 4\n")
    assert offsets_of(tmp_path) == list(range(4, 9))
    named = '{"topic": {"0": 2}}'
    with pytest.raises(DataLossError, match="starts at offset 4"):
        offsets_of(tmp_path, startingOffsets=named)
    report = tmp_path / "lost"
    offsets = offsets_of(
        tmp_path, startingOffsets=named, failOnDataLoss="false", lossReport=str(report)
    )
    assert offsets == list(range(4, 9))
    assert take_losses(report) == [("topic", 0, 2, 4)]
    assert take_losses(report) == []


def test_deleted_records_of_a_remaining_batch_are_not_read(log: Log, tmp_path: Path) -> None:
    append(log, batch(count=9))
    ranges = ranges_for(options_for(tmp_path))
    location = ranges[0].place._replace(log_start_offset=4)
    offsets = offsets_in(
        [ranges[0]._replace(place=location)],
        wish_for(options_for(tmp_path, failOnDataLoss="false")),
    )
    assert offsets == list(range(4, 9))


def test_offsets_and_timestamps_limit_the_range(log: Log, tmp_path: Path) -> None:
    fill(log, 20)
    offsets = offsets_of(tmp_path, startingTimestamp=str(NOW + 5), endingTimestamp=str(NOW + 12))
    assert offsets == list(range(5, 12))
    offsets = offsets_of(tmp_path, startingTimestamp=str(NOW + 18), endingTimestamp=str(NOW + 99))
    assert offsets == [18, 19]
    late = {"startingTimestamp": str(NOW + 20)}
    with pytest.raises(OptionError, match="no record at or after timestamp"):
        offsets_of(tmp_path, **late)
    assert offsets_of(tmp_path, **late, startingOffsetsByTimestampStrategy="latest") == []


def test_batches_before_the_start_timestamp_are_skipped(log: Log, tmp_path: Path) -> None:
    fill(log, 20)
    options = options_for(tmp_path)
    offsets = offsets_in(ranges_for(options), wish_for(options, earliest=NOW + 15))
    assert offsets == list(range(15, 20))


def test_open_transaction_ends_the_committed_range(log: Log, tmp_path: Path) -> None:
    fill(log, 2)
    producer_fields: dict[str, Any] = {
        "producer_id": 7,
        "producer_epoch": 0,
        "is_transactional": True,
    }
    append_as_it_is(log, bytearray(batch(base_sequence=0, **producer_fields)), now_ms=NOW)
    append(log, batch(count=2))
    assert offsets_of(tmp_path) == [0, 1, 2, 3, 4]
    assert offsets_of(tmp_path, isolation="read_committed") == [0, 1]
    log.producer_state.take_snapshot()
    assert offsets_of(tmp_path, isolation="read_committed") == [0, 1]
    append_marker(log, 7, is_commit=False, now_ms=NOW)
    assert offsets_of(tmp_path, isolation="read_committed") == [0, 1, 3, 4]
    assert offsets_of(tmp_path) == [0, 1, 2, 3, 4]
    assert offsets_of(tmp_path, includeControlRecords="true") == [0, 1, 2, 3, 4, 5]
    # Records above the high watermark are not visible.
    (tmp_path / "replication-offset-checkpoint").write_text("0\n1\ntopic 0 5\n")
    assert offsets_of(tmp_path, isolation="read_committed") == [0, 1]


def test_records_deleted_before_the_read_are_reported(log: Log, tmp_path: Path) -> None:
    fill(log, 20)
    assert len(log.segments) > 3
    options = options_for(tmp_path)
    ranges = ranges_for(options)
    first_left = remove_two_segments(log)
    with pytest.raises(DataLossError, match=f"from offset 0 up to {first_left} no longer exist"):
        offsets_in(ranges, wish_for(options))
    report = tmp_path / "lost"
    scan_options = wish_for(options, fail_on_data_loss=False, loss_report=str(report))
    for _ in range(2):  # a repeated batch
        assert offsets_in(ranges, scan_options) == list(range(first_left, 20))
    assert take_losses(report) == [("topic", 0, 0, first_left)]


def test_records_deleted_during_the_read_are_reported(log: Log, tmp_path: Path) -> None:
    fill(log, 20)
    log_on_disk = LogOnDisk(str(tmp_path / "topic-0"))
    reading = log_on_disk.batches(0, 20, fail_on_data_loss=True)
    header, _ = next(reading)
    assert header.base_offset == 0
    remove_two_segments(log)
    with pytest.raises(DataLossError):
        list(reading)


def test_segments_rolled_during_the_read_are_found(log: Log, tmp_path: Path) -> None:
    fill(log, 3)
    log_on_disk = LogOnDisk(str(tmp_path / "topic-0"))
    fill(log, 17)
    base_offsets = [
        header.base_offset for header, _ in log_on_disk.batches(0, 20, fail_on_data_loss=True)
    ]
    assert base_offsets == list(range(20))


def test_segments_are_readable_at_each_step_of_a_compaction_swap(log: Log, tmp_path: Path) -> None:
    fill(log, 20)
    before = offsets_of(tmp_path)
    files, segments = Files(), [segment.base_offset for segment in log.segments]
    first = tmp_path / "topic-0" / f"{0:020d}"
    for suffix in (".log", ".index", ".timeindex"):  # all files are retained
        copied = Path(f"{first}{suffix}").read_bytes()
        Path(f"{first}{suffix}.cleaned").write_bytes(copied)
    old = old_segments(log, (0,))
    assert old is not None
    assert offsets_of(tmp_path) == before
    begin_swap(files, log.directory, 0)
    assert offsets_of(tmp_path) == before
    new = enter_swapped(log, files, old)
    set_aside_old(log, old[0])
    log_on_disk = LogOnDisk(str(tmp_path / "topic-0"))
    assert log_on_disk.base_offsets == segments
    assert offsets_of(tmp_path) == before
    reading = log_on_disk.batches(0, 20, fail_on_data_loss=True)
    next(reading)
    finish_swap(log, files, new)
    assert [header.base_offset for header, _ in reading] == list(range(1, 20))
    assert offsets_of(tmp_path) == before


def test_listing_that_misses_a_file_is_repeated(
    log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(log, 20)
    names = sorted(path.name for path in (tmp_path / "topic-0").iterdir())
    listings = [[name for name in names if name != f"{0:020d}.log"]]

    def list_directory(_files: Files, _path: str) -> list[str]:
        return listings.pop() if listings else names

    monkeypatch.setattr(ReadOnlyFiles, "list_directory", list_directory)
    assert LogOnDisk(str(tmp_path / "topic-0")).start_offset == 0


def test_renamed_file_keeps_its_size(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"four")
    file = ReadOnlyFiles().data(str(path))
    assert file.read_at(0, 1) == b"f"
    path.rename(tmp_path / "g")
    assert file.size() == 4
    assert ReadOnlyFiles().data(str(path)).size() == 0


def test_end_offset_is_searched_again_if_the_last_segment_is_gone(log: Log, tmp_path: Path) -> None:
    fill(log, 3)
    log_on_disk = LogOnDisk(str(tmp_path / "topic-0"))
    log_on_disk.base_offsets.append(100)  # from an older listing
    assert log_on_disk.find_end_offset() == 3


def test_truncated_log_is_reported_as_data_loss(log: Log, tmp_path: Path) -> None:
    fill(log, 20)
    options = options_for(tmp_path)
    ranges = ranges_for(options)
    log.set_high_watermark(0)
    log.truncate_to(15, now_ms=NOW)
    with pytest.raises(DataLossError, match="from offset 15 up to 20"):
        offsets_in(ranges, wish_for(options))


def test_a_wrong_checksum_is_an_error(log: Log, tmp_path: Path) -> None:
    fill(log, 20)
    path = tmp_path / "topic-0" / f"{0:020d}.log"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(KafkaError, match="the checksum of the batch at position"):
        offsets_of(tmp_path)


def test_damaged_or_missing_indexes_only_cost_time(log: Log, tmp_path: Path) -> None:
    fill(log, 20)
    folder = tmp_path / "topic-0"
    for number, path in enumerate(sorted(folder.glob("*index"))):
        if number % 2:
            path.unlink()
        else:
            path.write_bytes(b"\0\0\0\1\0\0\0\5" * 3)
    assert offsets_of(tmp_path, startingOffsets='{"topic": {"0": 7}}') == list(range(7, 20))


def test_starting_offsets_must_name_exactly_the_partitions(log: Log, tmp_path: Path) -> None:
    fill(log, 2)
    with pytest.raises(OptionError, match=r"must name all partitions; \('topic', 0\) is missing"):
        offsets_of(tmp_path, startingOffsets='{"topic": {}}')
    with pytest.raises(OptionError, match=r"names \('topic', 1\), which does not exist"):
        offsets_of(tmp_path, startingOffsets='{"topic": {"0": 0, "1": 0}}')


def test_missing_topic_or_directory_is_refused(log: Log, tmp_path: Path) -> None:
    fill(log, 1)
    with pytest.raises(OptionError, match="the topic other is not in the directory"):
        offsets_of(tmp_path, subscribe="topic,other")
    with pytest.raises(OptionError, match="there is no directory"):
        offsets_of(tmp_path / "elsewhere")


def test_large_values_are_split_into_parts(tmp_path: Path) -> None:
    (tmp_path / "topic-0").mkdir()
    log = make_log(tmp_path / "topic-0")
    load_log(log, recovery_point=0, clean=False, now_ms=NOW, log_start_offset=0)
    for _ in range(12):
        append(log, batch(value=bytes(1_000_000)))
    options = options_for(tmp_path)
    parts = list(scan_rows(ranges_for(options)[0], wish_for(options)))
    assert [part.columns.row_count for part in parts] == [9, 3]
    log.close(clean=False)


def remove_two_segments(log: Log) -> int:
    first_left = log.segments[2].base_offset
    for segment in list(log.segments)[:2]:
        segment.remove()
    return first_left
