"""Page reads and evictions by native threads, if available, and by Python threads."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import os
import select
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.harness.pure_modules import pure
from tests.support.tools.waiting import until
from wirebroker.base.clock import next_turn
from wirebroker.base.threads import until_idle
from wirebroker.net.pages import page_work
from wirebroker.storage.descriptors import Descriptor
from wirebroker.storage.files import Files

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from wirebroker.storage.files import DataFile

PURE = pure("page_work", package="net.pages", twin="_page_threads")
MIB = 1 << 20


@pytest.fixture(params=["used", "pure"])
def module(request: pytest.FixtureRequest) -> Any:
    return page_work if request.param == "used" else PURE


@contextlib.asynccontextmanager
async def begun(module: Any) -> AsyncIterator[Any]:
    made = module.PageWork(asyncio.get_running_loop())
    yield made
    made.close()
    await until_idle()


@pytest.fixture
def file(tmp_path: Path) -> Iterator[DataFile]:
    files = Files()
    made = files.data(f"{tmp_path}/log")
    made.write_at(0, bytes(4 * MIB))
    made.sync()
    yield made
    files.close_all()


async def bring(work: Any, reader: object, file: DataFile, position: int, length: int) -> Any:
    brought: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    work.bring(reader, file, position, length, brought.set_result)
    assert not brought.done()
    return await asyncio.wait_for(brought, 30)


def has_gone(work: Any, file: DataFile) -> bool:
    """Return whether no page is in memory; a busy page needs another attempt."""
    work.give_back(file, 0, 4 * MIB)
    return not file.is_resident(0, 4 * MIB)


def is_there(file: DataFile, position: int, length: int) -> bool:
    return all(file.is_resident(position + part, 4096) for part in range(0, length, 4096))


async def test_dropped_pages_are_loaded_again(module, file):
    async with begun(module) as work:
        for position in (0, MIB, 100_000):
            file.cool(0, 4 * MIB)
            assert await bring(work, "a", file, position, 2 * MIB) is None
            assert is_there(file, position, 2 * MIB)
        assert await bring(work, "a", file, 5 * MIB, MIB) is None  # there is nothing
        work.give_back(file, 0, 4 * MIB)
        await until(lambda: has_gone(work, file))


async def test_each_of_many_readers_gets_its_range(module, file):
    async with begun(module) as work:
        file.cool(0, 4 * MIB)
        readers = [object() for _ in range(100)]
        reads = [
            bring(work, reader, file, number * 40_000, 40_000)
            for number, reader in enumerate(readers)
        ]
        assert await asyncio.gather(*reads) == [None] * 100
        assert is_there(file, 0, 100 * 40_000)
        assert len(work._descriptors) == 64


async def test_a_reader_keeps_its_descriptor_until_it_leaves(module, file):
    async with begun(module) as work:
        before = open_descriptors(file.path)
        for number in range(4):
            assert await bring(work, "a", file, number * MIB, MIB) is None
            await until(lambda: open_descriptors(file.path) == before + 1)
        work.leave("a")
        work.leave("a")
        await until(lambda: open_descriptors(file.path) == before)


def open_descriptors(path: str) -> int:
    return [_target(descriptor) for descriptor in Path("/proc/self/fd").iterdir()].count(path)


def _target(link: Path) -> str:
    try:
        return str(link.readlink())
    except FileNotFoundError:
        return ""


async def test_reader_moving_to_another_file_releases_the_first(module, file, tmp_path):
    async with begun(module) as work:
        other = Files().data(f"{tmp_path}/other")
        other.write_at(0, bytes(MIB))
        assert await bring(work, "a", file, 0, MIB) is None
        assert await bring(work, "a", other, 0, MIB) is None
        await until(lambda: open_descriptors(file.path) == 1)
        assert open_descriptors(other.path) == 2


async def test_deleted_file_is_not_kept_open(module, tmp_path):
    async with begun(module) as work:
        files = Files()
        file = files.data(f"{tmp_path}/gone")
        file.write_at(0, bytes(MIB))
        assert await bring(work, "a", file, 0, MIB) is None
        file.remove()
        path = file.path
        await until_idle()
        del file
        gc.collect()
        await until(lambda: not open_descriptors(f"{path} (deleted)"))


async def test_unlinked_file_is_loaded_too(module, file, tmp_path):
    async with begun(module) as work:
        file.cool(0, 4 * MIB)
        (tmp_path / "log").unlink()
        assert await bring(work, "a", file, 0, MIB) is None
        assert is_there(file, 0, MIB)


async def test_read_error_is_reported(module, tmp_path):
    async with begun(module) as work:
        (tmp_path / "folder").mkdir()
        folder: Any = Folder(f"{tmp_path}/folder")
        error = await bring(work, "a", folder, 0, MIB)
        assert isinstance(error, OSError)
        assert error.errno in {errno.EISDIR, errno.EINVAL}


class Folder:
    """A directory, from which sendfile cannot read."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.descriptor = Descriptor(os.open(path, os.O_RDONLY))

    def ahead(self, _descriptors: Any) -> Any:
        return self.descriptor


async def test_closed_reader_is_not_called(module, file):
    work = module.PageWork(asyncio.get_running_loop())
    called: list[Any] = []
    work.bring("a", file, 0, MIB, called.append)
    work.close()
    work.close()
    assert await bring(work, "b", file, 0, MIB) is None  # by the interpreter's
    await until_idle()
    assert called == []


class Stopped:
    """A file whose reads block until the test allows them."""

    path = "stopped"

    def __init__(self) -> None:
        self.opened = 0
        self.goes_on = threading.Event()

    def ahead(self, _descriptors: Any) -> Any:
        self.opened += 1

    def warm(self, position: int, length: int) -> None:
        assert self.goes_on.wait(30), "it was not resumed"


async def test_readers_beyond_the_limit_queue_without_descriptors(module, file):
    async with begun(module) as work:
        stopped: Any = Stopped()
        loop = asyncio.get_running_loop()
        blocked = [loop.create_future() for _ in range(16)]
        for future in blocked:
            work.bring(object(), stopped, 0, 1, future.set_result)
        before = open_descriptors(file.path)
        late = [asyncio.ensure_future(bring(work, number, file, 0, MIB)) for number in range(500)]
        late_results: list[Any] = []
        work.bring("gone", stopped, 0, 1, late_results.append)
        await next_turn()
        work.leave("gone")
        assert stopped.opened == 16
        assert open_descriptors(file.path) == before
        stopped.goes_on.set()
        assert await asyncio.gather(*blocked, *late) == [None] * 516
        assert (stopped.opened, late_results) == (16, [])
        assert open_descriptors(file.path) <= before + 64


async def test_dropping_pages_uses_few_descriptors(module, file):
    async with begun(module) as work:
        before = open_descriptors(file.path)
        for _ in range(1000):
            work.give_back(file, 0, 4 * MIB)
        assert open_descriptors(file.path) <= before + 16
        await until(lambda: has_gone(work, file))
        await until_idle()


async def test_open_error_is_reported_in_a_later_loop_turn(module, tmp_path):
    async with begun(module) as work:
        missing = Files().data(f"{tmp_path}/missing")
        assert isinstance(await bring(work, "a", missing, 0, MIB), FileNotFoundError)


class FullWatch:
    """An epoll watch without room (epoll_ctl: ENOSPC)."""

    def add_reader(self, _fd: int, _callback: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def remove_reader(self, _fd: int) -> None:
        raise AssertionError("nothing is watched")


async def test_threads_that_cannot_be_watched_are_not_used(module, file):
    work = module.PageWork(FullWatch())
    for number in range(3):
        assert await bring(work, number, file, 0, MIB) is None
    work.close()
    await until_idle()


async def test_failing_callback_does_not_affect_others(module, file):
    loop = asyncio.get_running_loop()
    errors: list[Any] = []
    loop.set_exception_handler(lambda _loop, context: errors.append(context["exception"]))
    work = module.PageWork(loop)

    def fail(_error: object) -> None:
        raise ZeroDivisionError

    work.bring("a", file, 0, MIB, fail)
    assert await bring(work, "b", file, 0, MIB) is None
    await until(lambda: bool(errors))
    assert [type(error) for error in errors] == [ZeroDivisionError]
    work.close()
    await until_idle()


def test_native_threads_check_their_arguments(file):
    made = pytest.importorskip("wirebroker.net.pages._page_threads").PageThreads
    wrong: tuple[Any, ...]
    for wrong in ((), ("1",), (1, 2)):
        with pytest.raises(TypeError):
            made(*wrong)
    threads = made(1)
    for wrong in ((), (1, True, 0, 0), (1, True, "0", 0, 0)):
        with pytest.raises(TypeError):
            threads.submit(*wrong)
    with pytest.raises(OSError, match="Bad file descriptor"):
        threads.submit(1, True, 1_000_000, 0, 1)
    threads.submit(7, True, file.held().number, 0, MIB)
    with open(threads.fileno(), "rb", closefd=False) as event:
        select.select([event], [], [], 30)
    assert threads.take() == [(7, 0)]
    assert threads.take() == []
    threads.close()
    threads.close()
    for ask in (threads.fileno, threads.take):
        with pytest.raises(ValueError, match="ended"):
            ask()


def test_job_without_an_idle_thread_starts_a_new_one(tmp_path):
    made = pytest.importorskip("wirebroker.net.pages._page_threads").PageThreads
    tasks = Path("/proc/self/task")
    (tmp_path / "holes").touch()
    os.truncate(tmp_path / "holes", 64 * MIB)
    descriptor = Descriptor(os.open(tmp_path / "holes", os.O_RDONLY))
    before = set(tasks.iterdir())
    new_threads: set[Path] = set()
    threads = made(4)
    with open(threads.fileno(), "rb", closefd=False) as event:
        # On a busy machine the first thread may be idle again before the last read is submitted.
        for first in range(0, 400, 4):
            for number in range(first, first + 4):
                threads.submit(number, True, descriptor.number, 0, 64 * MIB)
            new_threads |= set(tasks.iterdir()) - before
            done: list[tuple[int, int]] = []
            while len(done) < 4:
                select.select([event], [], [], 30)
                done += threads.take()
            assert sorted(done) == [(number, 0) for number in range(first, first + 4)]
            if len(new_threads) == 4:
                break
    threads.close()
    assert len(new_threads) == 4
