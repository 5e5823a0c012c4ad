"""Responses with file slices: their order, cold pages, readers of old data, lost files."""

import errno
import logging
import threading
from typing import cast

import pytest

from tests.unit.wirebroker.net.network_server import frame, lines, serve
from wirebroker.storage.descriptors import Descriptor
from wirebroker.storage.files import DataFile, Files, FileSlice


@pytest.fixture
def data_file(tmp_path):
    content = bytes(range(256)) * 8000
    (tmp_path / "log").write_bytes(content)
    files = Files()
    yield files.data(str(tmp_path / "log")), content
    files.close_all()


async def test_file_slices_and_bytes_are_sent_in_order(data_file):
    file, content = data_file

    async with serve() as server:
        client = await server.client()
        server.pieces = [
            b"head",
            FileSlice(file, 1000, 1_500_000),
            b"between",
            FileSlice(file, 0, 10),
            FileSlice(file, 5, 0),
            b"end",
        ]
        expected = b"head" + content[1000 : 1000 + 1_500_000] + b"between" + content[:10] + b"end"
        for number in range(5):
            assert await client.ask(1, b"", number) == expected


class ColdFile:
    """A file whose pages are cold until a thread has read them."""

    is_old = False

    def __init__(self, file: DataFile) -> None:
        self.file = file
        self.warmed: list[tuple[int, int, bool]] = []
        self.sent_cold = 0

    def size(self) -> int:
        return self.file.size()

    def is_resident(self, position: int, length: int = 1) -> bool:
        return self._has(position) and self._has(position + length - 1)

    def _has(self, position: int) -> bool:
        return any(start <= position < start + length for start, length, _ in self.warmed)

    def read_cached(self, position: int, memory: memoryview) -> int:
        if not self.is_resident(position, len(memory)):
            return 0
        return self.file.read_cached(position, memory)

    def ahead(self, own: Descriptor | None = None) -> Descriptor | None:
        return own

    def warm(self, position: int, length: int) -> None:
        is_main = threading.current_thread() is threading.main_thread()
        self.warmed.append((position, length, is_main))

    def send_to(self, socket_fd: int, position: int, length: int) -> int:
        self.sent_cold += not self.is_resident(position, length)
        return self.file.send_to(socket_fd, position, length)


async def test_uncached_pages_are_read_by_a_thread_before_sending(data_file):
    file, content = data_file

    async with serve() as server:
        client = await server.client()
        cold = ColdFile(file)
        server.pieces = [b"head", FileSlice(cast("DataFile", cold), 0, 2_000_000), b"end"]
        assert await client.ask(1) == b"head" + content[:2_000_000] + b"end"
        assert cold.sent_cold == 0
        assert [(position, length) for position, length, _ in cold.warmed] == [
            (0, 1 << 20),
            (1 << 20, 2_000_000 - (1 << 20)),
        ]
        assert not any(is_main for _, _, is_main in cold.warmed)


async def test_partly_cached_range_is_read_by_a_thread_too(data_file):
    file, content = data_file

    async with serve() as server:
        client = await server.client()
        cold = ColdFile(file)
        cold.warmed = [(0, 1000, False)]
        server.pieces = [b"head", FileSlice(cast("DataFile", cold), 0, 200_000)]
        assert await client.ask(1) == b"head" + content[:200_000]
        assert cold.sent_cold == 0
        assert cold.warmed[1:] == [(0, 200_000, False)]


async def test_uncached_start_after_a_read_range_is_read_by_the_thread(data_file):
    file, content = data_file
    warmed, length = 1 << 20, (1 << 20) + 200_000

    async with serve() as server:
        client = await server.client()
        cold = ColdFile(file)
        cold.warmed = [(length - 100_000, 100_000, False)]
        server.pieces = [FileSlice(cast("DataFile", cold), 0, length)]
        assert await client.ask(1) == content[:length]
        assert cold.warmed[1:] == [(0, warmed, False), (warmed, 200_000, False)]
        assert cold.sent_cold == 0


async def test_reader_of_old_uncached_data_reads_through_a_thread(data_file):
    file, content = data_file

    async with serve() as server:
        client = await server.client()
        cold = ColdFile(file)
        cold.is_old = True
        server.pieces = [FileSlice(cast("DataFile", cold), 0, 200_000)]
        for number in range(2):
            assert await client.ask(1, b"", number) == content[:200_000]
        assert cold.warmed == [(0, 200_000, False)] * 2
        starts = [300_000, *range(0, 200_000, 2000)]  # short ones: one probe is enough
        server.pieces = [FileSlice(cast("DataFile", cold), start, 2000) for start in starts]
        assert await client.ask(1) == content[300_000:302_000] + content[:200_000]
        server.pieces, cold.is_old = [FileSlice(cast("DataFile", cold), 0, 200_000)], False
        assert await client.ask(1) == content[:200_000]
        assert cold.warmed[2:] == [(300_000, 2000, False)]


async def test_short_response_is_sent_at_once_cached_or_not(data_file):
    file, content = data_file

    async with serve() as server:
        client = await server.client()
        cold = ColdFile(file)
        server.pieces = [
            b"head",
            FileSlice(file, 7, 1000),
            FileSlice(cast("DataFile", cold), 1, 65_000),
            b"end",
        ]
        expected = b"head" + content[7:1007] + content[1:65_001] + b"end"
        for number in range(3):
            assert await client.ask(1, b"", number) == expected
        assert cold.warmed == [(1, 65_000, False)]
        assert cold.sent_cold == 0


async def test_short_responses_to_a_slow_reader_are_complete_and_in_order(data_file):
    file, content = data_file

    async with serve() as server:
        client = await server.client()
        server.pieces = [b"head", FileSlice(file, 3, 100_000), b"between", FileSlice(file, 9, 10)]
        expected = b"head" + content[3:100_003] + b"between" + content[9:19]
        for number in range(200):
            client.send(frame(1, b"", number))
        for number in range(200):
            assert await client.receive() == (number, expected)


class BrokenFile:
    path = "lost"
    is_old = False

    def __init__(self, where: str) -> None:
        self.where = where

    def size(self) -> int:
        return 100

    def is_resident(self, position: int, length: int = 1) -> bool:
        del position, length
        return self.where != "warm"

    def read_cached(self, position: int, memory: memoryview) -> int:
        if self.where == "read":
            raise OSError(errno.EIO, "disk")
        return 0

    def ahead(self, own: Descriptor | None = None) -> Descriptor | None:
        return own

    def warm(self, position: int, length: int) -> None:
        raise OSError(errno.EIO, "disk")

    def send_to(self, socket_fd: int, position: int, length: int) -> int:
        if self.where == "send":
            raise OSError(errno.EIO, "disk")
        return 0


@pytest.mark.parametrize("where", ["read", "warm", "send", "end"])
async def test_unreadable_slice_closes_connection_with_one_log_line(where, caplog):
    with caplog.at_level(logging.INFO):
        async with serve() as server:
            client = await server.client()
            server.pieces = [b"head", FileSlice(cast("DataFile", BrokenFile(where)), 0, 100)]
            client.send(frame(1))
            await server.until(lambda: len(server.table) == 0)
            await client.reader.read()
    (line,) = lines(caplog)
    assert "closing 127.0.0.1:" in line
