"""The broker's side of a compaction worker: start, messages, end.

`run_here` compacts in this process instead: for the simulation's files and in tests.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from wirebroker.base.clock import next_turn
from wirebroker.base.python_child import start_module
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.json_text import parse_json
from wirebroker.maintenance.compaction_order import Limits, encode_order
from wirebroker.storage.compaction.compaction import CleanedGroup, Compaction, CompactionJob

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from wirebroker.storage.files import Files

# A worker reports every second, but has the lowest priority.
_LONGEST_SILENCE_S: Final = 300.0
# For a group of 100,000 segments.
_LONGEST_LINE: Final = 1 << 22


class CompactionProgress(NamedTuple):
    """A progress report."""

    read_bytes: int


class Done(NamedTuple):
    """The compaction has ended."""

    next_dirty_offset: int


class WorkerDiedError(Exception):
    """The worker ended or was killed without a result."""


News: TypeAlias = "CompactionProgress | CleanedGroup | Done"
Run: TypeAlias = "Callable[[CompactionJob, Limits], AsyncGenerator[News, None]]"


async def run_in_child(job: CompactionJob, limits: Limits) -> AsyncGenerator[News, None]:
    """Compact in a separate process; closing the generator kills it.

    Raises:
        KafkaError: The segments cannot be read.
        OSError: The disk failed, or the process cannot be started.
        WorkerDiedError: It died, or was silent for too long.
    """
    process = await start_module(
        "wirebroker.maintenance.compaction_worker", longest_line=_LONGEST_LINE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(encode_order(job, limits))
        while True:
            line = await asyncio.wait_for(process.stdout.readline(), _LONGEST_SILENCE_S)
            if not line:
                raise WorkerDiedError(f"it ended with status {await process.wait()}")
            news = _decode(line)
            yield news
            if isinstance(news, Done):
                return
    except TimeoutError:
        raise WorkerDiedError(f"it was silent for {_LONGEST_SILENCE_S:.0f} s") from None
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        process.stdin.close()


def _decode(line: bytes) -> News:
    message: dict[str, Any] = parse_json(line)
    match message:
        case {"read": count}:
            return CompactionProgress(count)
        case {"group": base_offsets, "before": before, "after": after}:
            return CleanedGroup(tuple(base_offsets), before, after)
        case {"done": offset}:
            return Done(offset)
        case {"error": "disk", "errno": number, "text": text}:
            raise OSError(number, text)
        case _:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, message["text"])


def run_here(files: Files) -> Run:
    """Return a function that compacts on the event loop, group by group."""
    from wirebroker.storage.compaction.map import OffsetMap  # noqa: PLC0415 - only needed here

    async def run(job: CompactionJob, limits: Limits) -> AsyncGenerator[News, None]:
        offset_map = OffsetMap(limits.map_bytes, load_factor=limits.load_factor, secret=bytes(16))
        compaction = Compaction(job, files, offset_map)
        for group in compaction.run():
            yield group
            await next_turn()
        yield Done(compaction.next_dirty_offset)

    return run
