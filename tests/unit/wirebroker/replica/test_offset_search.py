"""Searches in a thread while the log is truncated."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.records.batches import TIMESTAMP_MS, batch
from wirebroker.base.clock import SystemClock
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.special_offsets import MAX_TIMESTAMP
from wirebroker.config import Config
from wirebroker.replica import offset_search
from wirebroker.storage.files import Files
from wirebroker.storage.log.log import Log
from wirebroker.storage.recovery.log_recovery import load_log

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def log(tmp_path: Path) -> Log:
    made = Log(
        str(tmp_path),
        Files(),
        topic="t",
        partition=0,
        topic_id=bytes(16),
        settings=Config({}).topic_settings({"index.interval.bytes": "200"}),
    )
    load_log(made, recovery_point=0, clean=True, now_ms=TIMESTAMP_MS)
    for offset in range(1_000):
        records = batch(b"x" * 50, timestamp_ms=TIMESTAMP_MS + offset)
        made.append_as_leader(memoryview(bytearray(records)), leader_epoch=0, now_ms=TIMESTAMP_MS)
    return made


async def search(
    log: Log,
    timestamp_ms: int,
    monkeypatch: pytest.MonkeyPatch,
    *,
    before: Callable[[], None] = lambda: None,
    after: Callable[[], None] = lambda: None,
) -> Any:
    """Search; something happens before or after the first step of each search in a thread."""
    searched = None

    async def in_thread(_work: Any, function: Callable[..., Any], *arguments: Any) -> Any:
        nonlocal searched
        is_first = arguments[0] is not searched
        searched = arguments[0]
        if is_first:
            before()
        result = function(*arguments)
        if is_first:
            after()
        return result

    monkeypatch.setattr(offset_search, "in_thread", in_thread)
    partition: Any = SimpleNamespace(log=log, is_retired=False)
    return await offset_search.search_in_thread(
        partition, timestamp_ms, up_to_offset=1_000, clock=SystemClock()
    )


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_truncated_log_is_searched_again(log, moment, monkeypatch):
    def truncate() -> None:
        log.truncate_to(10, now_ms=TIMESTAMP_MS)

    assert (await search(log, TIMESTAMP_MS + 700, monkeypatch)).offset == 700
    events: Any = {moment: truncate}
    assert await search(log, TIMESTAMP_MS + 700, monkeypatch, **events) is None
    assert (await search(log, MAX_TIMESTAMP, monkeypatch)).offset == 9


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_log_that_is_truncated_twice_is_searched_until_it_stays(log, moment, monkeypatch):
    ends = [900, 800, 10]

    def truncate() -> None:
        if ends:
            log.truncate_to(ends.pop(0), now_ms=TIMESTAMP_MS)

    events: Any = {moment: truncate}
    assert (await search(log, TIMESTAMP_MS + 5, monkeypatch, **events)).offset == 5
    assert not ends
    ends = [9, 8, 7]
    assert (await search(log, MAX_TIMESTAMP, monkeypatch, **events)).offset == 6


async def test_search_of_a_log_without_its_files_ends(log, monkeypatch):
    searches = 0

    def lose() -> None:
        nonlocal searches
        searches += 1
        raise FileNotFoundError

    with pytest.raises(FileNotFoundError):
        await search(log, TIMESTAMP_MS + 700, monkeypatch, before=lose)
    assert 1 < searches < 10


async def test_damage_is_reported_unless_the_log_was_truncated(log, monkeypatch):
    def damage() -> None:
        log.segments.active.time_index.file.truncate(12)

    with pytest.raises(KafkaError) as error:
        await search(log, TIMESTAMP_MS + 700, monkeypatch, before=damage)
    assert error.value.code is ErrorCode.CORRUPT_MESSAGE
