"""A log that is searched in a thread while it goes on."""

from __future__ import annotations

import threading

from tests.support.batches import TIMESTAMP_MS, batch
from wirebroker.config import Config
from wirebroker.storage.files import Files
from wirebroker.storage.log import Log
from wirebroker.storage.log_read import DetachedLog


def make_log(path, **settings: str) -> Log:
    overrides = {name.replace("_", "."): value for name, value in settings.items()}
    log = Log(
        str(path),
        Files(),
        topic="t",
        partition=0,
        topic_id=bytes(16),
        settings=Config({}).topic_settings(overrides),
    )
    log.load(recovery_point=0, clean=True, now_ms=TIMESTAMP_MS)
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
        found = detached.offset_for_timestamp(TIMESTAMP_MS + offset, up_to_offset=1_000)
        assert found is not None
        assert found.offset == offset
    assert detached.offset_for_timestamp(TIMESTAMP_MS + 100, up_to_offset=1_000) is None
    newest = detached.offset_of_max_timestamp(up_to_offset=1_000)
    assert newest is not None
    assert newest.offset == 99
    assert len(list(detached.segments)) < len(log.segments)


def test_searches_in_a_thread_do_not_disturb_readers_nor_appends(tmp_path):
    log = make_log(tmp_path, internal_segment_bytes="20000", index_interval_bytes="200")
    for offset in range(500):
        append(log, offset)
    detached = DetachedLog.of(log)
    wrong: list[int] = []

    def search() -> None:
        for offset in range(0, 500, 3):
            found = detached.offset_for_timestamp(TIMESTAMP_MS + offset, up_to_offset=500)
            if found is None or found.offset != offset:
                wrong.append(offset)

    thread = threading.Thread(target=search)
    thread.start()
    reads = 0
    while thread.is_alive() or reads < 200:
        offset = reads * 7 % 500
        found = log.read(offset, 60, up_to_offset=log.high_watermark, min_one=True)
        assert found.slice is not None
        assert int.from_bytes(found.slice.read()[:8]) == offset
        append(log, log.log_end_offset)
        reads += 1
    thread.join()
    assert wrong == []
    log.check()
