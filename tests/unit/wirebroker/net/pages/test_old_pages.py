"""Which pages of old data are released to the kernel."""

from __future__ import annotations

from typing import Any, cast

import pytest

from wirebroker.base.threads import until_idle
from wirebroker.net.joined_pieces import joined
from wirebroker.net.pages.old_pages import CHUNK_BYTES, KEPT_CHUNKS, OldPages
from wirebroker.storage.files import FAR_BYTES, FileSlice

FAR_CHUNKS = FAR_BYTES // CHUNK_BYTES


class File:
    path = "a segment"

    def __init__(self, chunks: int, *, is_old: bool = True) -> None:
        self._size = chunks * CHUNK_BYTES
        self.is_old = is_old
        self.cooled: list[int] = []
        self.error: OSError | None = None

    def size(self) -> int:
        return self._size

    def read_cached(self, _position: int, buffer: memoryview) -> int:
        return len(buffer)

    def cool(self, position: int, length: int) -> None:
        if self.error is not None:
            raise self.error
        assert position >= 0
        assert (position + length) % CHUNK_BYTES == 0
        self.cooled.append((position + length) // CHUNK_BYTES - 1)


async def read(pages: OldPages, file: Any, first: int, last: int, *, step: int = 300_000) -> None:
    """Pass chunks from `first` on in small sends."""
    position, end = first * CHUNK_BYTES, last * CHUNK_BYTES
    while position < end:
        length = min(step, end - position)
        pages.sent(file, position, length)
        position += length
    await until_idle()


@pytest.mark.parametrize("step", [1_000, 300_000, CHUNK_BYTES, 5 * CHUNK_BYTES])
async def test_read_chunks_are_dropped_except_the_newest(step):
    file = File(KEPT_CHUNKS + 13)
    await read(OldPages(), file, 0, KEPT_CHUNKS + 13, step=step)
    assert file.cooled == list(range(13))


async def test_slices_joined_into_a_response_are_dropped_too():
    file, pages = File(KEPT_CHUNKS + 3), OldPages()
    for position in range(0, (KEPT_CHUNKS + 3) * CHUNK_BYTES, CHUNK_BYTES // 16):
        pieces: list[Any] = [
            b"head",
            FileSlice(cast("Any", file), position, CHUNK_BYTES // 16),
            b"tail",
        ]
        answer = joined(pieces, pages)
        assert answer is not None
        assert len(answer) == 8 + CHUNK_BYTES // 16
    await until_idle()
    assert file.cooled == [0, 1, 2]


async def test_second_reader_finds_the_pages_of_the_first():
    file = File(200)

    pages = OldPages()
    await read(pages, file, 0, KEPT_CHUNKS)
    for first in range(100):  # two readers in parallel, as far apart as possible
        assert first not in file.cooled
        await read(pages, file, first, first + 1)
        await read(pages, file, first + KEPT_CHUNKS, first + KEPT_CHUNKS + 1)
    assert file.cooled == list(range(100))


async def test_chunks_near_the_end_are_kept():
    file = File(FAR_CHUNKS + KEPT_CHUNKS, is_old=False)

    pages = OldPages()
    await read(pages, file, 10, FAR_CHUNKS + KEPT_CHUNKS, step=CHUNK_BYTES)
    other = File(KEPT_CHUNKS)
    await read(pages, other, 0, KEPT_CHUNKS)
    assert file.cooled == list(range(10, KEPT_CHUNKS))


async def test_deleted_file_is_not_an_error(caplog):
    file = File(100)
    file.error = FileNotFoundError(2, "gone")
    await read(OldPages(), file, 0, 100)
    assert [record for record in caplog.records if record.levelname != "DEBUG"] == []


async def test_failed_advice_is_logged_and_harmless(caplog):
    file = File(KEPT_CHUNKS + 1)
    file.error = OSError(5, "broken")
    await read(OldPages(), file, 0, KEPT_CHUNKS + 1)
    (line,) = [record for record in caplog.records if record.levelname == "WARNING"]
    assert "a segment" in line.getMessage()


async def test_no_reference_to_a_deleted_file_is_kept():
    pages = OldPages()
    await read(pages, File(KEPT_CHUNKS), 0, KEPT_CHUNKS)
    other = File(KEPT_CHUNKS)
    await read(pages, other, 0, KEPT_CHUNKS)
    assert other.cooled == []
    referenced: list[Any] = [reference() for reference, _ in pages._passed]
    assert set(referenced) == {other}
