"""Flush, close and load of a log, after a clean stop and after a crash."""

from __future__ import annotations

import os
import struct
import time
from pathlib import Path

import pytest

from tests.unit.storage.log_kit import NOW, append, batch, commit_all, make_log
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.records.batch import build_batch, read_batch_header
from wirebroker.storage.log.producers.producer_replay import ProducerReplay
from wirebroker.storage.recovery.log_recovery import load_log


def bases(log):
    return log.segments.base_offsets


def names(tmp_path):
    return sorted(path.name for path in tmp_path.iterdir())


def test_flushing_moves_the_recovery_point(open_log):
    log = open_log(segment_bytes=200)
    append(log)
    log.flush()
    assert log.recovery_point == 1
    assert log.flush_target() is None
    for _ in range(5):
        append(log)
    target = log.flush_target()
    assert target is not None
    assert target.offset == 6
    assert log.unflushed_count == 5
    append(log)
    target.sync()
    log.mark_flushed(target.offset)
    assert log.recovery_point == 6


def test_clean_stop_leaves_the_same_files_as_kafka(open_log, tmp_path):
    log = open_log()
    for number in range(3):
        append(log, batch(timestamp_ms=NOW + number), leader_epoch=1)
    log.close(clean=True)
    assert names(tmp_path) == [
        f"{0:020d}.index",
        f"{0:020d}.log",
        f"{0:020d}.timeindex",
        f"{3:020d}.snapshot",
        "leader-epoch-checkpoint",
    ]
    assert (tmp_path / f"{0:020d}.timeindex").read_bytes() == struct.pack(">qi", NOW + 2, 2)
    assert (tmp_path / f"{3:020d}.snapshot").stat().st_size == 10


def test_a_cleanly_stopped_log_is_opened_without_reading(open_log, monkeypatch):
    log = open_log(segment_bytes=200)
    for number in range(7):
        append(log, batch(producer_id=5, producer_epoch=0, base_sequence=number))
    log.close(clean=True)
    # Stopped well after the last write; within one clock tick the log would be checked.
    path = Path(log.segments.active.log.path)
    written_ns = path.stat().st_mtime_ns - 10**9
    os.utime(path, ns=(written_ns, written_ns))

    def no_access(*_):
        raise AssertionError("a file was opened")

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", no_access)
        patch.setattr("wirebroker.storage.files.pread", no_access)
        again = make_log(log.directory)
        load_log(again, recovery_point=log.recovery_point, clean=True, now_ms=NOW)
        again.close(clean=True)
    assert again.log_end_offset == again.recovery_point == 7
    commit_all(again)
    retry = append(again, batch(producer_id=5, producer_epoch=0, base_sequence=6))
    assert retry.is_duplicate


def append_behind(path, junk):
    """Modify a closed log's file after its stop, as no broker does."""
    with path.open("ab") as file:
        file.write(junk)
    later_ns = time.time_ns() + 10**9
    os.utime(path, ns=(later_ns, later_ns))


JUNK = {
    "short": b"junk",
    "zeros": bytes(4096),
    "garbage": bytes(range(256)) * 8,
    "half a batch": bytes(batch(value=b"x" * 100))[:-50],
}


@pytest.mark.parametrize("junk", JUNK.values(), ids=JUNK.keys())
@pytest.mark.parametrize("count", [0, 1, 200])
def test_garbage_after_a_cleanly_stopped_log_is_cut(open_log, tmp_path, caplog, junk, count):
    log = open_log()
    for _ in range(count):
        append(log)
    log.close(clean=True)
    path = tmp_path / f"{0:020d}.log"
    written = path.read_bytes()
    append_behind(path, junk)
    again = open_log(recovery_point=count, clean=True)
    assert again.log_end_offset == count
    assert path.read_bytes() == written
    assert f"truncated {len(junk)} bytes" in caplog.text
    append(again, batch(value=b"next"))
    assert path.read_bytes().startswith(written)
    assert read_batch_header(path.read_bytes()[len(written) :]).base_offset == count


def test_a_whole_batch_behind_the_end_is_kept_as_after_a_crash(open_log, tmp_path):
    log = open_log()
    append(log)
    log.close(clean=True)
    append_behind(
        tmp_path / f"{0:020d}.log", bytes(build_batch([(None, b"more", ())], base_offset=1))
    )
    again = open_log(recovery_point=1, clean=True)
    assert again.log_end_offset == 2


def test_damage_below_the_end_of_a_cleanly_stopped_log_cuts_nothing(open_log, tmp_path):
    log = open_log()
    for _ in range(3):
        append(log)
    log.close(clean=True)
    path = tmp_path / f"{0:020d}.log"
    original = path.read_bytes()
    path.write_bytes(original[:100] + bytes(10) + original[110:])
    append_behind(path, b"")
    again = open_log(recovery_point=3, clean=True)
    assert again.log_end_offset == 3
    assert path.stat().st_size == len(original)


def test_clean_stop_without_recovery_point_is_accepted_after_a_check(open_log):
    log = open_log(segment_bytes=200)
    for _ in range(5):
        append(log)
    log.close(clean=True)
    again = open_log(recovery_point=0, clean=True)
    assert again.log_end_offset == 5
    assert again.recovery_point == 5


def test_an_empty_log_survives_a_clean_stop(open_log, tmp_path):
    open_log().close(clean=True)
    again = open_log(clean=True)
    assert again.log_end_offset == 0
    assert names(tmp_path) == [f"{0:020d}.index", f"{0:020d}.log", f"{0:020d}.timeindex"]
    assert append(again).base_offset == 0


def test_after_a_crash_a_small_log_s_files_are_only_read(open_log, tmp_path):
    log = open_log()
    append(log, batch(timestamp_ms=NOW + 7))
    log.close(clean=True)
    again = open_log(recovery_point=1, clean=True)
    append(again, batch(timestamp_ms=NOW))
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in tmp_path.iterdir()}
    recovered = open_log(recovery_point=1, clean=False)
    assert recovered.log_end_offset == 2
    after = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in tmp_path.iterdir()}
    assert after == before


def test_a_time_index_that_a_crash_left_goes_with_the_first_entry_of_the_offset_index(
    open_log, tmp_path
):
    log = open_log(index_interval_bytes=150)
    append(log, batch(timestamp_ms=NOW))
    log.close(clean=True)
    path = tmp_path / f"{0:020d}.timeindex"
    path.write_bytes(struct.pack(">qiqi", NOW + 5000, 0, NOW + 6000, 1))
    recovered = open_log(recovery_point=1, clean=False)
    first = recovered.segments.active
    while not first.offset_index.entry_count:
        append(recovered, batch(timestamp_ms=NOW + recovered.log_end_offset))
    last = recovered.log_end_offset - 1
    assert path.read_bytes() == struct.pack(">qi", NOW + last, last)
    recovered.close(clean=True)
    assert path.read_bytes() == struct.pack(">qi", NOW + last, last)


def test_a_log_that_begins_above_0_survives_a_clean_stop(open_log):
    log = open_log(log_start_offset=40)
    assert (log.log_start_offset, log.log_end_offset) == (40, 40)
    log.close(clean=True)
    again = open_log(log_start_offset=40, recovery_point=40, clean=True)
    assert again.log_end_offset == 40
    assert append(again).base_offset == 40


@pytest.mark.parametrize("clean", [True, False])
def test_producers_whose_records_have_all_gone_are_forgotten_by_a_start(open_log, clean):
    log = open_log()
    for number in range(3):
        append(log, batch(producer_id=5, producer_epoch=0, base_sequence=number))
    log.increment_log_start_offset(3)
    log.flush()
    log.close(clean=clean)
    again = open_log(log_start_offset=3, recovery_point=3, clean=clean)
    assert not again.producer_state.producers
    assert (again.log_start_offset, again.log_end_offset) == (3, 3)
    assert append(again).base_offset == 3


def test_a_log_that_ends_below_its_start_is_emptied(open_log):
    append(open_log(), batch(5))
    log = open_log(log_start_offset=40)
    assert (log.log_start_offset, log.log_end_offset) == (40, 40)
    assert bases(log) == [40]


@pytest.mark.parametrize("lost", [0, 100], ids=["the whole content", "all but one batch"])
def test_deleted_segments_that_a_power_loss_brings_back_damaged_are_removed(
    open_log, tmp_path, lost
):
    log = open_log(segment_bytes=200)
    for _ in range(6):
        append(log)
    assert bases(log) == [0, 2, 4]
    log.close(clean=False)
    for base_offset in (0, 2):  # deleted without being synced
        path = tmp_path / f"{base_offset:020d}.log"
        path.write_bytes(path.read_bytes()[:lost].ljust(500, b"\0"))
    (tmp_path / "leader-epoch-checkpoint").write_bytes(b"")
    again = open_log(recovery_point=4, log_start_offset=4)
    assert bases(again) == [4]
    assert (again.log_start_offset, again.log_end_offset) == (4, 6)
    assert again.leader_epochs.entries == [(0, 4)]
    assert f"{0:020d}.log" not in names(tmp_path)


def test_a_deleted_segment_that_comes_back_alone_is_not_trusted(open_log, tmp_path):
    log = open_log(index_interval_bytes=0)
    for _ in range(4):
        append(log)
    log.close(clean=False)
    path = tmp_path / f"{0:020d}.log"
    path.write_bytes(bytes(100) + path.read_bytes()[100:])
    (tmp_path / "leader-epoch-checkpoint").write_bytes(b"")
    again = open_log(recovery_point=4, log_start_offset=4)
    assert bases(again) == [4]
    assert (again.log_start_offset, again.log_end_offset) == (4, 4)


def test_leftovers_of_a_crash_are_removed(open_log, tmp_path):
    append(open_log())
    leftovers = ["x.deleted", f"{7:020d}.index", f"{0:020d}.log.cleaned", "a.tmp"]
    for name in leftovers:
        (tmp_path / name).write_bytes(b"?")
    open_log()
    assert not set(leftovers) & set(names(tmp_path))


def test_a_torn_header_that_looks_like_an_old_format_is_cut(open_log, tmp_path):
    log = open_log()
    append(log)
    append(log)
    size = len(batch())
    path = tmp_path / f"{0:020d}.log"
    path.write_bytes(path.read_bytes()[: size + 14] + bytes(size - 14))
    assert open_log(recovery_point=1).log_end_offset == 1


def test_flushed_batches_of_an_old_format_are_not_touched(open_log, tmp_path):
    append(open_log())
    path = tmp_path / f"{0:020d}.log"
    content = bytearray(path.read_bytes())
    content[16] = 1
    path.write_bytes(content)
    with pytest.raises(KafkaError) as caught:
        open_log(recovery_point=1)
    assert caught.value.code is ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT
    assert path.read_bytes() == content


def test_segments_that_a_compaction_thinned_out_are_kept(open_log, tmp_path):
    log = open_log(segment_bytes=200)
    for _ in range(4):
        append(log)
    path = tmp_path / f"{0:020d}.log"
    path.write_bytes(path.read_bytes()[: len(batch())])  # the segment's last batch is missing
    again = open_log(cleanup_policy=("compact",))
    assert again.log_end_offset == 4
    assert bases(again) == [0, 2]
    file_slice = again.read(1, 1000, up_to_offset=4).slice
    assert file_slice is not None
    assert read_batch_header(file_slice.read()).base_offset == 2


@pytest.mark.parametrize("policy", [("delete",), ("compact",), ("compact", "delete")])
@pytest.mark.parametrize("recovery_point", [0, 1, 2, 3])
def test_gaps_between_segments_are_kept_under_any_policy(
    open_log, tmp_path, policy, recovery_point
):
    log = open_log(segment_bytes=200)
    for _ in range(7):
        append(log)
    log.close(clean=False)
    (tmp_path / f"{0:020d}.log").write_bytes(batch())
    for name in tmp_path.glob(f"{2:020d}.*"):
        name.unlink()
    again = open_log(cleanup_policy=policy, recovery_point=recovery_point)
    assert again.log_end_offset == 7
    assert bases(again) == [0, 4, 6]


def test_a_segment_that_begins_below_the_end_of_the_one_before_is_deleted(open_log, tmp_path):
    log = open_log(segment_bytes=200)
    for _ in range(4):
        append(log)
    log.close(clean=False)
    first = tmp_path / f"{0:020d}.log"
    first.write_bytes(b"".join(path.read_bytes() for path in sorted(tmp_path.glob("*.log"))))
    again = open_log()
    assert again.log_end_offset == 4
    assert bases(again) == [0]


def test_recovery_reads_from_the_recovery_point_only(open_log, monkeypatch):
    log = open_log(index_interval_bytes=500)
    for _ in range(200):
        append(log, batch(value=b"x" * 100))
    log.flush()
    for _ in range(3):
        append(log, batch(value=b"x" * 100))
    size = log.segments.active.size
    log.close(clean=False)
    read: list[int] = []
    pread = os.pread

    def counting(number, length, position):
        data = pread(number, length, position)
        if Path(f"/proc/self/fd/{number}").readlink().suffix == ".log":
            read.append(len(data))
        return data

    with monkeypatch.context() as patch:
        patch.setattr("wirebroker.storage.files.pread", counting)
        # Producers are replayed from the headers, as no snapshot is near.
        patch.setattr(ProducerReplay, "walk", lambda *_: None)
        again = open_log(recovery_point=200, index_interval_bytes=500)
    assert again.log_end_offset == 203
    assert sum(read) < 12_000 < size


@pytest.mark.parametrize("name", ["index", "timeindex"])
@pytest.mark.parametrize("damage", ["missing", "zeros", "garbage"])
def test_without_trustworthy_indexes_the_whole_segment_is_read(open_log, tmp_path, name, damage):
    log = open_log(index_interval_bytes=200)
    for number in range(50):
        append(log, batch(timestamp_ms=NOW + number))
    log.flush()
    log.close(clean=False)
    path = tmp_path / f"{0:020d}.{name}"
    original = {
        suffix: (tmp_path / f"{0:020d}.{suffix}").read_bytes() for suffix in ("index", "timeindex")
    }
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes((b"\0" if damage == "zeros" else b"\x7f") * path.stat().st_size)
    again = open_log(recovery_point=50, index_interval_bytes=200)
    assert again.log_end_offset == 50
    for suffix, content in original.items():
        assert (tmp_path / f"{0:020d}.{suffix}").read_bytes() == content


# -- leader epochs --


def test_an_epoch_begins_where_it_began_although_compaction_took_its_first_records(open_log):
    log = open_log(cleanup_policy="compact")
    for base_offset, epochs in ((10, [(0, 0)]), (40, [(1, 20), (2, 30)])):
        for epoch in epochs:
            log.leader_epochs.assign(*epoch)
        records = build_batch(
            [(b"k", b"v", ())], base_offset=base_offset, leader_epoch=epochs[-1][0]
        )
        log.append_as_follower(records, now_ms=NOW)
    log.close(clean=False)
    again = open_log(cleanup_policy="compact")
    assert again.leader_epochs.entries == [(0, 0), (1, 20), (2, 30)]


def test_an_epoch_that_the_file_has_too_late_begins_at_its_first_batch(open_log):
    log = open_log()
    append(log)
    append(log, leader_epoch=1)
    append(log, leader_epoch=1)
    log.leader_epochs.truncate_from_end(1)
    log.leader_epochs.assign(1, 2)
    log.leader_epochs.persist()
    log.close(clean=False)
    assert open_log().leader_epochs.entries == [(0, 0), (1, 1)]


def test_a_recovery_forgets_the_producers_that_have_expired(open_log):
    log = open_log()
    expired_ms = NOW - log.producer_state.expiration_ms
    for number, timestamp_ms in enumerate((expired_ms, expired_ms + 1, NOW)):
        sent = batch(
            timestamp_ms=timestamp_ms, producer_id=number, producer_epoch=0, base_sequence=0
        )
        append(log, sent)
    log.close(clean=False)
    assert sorted(open_log().producer_state.producers) == [1, 2]
