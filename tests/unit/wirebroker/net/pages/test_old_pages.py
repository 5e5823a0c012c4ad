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
async def test_what_was_passed_goes_but_the_newest(step):
    file = File(KEPT_CHUNKS + 13)
    await read(OldPages(), file, 0, KEPT_CHUNKS + 13, step=step)
    assert file.cooled == list(range(13))


async def test_what_leaves_in_one_piece_with_its_answer_is_passed_too():
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


async def test_who_follows_finds_what_the_first_has_read():
    file = File(200)

    pages = OldPages()
    await read(pages, file, 0, KEPT_CHUNKS)
    for first in range(100):  # two readers in parallel, as far apart as possible
        assert first not in file.cooled
        await read(pages, file, first, first + 1)
        await read(pages, file, first + KEPT_CHUNKS, first + KEPT_CHUNKS + 1)
    assert file.cooled == list(range(100))


async def test_what_is_near_the_end_stays():
    file = File(FAR_CHUNKS + KEPT_CHUNKS, is_old=False)

    pages = OldPages()
    await read(pages, file, 10, FAR_CHUNKS + KEPT_CHUNKS, step=CHUNK_BYTES)
    other = File(KEPT_CHUNKS)
    await read(pages, other, 0, KEPT_CHUNKS)
    assert file.cooled == list(range(10, KEPT_CHUNKS))


async def test_a_file_that_is_gone_is_no_error(caplog):
    file = File(100)
    file.error = FileNotFoundError(2, "gone")
    await read(OldPages(), file, 0, 100)
    assert [each for each in caplog.records if each.levelname != "DEBUG"] == []


async def test_advice_that_fails_is_told_and_costs_nobody_anything(caplog):
    file = File(KEPT_CHUNKS + 1)
    file.error = OSError(5, "broken")
    await read(OldPages(), file, 0, KEPT_CHUNKS + 1)
    (line,) = [each for each in caplog.records if each.levelname == "WARNING"]
    assert "a segment" in line.getMessage()


async def test_a_deleted_file_is_not_held():
    pages = OldPages()
    await read(pages, File(KEPT_CHUNKS), 0, KEPT_CHUNKS)
    other = File(KEPT_CHUNKS)
    await read(pages, other, 0, KEPT_CHUNKS)
    assert other.cooled == []
    held: list[Any] = [reference() for reference, _ in pages._passed]
    assert set(held) == {other}
