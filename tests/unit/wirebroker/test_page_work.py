"""Pages that come and go, by threads without the interpreter, where there are any, and its own."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import os
import select
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.pure_modules import pure
from wirebroker.clock import pause
from wirebroker.net import page_work
from wirebroker.storage.descriptors import Descriptor
from wirebroker.storage.files import Files
from wirebroker.threads import until_idle

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from wirebroker.storage.files import DataFile

PURE = pure("page_work", package="net", twin="_page_threads")
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
    """Have a range read and return what was wrong."""
    brought: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    work.bring(reader, file, position, length, brought.set_result)
    assert not brought.done()
    return await asyncio.wait_for(brought, 30)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await pause(0.001)


def is_there(file: DataFile, position: int, length: int) -> bool:
    return all(file.is_resident(position + part, 4096) for part in range(0, length, 4096))


async def test_what_was_given_back_comes_again(module, file):
    async with begun(module) as work:
        for position in (0, MIB, 100_000):
            file.cool(0, 4 * MIB)
            assert await bring(work, "a", file, position, 2 * MIB) is None
            assert is_there(file, position, 2 * MIB)
        assert await bring(work, "a", file, 5 * MIB, MIB) is None  # there is nothing
        work.give_back(file, 0, 4 * MIB)
        await until(lambda: not file.is_resident(0, 4 * MIB))


async def test_many_readers_and_ranges_come_each_to_its_own(module, file):
    async with begun(module) as work:
        file.cool(0, 4 * MIB)
        readers = [object() for _ in range(100)]
        asked = [
            bring(work, each, file, number * 40_000, 40_000) for number, each in enumerate(readers)
        ]
        assert await asyncio.gather(*asked) == [None] * 100
        assert is_there(file, 0, 100 * 40_000)
        assert len(work._own) == 64


async def test_a_reader_keeps_its_descriptor_until_it_leaves(module, file):
    async with begun(module) as work:
        before = open_descriptors(file.path)
        for number in range(4):
            assert await bring(work, "a", file, number * MIB, MIB) is None
            assert open_descriptors(file.path) == before + 1
        work.leave("a")
        work.leave("a")
        assert open_descriptors(file.path) == before


def open_descriptors(path: str) -> int:
    return [_target(each) for each in Path("/proc/self/fd").iterdir()].count(path)


def _target(link: Path) -> str:
    try:
        return str(link.readlink())
    except FileNotFoundError:  # the listing's own
        return ""


async def test_a_reader_that_goes_on_in_another_file_lets_go_of_the_first(module, file, tmp_path):
    async with begun(module) as work:
        other = Files().data(f"{tmp_path}/other")
        other.write_at(0, bytes(MIB))
        assert await bring(work, "a", file, 0, MIB) is None
        assert await bring(work, "a", other, 0, MIB) is None
        assert (open_descriptors(file.path), open_descriptors(other.path)) == (1, 2)


async def test_a_file_that_goes_is_not_held_open(module, tmp_path):
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
        assert not open_descriptors(f"{path} (deleted)")


async def test_what_has_no_name_any_more_comes_as_well(module, file, tmp_path):
    async with begun(module) as work:
        file.cool(0, 4 * MIB)
        (tmp_path / "log").unlink()
        assert await bring(work, "a", file, 0, MIB) is None
        assert is_there(file, 0, MIB)


async def test_what_cannot_be_read_is_told(module, tmp_path):
    async with begun(module) as work:
        (tmp_path / "folder").mkdir()
        folder: Any = Folder(f"{tmp_path}/folder")
        error = await bring(work, "a", folder, 0, MIB)
        assert isinstance(error, OSError)
        assert error.errno in {errno.EISDIR, errno.EINVAL}


class Folder:
    """What no sendfile reads from."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.descriptor = Descriptor(os.open(path, os.O_RDONLY))

    def ahead(self, _own: Any) -> Any:
        return self.descriptor


async def test_who_has_closed_is_not_called(module, file):
    work = module.PageWork(asyncio.get_running_loop())
    called: list[Any] = []
    work.bring("a", file, 0, MIB, called.append)
    work.close()
    work.close()
    assert await bring(work, "b", file, 0, MIB) is None  # by the interpreter's
    await until_idle()
    assert called in ([], [None])


async def test_one_that_fails_leaves_the_others_theirs(module, file):
    loop = asyncio.get_running_loop()
    told: list[Any] = []
    loop.set_exception_handler(lambda _loop, context: told.append(context["exception"]))
    work = module.PageWork(loop)

    def fail(_error: object) -> None:
        raise ZeroDivisionError

    work.bring("a", file, 0, MIB, fail)
    assert await bring(work, "b", file, 0, MIB) is None
    await until(lambda: bool(told))
    assert [type(each) for each in told] == [ZeroDivisionError]
    work.close()
    await until_idle()


def test_threads_without_the_interpreter_check_what_they_are_told(file):
    made = pytest.importorskip("wirebroker.net._page_threads").PageThreads
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
