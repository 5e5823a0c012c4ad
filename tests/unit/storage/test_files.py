"""The file calls of storage/files.py."""

import errno
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.tools.waiting import eventually
from wirebroker.storage import system_calls
from wirebroker.storage.files import ColdPagesError, Files, FileSlice

# The module that calls the operating system.
DOOR = "wirebroker.storage.files"
PAGES = "wirebroker.storage.paged_file"
CALLS = "wirebroker.storage.system_calls"


def descriptor_is_open(number):
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def test_a_file_is_neither_created_nor_opened_before_its_use(tmp_path):
    files = Files()
    file = files.data(f"{tmp_path}/a")
    assert file.size() == 0
    assert files.open_file_count == 0
    assert not files.exists(file.path)
    file.write_at(0, b"abc")
    assert (file.size(), files.open_file_count) == (3, 1)


def test_a_read_beyond_the_end_returns_what_is_there(tmp_path):
    file = Files().data(f"{tmp_path}/a")
    file.write_at(0, b"abcdef")
    assert file.read_at(4, 100) == b"ef"
    assert file.read_at(6, 1) == b""


def test_reading_a_missing_file_does_not_create_it(tmp_path):
    file = Files().data(f"{tmp_path}/a")
    with pytest.raises(FileNotFoundError):
        file.read_at(0, 1)
    assert list(tmp_path.iterdir()) == []


def test_several_buffers_are_written_as_one(tmp_path):
    file = Files().data(f"{tmp_path}/a")
    file.write_at(0, [b"ab", bytearray(b"cd"), memoryview(b"xefx")[1:3], b""])
    assert file.read_at(0, 100) == b"abcdef"
    assert file.size() == 6


def test_more_buffers_than_one_system_call_takes_are_all_written(tmp_path):
    file = Files().data(f"{tmp_path}/a")
    file.write_at(0, [b"%04d" % number for number in range(3000)])
    assert file.read_at(0, 20_000) == b"".join(b"%04d" % number for number in range(3000))


def test_short_writes_are_continued(tmp_path, monkeypatch):
    file = Files().data(f"{tmp_path}/a")
    real_pwrite, real_pwritev = os.pwrite, os.pwritev
    monkeypatch.setattr(f"{DOOR}.pwrite", lambda fd, data, at: real_pwrite(fd, data[:3], at))
    monkeypatch.setattr(
        f"{CALLS}.pwritev",
        lambda fd, views, at: real_pwritev(fd, [views[0][:3]], at),
    )
    file.write_at(0, b"0123456789")
    file.write_at(10, [b"abcd", b"efgh"])
    assert file.read_at(0, 100) == b"0123456789abcdefgh"
    assert file.size() == 18


@pytest.mark.parametrize("buffers", [b"new contents", [b"new ", b"contents"]])
def test_a_failed_write_cuts_the_file_back_and_keeps_its_size(tmp_path, monkeypatch, buffers):
    file = Files().data(f"{tmp_path}/a")
    file.write_at(0, b"old")
    real_pwritev = os.pwritev

    def half_then_full(fd, views, at):
        real_pwritev(fd, [b"half"], at)
        raise OSError(errno.ENOSPC, "disk full")

    monkeypatch.setattr(f"{DOOR}.pwrite", lambda fd, _, at: real_pwritev(fd, [b"half"], at))
    monkeypatch.setattr(f"{CALLS}.pwritev", half_then_full)
    with pytest.raises(OSError, match="disk full"):
        file.write_at(3, buffers)
    assert file.size() == 3
    assert Path(file.path).stat().st_size == 3
    monkeypatch.undo()
    file.write_at(3, b"er")
    assert file.read_at(0, 100) == b"older"


def test_failed_write_that_cannot_be_undone_is_not_disk_full(tmp_path, monkeypatch):
    file = Files().data(f"{tmp_path}/a")
    file.write_at(0, b"old")
    real_pwrite = os.pwrite

    def full(*_):
        raise OSError(errno.ENOSPC, "disk full")

    monkeypatch.setattr(f"{DOOR}.pwrite", lambda fd, _, at: real_pwrite(fd, b"half", at))
    monkeypatch.setattr(f"{CALLS}.pwritev", full)
    monkeypatch.setattr(os, "ftruncate", full)
    with pytest.raises(OSError, match="cannot be undone") as caught:
        file.write_at(3, b"new contents")
    assert caught.value.errno == errno.EIO


def test_failed_replace_keeps_the_file_and_leaves_no_temporary(tmp_path, monkeypatch):
    files = Files()
    files.write_file(f"{tmp_path}/a", b"old")

    def full(*_):
        raise OSError(errno.ENOSPC, "disk full")

    monkeypatch.setattr(f"{CALLS}.pwritev", full)
    with pytest.raises(OSError, match="disk full"):
        files.write_file(f"{tmp_path}/a", b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert files.read_file(f"{tmp_path}/a") == b"old"


def test_a_file_is_dirty_until_a_sync_that_began_after_its_last_change(tmp_path, monkeypatch):
    file = Files().data(f"{tmp_path}/a")
    assert file.is_dirty, "an earlier process may have written it"
    file.write_at(0, b"a")
    file.sync()
    assert not file.is_dirty
    file.write_at(1, b"b")
    assert file.is_dirty
    real = os.fdatasync

    def late(number):
        assert file.is_dirty, "another thread must not believe it synced yet"
        real(number)
        file.write_at(2, b"c")

    monkeypatch.setattr(f"{DOOR}.sync_data", late)
    file.sync()
    assert file.is_dirty
    monkeypatch.undo()
    file.sync()
    file.truncate(1)
    assert file.is_dirty

    def fail(number):
        raise OSError(errno.EIO, "lost")

    monkeypatch.setattr(f"{DOOR}.sync_data", fail)
    with pytest.raises(OSError, match="lost"):
        file.sync()
    assert file.is_dirty


def test_no_more_files_are_open_than_the_bound_allows(tmp_path):
    files = Files(max_open_files=3)
    data = [files.data(f"{tmp_path}/{number}") for number in range(10)]
    for number, file in enumerate(data):
        file.write_at(0, b"%d" % number)
    assert files.open_file_count == 3
    assert [file.read_at(0, 9) for file in data] == [b"%d" % number for number in range(10)]
    assert files.open_file_count == 3
    files.close_all()
    assert files.open_file_count == 0


def test_a_file_in_constant_use_is_not_the_one_that_is_closed(tmp_path):
    files = Files(max_open_files=2)
    hot = files.data(f"{tmp_path}/hot")
    hot.write_at(0, b"hot")
    first = hot.descriptor
    for number in range(20):
        files.data(f"{tmp_path}/{number}").write_at(0, b"cold")
        hot.read_at(0, 1)
    assert hot.descriptor is first


def test_an_evicted_descriptor_stays_open_while_somebody_uses_it(tmp_path):
    files = Files(max_open_files=1)
    file = files.data(f"{tmp_path}/a")
    file.write_at(0, b"a")
    in_use = file.descriptor
    assert in_use is not None
    number = in_use.number
    file.close()
    assert descriptor_is_open(number)
    del in_use
    assert not descriptor_is_open(number)


def test_closing_twice_and_using_again_is_allowed(tmp_path):
    files = Files()
    file = files.data(f"{tmp_path}/a")
    file.write_at(0, b"a")
    file.close()
    file.close()
    assert files.open_file_count == 0
    assert file.read_at(0, 1) == b"a"
    assert files.open_file_count == 1


def test_truncation_sets_the_size(tmp_path):
    file = Files().data(f"{tmp_path}/a")
    file.write_at(0, b"abcdef")
    file.truncate(2)
    assert (file.size(), Path(file.path).stat().st_size) == (2, 2)
    file.sync()


def test_a_renamed_file_is_found_under_its_new_name_after_it_was_closed(tmp_path):
    file = Files().data(f"{tmp_path}/a")
    file.write_at(0, b"abc")
    file.rename(f"{tmp_path}/b")
    file.close()
    assert file.read_at(0, 3) == b"abc"


def test_the_size_of_a_file_that_is_renamed_meanwhile_is_found(tmp_path, monkeypatch):
    """A segment must not seem empty to a searching thread during a compaction."""
    Path(tmp_path / "a").write_bytes(b"abc")
    file = Files().data(f"{tmp_path}/a")
    stat = os.stat

    def stat_too_late(path, **how):
        monkeypatch.setattr(os, "stat", stat)
        file.rename(f"{tmp_path}/b")
        return stat(path, **how)

    monkeypatch.setattr(os, "stat", stat_too_late)
    assert file.size() == 3


def test_stat_error_is_not_taken_for_a_missing_file(tmp_path, monkeypatch):
    files = Files()
    assert files.exists(f"{tmp_path}")
    assert not files.exists(f"{tmp_path}/a")

    def broken(path, **_how):
        raise OSError(errno.EIO, os.strerror(errno.EIO), path)

    monkeypatch.setattr(os, "stat", broken)
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        files.exists(f"{tmp_path}/a")


def test_a_renamed_file_is_not_taken_for_the_one_that_has_its_name_now(tmp_path, monkeypatch):
    files = Files()
    file = files.data(f"{tmp_path}/a")
    file.write_at(0, b"old")
    file.close()
    opened = os.open

    def open_too_late(path, *how):
        monkeypatch.setattr(os, "open", opened)
        file.rename(f"{tmp_path}/b")
        files.data(f"{tmp_path}/a").write_at(0, b"new")
        return opened(path, *how)

    monkeypatch.setattr(os, "open", open_too_late)
    assert file.read_at(0, 3) == b"old"


def test_unlinking_a_missing_file_is_no_error(tmp_path):
    file = Files().data(f"{tmp_path}/a")
    file.unlink()
    file.write_at(0, b"abc")
    file.unlink()
    assert list(tmp_path.iterdir()) == []
    assert file.size() == 0


def test_a_slice_goes_to_a_socket(tmp_path):
    file = Files().data(f"{tmp_path}/a")
    file.write_at(0, b"0123456789")
    piece = FileSlice(file, 2, 5)
    left, right = socket.socketpair()
    with left, right:
        assert file.send_to(left.fileno(), piece.position, piece.length) == 5
        assert right.recv(100) == b"23456" == piece.read()
        assert file.send_to(left.fileno(), 10, 5) == 0


def test_a_full_socket_raises_and_does_not_block(tmp_path):
    file = Files().data(f"{tmp_path}/a")
    file.write_at(0, bytes(1 << 20))
    left, right = socket.socketpair()
    with left, right:
        left.setblocking(False)
        while file.send_to(left.fileno(), 0, 1 << 20) == 1 << 20:
            pass
        with pytest.raises(BlockingIOError):
            file.send_to(left.fileno(), 0, 1 << 20)


def test_written_pages_are_in_the_page_cache(tmp_path):
    file = Files().data(f"{tmp_path}/a")
    file.write_at(0, bytes(300_000))
    assert file.is_resident(0)
    file.warm(0, 300_000)
    file.warm(0, 10_000_000)
    file.sync()
    file.cool(0, 300_000)
    assert file.is_resident(299_999) in {True, False}  # the kernel need not have dropped it


@pytest.mark.parametrize("system", ["linux", "another"])
def test_dropped_pages_are_cached_after_warming(tmp_path, monkeypatch, system):
    monkeypatch.setattr(system_calls, "_sends_anywhere", system == "linux")
    file = Files().data(f"{tmp_path}/a")
    file.write_at(0, bytes(3 << 20))
    file.sync()
    file.cool(0, 3 << 20)
    file.warm(100_000, 1 << 20)
    assert all(file.is_resident(100_000 + part, 4096) for part in range(0, 1 << 20, 4096))
    assert file.is_resident(100_000, 1 << 20)
    file.warm(3 << 20, 10)  # past the end


def test_read_ahead_loads_pages_in_the_background(tmp_path):
    file = Files().data(f"{tmp_path}/a")
    file.write_at(0, bytes(1 << 20))
    file.sync()
    file.cool(0, 1 << 20)
    file.expect(0, 1 << 20)
    eventually(lambda: file.is_resident(0, 1 << 20))
    file.expect(1 << 20, 10)  # past the end
    assert file.size() == 1 << 20


def test_unlinked_file_can_be_warmed(tmp_path):
    file = Files().data(f"{tmp_path}/a")
    file.write_at(0, bytes(1 << 20))
    file.sync()
    file.cool(0, 1 << 20)
    (tmp_path / "a").unlink()
    file.warm(0, 1 << 20)
    assert all(file.is_resident(part, 4096) for part in range(0, 1 << 20, 4096))


def test_replaced_file_can_be_warmed(tmp_path):
    file = Files().data(f"{tmp_path}/a")
    file.write_at(0, bytes(1 << 20))
    file.sync()
    file.cool(0, 1 << 20)
    (tmp_path / "b").write_bytes(bytes(1 << 20))
    (tmp_path / "b").rename(tmp_path / "a")
    file.warm(0, 1 << 20)
    assert all(file.is_resident(part, 4096) for part in range(0, 1 << 20, 4096))


@pytest.mark.parametrize("missing", ["a", "null"])
def test_open_file_is_warmed_without_free_descriptors(tmp_path, monkeypatch, missing):
    file = Files().data(f"{tmp_path}/a")
    file.write_at(0, bytes(1 << 20))
    file.sync()
    file.cool(0, 1 << 20)
    open_it = os.open

    def refuse(path: str, *arguments: int) -> int:
        if path.endswith(missing):
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), path)
        return open_it(path, *arguments)

    monkeypatch.setattr(os, "open", refuse)
    file.warm(0, 1 << 20)
    assert all(file.is_resident(part, 4096) for part in range(0, 1 << 20, 4096))


def test_uncached_page_is_distinguished_from_cached(tmp_path, monkeypatch):
    file = Files().data(f"{tmp_path}/a")
    file.write_at(0, b"abc")

    def would_block(*_):
        raise BlockingIOError

    monkeypatch.setattr(f"{PAGES}.preadv", would_block)
    assert not file.is_resident(0)


def test_files_of_a_removed_folder_are_closed(tmp_path):
    files = Files()
    files.make_directory(f"{tmp_path}/gone")
    read, other = files.data(f"{tmp_path}/gone/a"), files.data(f"{tmp_path}/gone-not")
    for file in (read, other):
        file.write_at(0, b"abc")
        file.close()
        assert file.read_at(0, 3) == b"abc"
    files.remove_tree(f"{tmp_path}/gone")
    assert files.open_file_count == 1
    assert read.read_at(0, 3) == b"abc"  # a read that has begun completes


def test_small_files_are_replaced_whole(tmp_path):
    files = Files()
    path = f"{tmp_path}/meta"
    files.write_file(path, b"one")
    files.write_file(path, b"two", sync=False)
    assert files.read_file(path) == b"two"
    assert files.list_directory(str(tmp_path)) == ["meta"]


def test_directories_are_made_listed_and_removed(tmp_path):
    files = Files()
    path = f"{tmp_path}/a/b"
    files.make_directory(path)
    files.make_directory(path)
    files.write_file(f"{path}/x", b"")
    files.make_directory(f"{path}/sub")
    files.sync_directory(path)
    assert sorted(files.list_directory(path)) == ["sub", "x"]
    assert files.list_subdirectories(path) == ["sub"]
    assert 0 < files.free_bytes(path) <= files.total_bytes(path)
    assert files.modified_ms(f"{path}/x") > 1_600_000_000_000
    files.rename(path, f"{tmp_path}/c")
    files.remove_tree(f"{tmp_path}/c")
    files.remove_tree(f"{tmp_path}/c")
    files.unlink(f"{tmp_path}/nothing")
    with pytest.raises(FileExistsError):
        files.make_directory(__file__)


def test_a_directory_is_locked_once_in_a_process(tmp_path):
    lock = Files().lock_directory(str(tmp_path))
    with pytest.raises(BlockingIOError):
        Files().lock_directory(f"{tmp_path}/.")
    lock.release()
    lock.release()
    Files().lock_directory(str(tmp_path)).release()
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]


def test_a_directory_is_locked_against_other_processes(tmp_path):
    lock = Files().lock_directory(str(tmp_path))
    attempt = f"""
import fcntl
with open("{tmp_path}/.lock", "r+") as file:
    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
"""
    refused = subprocess.run([sys.executable, "-c", attempt], capture_output=True, check=False)
    assert b"BlockingIOError" in refused.stderr or b"PermissionError" in refused.stderr
    lock.release()
    subprocess.run([sys.executable, "-c", attempt], check=True)


def test_a_smaller_bound_holds_from_the_next_file_on(tmp_path):
    files = Files()
    for number in range(5):
        files.data(str(tmp_path / str(number))).create()
    files.bound_open_files(2)
    files.data(str(tmp_path / "last")).create()
    assert files.open_file_count == 2
    files.close_all()


def test_cached_data_is_read_into_memory(tmp_path):
    files = Files()
    file = files.data(str(tmp_path / "log"))
    file.write_at(0, b"0123456789")
    memory = memoryview(bytearray(4))
    assert file.read_cached(3, memory) == 4
    assert bytes(memory) == b"3456"
    assert file.read_cached(8, memory) == 2
    assert file.read_cached(10, memory) == 0
    files.close_all()


@pytest.mark.parametrize(
    ("error", "count", "asked"), [(errno.EAGAIN, 0, 2), (errno.EOPNOTSUPP, 4, 1)]
)
def test_uncached_data_is_skipped_or_read_if_unsupported(
    tmp_path, monkeypatch, error, count, asked
):
    files = Files()
    file = files.data(str(tmp_path / "log"))
    file.write_at(0, b"0123456789")
    real = os.preadv
    flagged = []

    def preadv(number: int, buffers: list[memoryview], position: int, flags: int = 0) -> int:
        if flags:
            flagged.append(position)
            raise OSError(error, os.strerror(error))
        return real(number, buffers, position)

    monkeypatch.setattr(f"{PAGES}.preadv", preadv)
    assert file.read_cached(3, memoryview(bytearray(4))) == count
    assert file.is_resident(3) == bool(count)
    if count:
        assert file.read_now(8, 4, least=2) == b"89"
        with pytest.raises(ColdPagesError):
            file.read_now(8, 4, least=3)
    assert len(flagged) == asked  # an unsupported call is not repeated
    files.close_all()
