"""Searches of a log in a thread during appends."""

from __future__ import annotations

import threading

import pytest

from tests.support.records.batches import TIMESTAMP_MS, batch
from wirebroker.base.clock import in_one_go
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.config import Config
from wirebroker.storage.files import Files
from wirebroker.storage.log.log import Log
from wirebroker.storage.log.search_by_time import DetachedLog
from wirebroker.storage.recovery.log_recovery import load_log


def make_log(path, files: Files | None = None, **settings: str) -> Log:
    overrides = {name.replace("_", "."): value for name, value in settings.items()}
    log = Log(
        str(path),
        files or Files(),
        topic="t",
        partition=0,
        topic_id=bytes(16),
        settings=Config({}).topic_settings(overrides),
    )
    load_log(log, recovery_point=0, clean=True, now_ms=TIMESTAMP_MS)
    return log


def append(log: Log, offset: int) -> None:
    records = memoryview(bytearray(batch(b"x" * 50, timestamp_ms=TIMESTAMP_MS + offset)))
    log.append_as_leader(records, leader_epoch=0, now_ms=TIMESTAMP_MS)
    log.set_high_watermark(log.log_end_offset)


def test_a_detached_log_stays_as_it_was(tmp_path):
    log = make_log(tmp_path, internal_segment_bytes="5000", index_interval_bytes="200")
    for offset in range(100):
        append(log, offset)
    detached = DetachedLog.of(log)
    for offset in range(100, 300):
        append(log, offset)
    for offset in (0, 1, 57, 99):
        match = in_one_go(detached.offset_for_timestamp(TIMESTAMP_MS + offset, up_to_offset=1_000))
        assert match is not None
        assert match.offset == offset
    assert in_one_go(detached.offset_for_timestamp(TIMESTAMP_MS + 100, up_to_offset=1_000)) is None
    newest = in_one_go(detached.offset_of_max_timestamp(up_to_offset=1_000))
    assert newest is not None
    assert newest.offset == 99
    assert len(list(detached.segments)) < len(log.segments)


def test_after_one_search_the_next_opens_no_segment_but_the_one_with_the_hit(tmp_path):
    log = make_log(tmp_path, internal_segment_bytes="5000", index_interval_bytes="200")
    for offset in range(300):
        append(log, offset)
    log.close(clean=True)
    files = Files()
    again = make_log(tmp_path, files=files)
    assert len(again.segments) > 5
    detached = DetachedLog.of(again)
    assert (
        in_one_go(detached.offset_for_timestamp(TIMESTAMP_MS + 1_000, up_to_offset=1_000)) is None
    )
    assert len(detached.learned) == len(again.segments) - 1
    detached.note_learned()
    files.close_all()
    detached = DetachedLog.of(again)
    match = in_one_go(detached.offset_for_timestamp(TIMESTAMP_MS + 250, up_to_offset=1_000))
    assert match is not None
    assert match.offset == 250
    assert detached.learned == []
    assert files.open_file_count == 3
    newest = in_one_go(DetachedLog.of(again).offset_of_max_timestamp(up_to_offset=1_000))
    assert newest is not None
    assert newest.offset == 299


def test_truncation_overrides_learned_segment_timestamps(tmp_path):
    log = make_log(tmp_path, internal_segment_bytes="5000", index_interval_bytes="200")
    for offset in range(300):
        append(log, offset)
    log.close(clean=True)
    again = make_log(tmp_path)
    detached = DetachedLog.of(again)
    assert (
        in_one_go(detached.offset_for_timestamp(TIMESTAMP_MS + 1_000, up_to_offset=1_000)) is None
    )
    again.truncate_to(10, now_ms=TIMESTAMP_MS)
    detached.note_learned()
    (segment,) = again.segments
    assert segment.known_max_timestamp == TIMESTAMP_MS + 9
    match = in_one_go(
        DetachedLog.of(again).offset_for_timestamp(TIMESTAMP_MS + 10, up_to_offset=1_000)
    )
    assert match is None


def test_search_of_a_log_that_was_truncated_meanwhile_ends_with_a_kafka_error(tmp_path):
    log = make_log(tmp_path, index_interval_bytes="200")
    for offset in range(1_500):
        append(log, offset)
    detached = DetachedLog.of(log)
    log.truncate_to(10, now_ms=TIMESTAMP_MS)
    for offset in range(20, 1_500, 50):
        with pytest.raises(KafkaError) as error:
            in_one_go(detached.offset_for_timestamp(TIMESTAMP_MS + offset, up_to_offset=2_000))
        assert error.value.code is ErrorCode.CORRUPT_MESSAGE


def test_searches_in_a_thread_do_not_disturb_readers_nor_appends(tmp_path):
    log = make_log(tmp_path, internal_segment_bytes="20000", index_interval_bytes="200")
    for offset in range(500):
        append(log, offset)
    detached = DetachedLog.of(log)
    wrong: list[int] = []

    def search() -> None:
        for offset in range(0, 500, 3):
            match = in_one_go(
                detached.offset_for_timestamp(TIMESTAMP_MS + offset, up_to_offset=500)
            )
            if match is None or match.offset != offset:
                wrong.append(offset)

    thread = threading.Thread(target=search)
    thread.start()
    reads = 0
    while thread.is_alive() or reads < 200:
        offset = reads * 7 % 500
        read_result = log.read(offset, 60, up_to_offset=log.high_watermark, min_one=True)
        assert read_result.slice is not None
        assert int.from_bytes(read_result.slice.read()[:8]) == offset
        append(log, log.log_end_offset)
        reads += 1
    thread.join()
    assert wrong == []
    log.check()
