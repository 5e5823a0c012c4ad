"""Irregular files and unknown names in a data directory."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

import pytest

from tests.unit.storage.log_kit import append, batch
from wirebroker.storage.directory_identity import LogDirectoryError
from wirebroker.storage.file_names import offset_before, offset_of, partition_of
from wirebroker.storage.files import Files
from wirebroker.storage.log_directory import LogDirectory

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

OUTSIDE = "outside-the-data-directory"


def link_to_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def dangling_link(path: Path) -> None:
    path.symlink_to(path.parent.parent / OUTSIDE)


def loop(path: Path) -> None:
    path.symlink_to(path.name)


def directory(path: Path) -> None:
    path.mkdir()


def fifo(path: Path) -> None:
    os.mkfifo(path)


def unix_socket(path: Path) -> None:
    # Socket paths must be short.
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(f"/proc/self/fd/{os.open(path.parent, os.O_PATH)}/{path.name}")


ODD: list[Callable[[Path], None]] = [
    link_to_device,
    dangling_link,
    loop,
    directory,
    fifo,
    unix_socket,
]


def names_of_a_segment(offset: int) -> list[str]:
    stem = f"{offset:020d}"
    suffixes = ("log", "index", "timeindex", "txnindex", "log.deleted", "log.swap", "log.cleaned")
    return [f"{stem}.{suffix}" for suffix in suffixes]


def check_goes_on(open_log, count: int) -> None:
    """Append past all taken segment names, and find everything after a crash."""
    log = open_log(segment_bytes=200)
    assert log.log_end_offset == count
    for _ in range(6):
        append(log)
    log.flush()
    log.close(clean=False)
    again = open_log(segment_bytes=200)
    assert again.log_end_offset == count + 6
    headers = [header for segment in again.segments for _, header in segment.iterate_headers()]
    assert [header.base_offset for header in headers] == list(range(count + 6))


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("clean", [True, False])
def test_irregular_files_are_not_segments(open_log, tmp_path, odd, clean):
    log = open_log(segment_bytes=200)
    for _ in range(3):
        append(log)
    log.close(clean=clean)
    # 4, 6 and 8 are the next segments; the others are valid names of no segment here.
    for offset in (4, 6, 8, 200):
        for name in names_of_a_segment(offset):
            odd(tmp_path / name)
    for name in ("99999999999999999999.log", "7.log", "٣٣٣٣٣٣٣٣٣٣٣٣٣٣٣٣٣٣٣٣.log"):
        odd(tmp_path / name)
    odd(tmp_path / f"{300:020d}.snapshot")
    check_goes_on(open_log, 3)
    assert not (tmp_path.parent / OUTSIDE).exists()


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("suffix", ["index", "timeindex", "txnindex"])
def test_irregular_index_files_are_rebuilt(open_log, tmp_path, odd, suffix):
    log = open_log(segment_bytes=200)
    for _ in range(5):
        append(log)
    log.close(clean=True)
    for offset in (0, 4):
        path = tmp_path / f"{offset:020d}.{suffix}"
        path.unlink(missing_ok=True)
        odd(path)
    check_goes_on(open_log, 5)
    assert not (tmp_path.parent / OUTSIDE).exists()


def test_regular_files_with_odd_names_are_passed_over(open_log, tmp_path):
    log = open_log(segment_bytes=200)
    append(log)
    log.close(clean=False)
    names = ("99999999999999999999.log", f"{1 << 63:020d}.log", "7.log", "0x7.log", "-5.log")
    for name in names:
        (tmp_path / name).write_bytes(batch())
    check_goes_on(open_log, 1)
    assert {path.name for path in tmp_path.iterdir()} >= set(names)


def test_a_link_to_a_regular_file_is_a_segment(open_log, tmp_path):
    log = open_log(segment_bytes=200)
    append(log)
    log.close(clean=True)
    elsewhere = tmp_path.parent / "elsewhere.log"
    path = tmp_path / f"{0:020d}.log"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)
    check_goes_on(open_log, 1)


@pytest.mark.parametrize(
    ("digits", "offset"),
    [
        ("00000000000000000200", 200),
        (f"{(1 << 63) - 1:020d}", (1 << 63) - 1),
        (f"{1 << 63:020d}", None),
        ("99999999999999999999", None),
        ("200", None),
        ("٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٢٠٠", None),
        ("+0000000000000000200", None),
        ("-0000000000000000200", None),
        ("", None),
    ],
)
def test_offsets_in_names(digits, offset):
    assert offset_of(digits) == offset
    assert offset_before(f"{digits}.log", ".log") == offset
    assert offset_before(digits, ".log") is None


@pytest.mark.parametrize(
    ("folder", "found"),
    [
        ("t-0", ("t", 0, None)),
        ("a-b-12", ("a-b", 12, None)),
        ("t-2147483647", ("t", 2147483647, None)),
        ("t-2147483648", None),
        ("t-007", None),
        ("t-٣", None),
        ("t--1", ("t-", 1, None)),
        ("t-", None),
        ("t", None),
        ("a b-1", None),
        ("t-1.0123456789abcdef0123456789abcdef-delete", ("t", 1, "delete")),
        ("t-1.x-stray", ("t", 1, "stray")),
        ("t-1.x-future", ("t", 1, "future")),
        ("t-٣.x-future", None),
        ("t-1.x-other", None),
    ],
)
def test_partitions_in_names(folder, found):
    assert partition_of(folder) == found


@pytest.mark.parametrize("odd", ODD)
def test_a_start_passes_over_odd_entries_of_a_data_directory(tmp_path, odd):
    files = Files()
    path = tmp_path / "data"
    LogDirectory.open(str(path), files, node_id=1).close()
    for name in ("t-007", "t-٣", "t-99999999999", "loop", "t-5", "x.log"):
        odd(path / name)
    (path / "real-0").mkdir()
    opened = LogDirectory.open(str(path), files, node_id=1)
    folders = {partition.path.rpartition("/")[2] for partition in opened.partitions}
    assert folders == {"real-0", *(["t-5"] if odd is directory else [])}
    opened.close()


@pytest.mark.parametrize("odd", [each for each in ODD if each is not directory])
@pytest.mark.parametrize(
    "name",
    [
        ".kafka_cleanshutdown",
        "recovery-point-offset-checkpoint",
        "log-start-offset-checkpoint",
        "replication-offset-checkpoint",
    ],
)
def test_irregular_small_files_neither_block_nor_are_followed(tmp_path, odd, name):
    files = Files()
    path = tmp_path / "data"
    LogDirectory.open(str(path), files, node_id=1).close()
    odd(path / name)
    odd(path / f"{name}.tmp")
    opened = LogDirectory.open(str(path), files, node_id=1)
    assert not opened.was_clean
    assert opened.read_recovery_points() == {}
    assert opened.read_log_start_offsets() == {}
    assert opened.read_high_watermarks() == {}
    opened.write_recovery_points({("t", 0): 1})
    opened.write_log_start_offsets({("t", 0): 1})
    opened.write_high_watermarks({("t", 0): 1})
    opened.mark_clean_shutdown(broker_epoch=1)
    opened.close()
    assert not (tmp_path / OUTSIDE).exists()


@pytest.mark.parametrize("odd", ODD)
def test_irregular_meta_properties_file_is_not_replaced(tmp_path, odd):
    path = tmp_path / "data"
    path.mkdir()
    odd(path / "meta.properties")
    if odd in {loop, dangling_link}:
        LogDirectory.open(str(path), Files(), node_id=1).close()
        assert not (tmp_path / OUTSIDE).exists()
        return
    with pytest.raises(LogDirectoryError, match="is not a regular file"):
        LogDirectory.open(str(path), Files(), node_id=1)
