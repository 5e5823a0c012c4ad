from __future__ import annotations

import asyncio
import gc
import json
import threading
import weakref
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.console import fake_cluster as fake
from tests.support.console.recorded_change import RecordedChange
from tests.support.tools.waiting import PATIENCE_S, until
from wirebroker.base.clock import SystemClock, pause
from wirebroker.console.audit.audit_log import AuditLog
from wirebroker.console.changes.making import runner as runner_module
from wirebroker.console.changes.making.change_run import ChangeAuthor, ChangeRun
from wirebroker.console.changes.making.runner import BusyError, ChangeRunner

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

AUTHOR = ChangeAuthor("anna", "admin", "192.0.2.1", "http")
VALUES = {"topic": "orders", "note": "", "count": "1", "color": "g", "loud": "no", "secret": "x"}


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "audit.log"


@pytest.fixture
def runner(path) -> Iterator[ChangeRunner]:
    made = ChangeRunner(AuditLog(path, SystemClock()), SystemClock())
    yield made
    made.audit.close()


@pytest.fixture
def change() -> RecordedChange:
    return RecordedChange()


async def begun(runner: ChangeRunner, change: RecordedChange, **logged: str) -> ChangeRun:
    collector: Any = fake.FakeCollector(fake.snapshot())
    prepared = await change.prepare(collector, VALUES)
    prepared = prepared._replace(logged=logged or None)
    return await runner.begin(change.kind, collector, VALUES, prepared, AUTHOR)


def ends(path: Path) -> list[str]:
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return [row["result"] for row in rows if row["event"] == "end"]


async def test_a_change_replaces_values_in_the_log(runner, change, path):
    run = await begun(runner, change, note="(hidden)")
    await run.ended.wait()
    row = json.loads(path.read_text().splitlines()[0])
    assert row["values"]["note"] == "(hidden)"
    assert row["values"]["secret"] == "(hidden)"
    assert row["kafka_user"] == "no login"


async def test_the_end_of_the_console_stops_changes(runner, change, path):
    change.gate = asyncio.Event()
    run = await begun(runner, change)
    await change.has_begun.wait()
    await runner.close()
    assert (run.result, ends(path)) == ("stopped", ["stopped"])
    assert run.message == (
        "it was stopped by the end of the console after 3 of 10 letters; it may have been made in"
        " part"
    )


@pytest.mark.parametrize("is_made", [False, True])
async def test_the_log_says_who_stopped_a_change(runner, change, path, is_made):
    """Also if it is stopped before its first step."""
    change.gate = asyncio.Event()
    run = await begun(runner, change)
    if is_made:
        await change.has_begun.wait()
    run.stop(by="bert")
    async with asyncio.timeout(30):
        await run.ended.wait()
    end = json.loads(path.read_text().splitlines()[-1])
    assert (end["event"], end["user"], end["result"]) == ("end", "anna", "stopped")
    assert end["message"].startswith("it was stopped by bert after")
    assert change.has_begun.is_set() == is_made


async def test_what_is_kept_of_an_ended_change_is_bounded(runner, change):
    collector: Any = fake.FakeCollector(fake.snapshot())
    prepared = await change.prepare(collector, VALUES)
    work = weakref.ref(prepared.apply)
    prepared = prepared._replace(
        lines=("line",) * 3000, notes=("n" * 20_000,) * 5, command="c" * 100_000
    )
    run = await runner.begin(change.kind, collector, VALUES, prepared, AUTHOR)
    del prepared
    await run.ended.wait()
    kept = run.prepared
    assert (len(kept.lines), kept.lines[-1]) == (1001, "and 2,000 more")
    assert kept.notes[1:] == ("and 4 more",)
    assert len(kept.command) < 33_000
    assert run.values == {}
    gc.collect()
    assert work() is None


async def test_a_change_takes_a_bounded_time(runner, change, path, monkeypatch):
    monkeypatch.setattr(runner_module, "LONGEST_S", 0.01)
    change.gate = asyncio.Event()
    run = await begun(runner, change)
    await run.ended.wait()
    assert (run.result, ends(path)) == ("timed-out", ["timed-out"])
    assert "after 3 of 10 letters" in run.message


async def test_a_bug_of_a_change_is_its_result(runner, change, path, caplog):
    change.failure = ZeroDivisionError()
    run = await begun(runner, change)
    await run.ended.wait()
    assert (run.result, ends(path)) == ("failed", ["failed"])
    assert "ZeroDivisionError" in caplog.text


async def test_running_changes_are_bounded(runner, change, monkeypatch):
    monkeypatch.setattr(runner_module, "_MOST_RUNNING", 2)
    change.gate = asyncio.Event()
    runs = [await begun(runner, change) for _ in range(2)]
    with pytest.raises(BusyError, match="2 changes are running"):
        await begun(runner, change)
    runs[0].stop(by="bert")
    runs[0].stop(by="anna")
    await runs[0].ended.wait()
    third = await begun(runner, change)
    change.gate.set()
    await third.ended.wait()
    await runs[1].ended.wait()
    assert [run.result for run in runner.of_cluster("dev")] == ["done", "done", "stopped"]


async def test_results_are_bounded_and_belong_to_a_cluster(runner, change, monkeypatch):
    monkeypatch.setattr(runner_module, "_MOST_KEPT", 3)
    runs = []
    for _ in range(5):
        runs.append(await begun(runner, change))
        await runs[-1].ended.wait()
    assert runner.of_cluster("dev") == runs[:1:-1]
    assert runner.get(runs[0].run_id, "dev") is None
    assert runner.get(runs[4].run_id, "dev") is runs[4]
    assert runner.get(runs[4].run_id, "test") is None


async def test_a_lost_end_is_in_the_consoles_log(runner, change, path, caplog):
    change.gate = asyncio.Event()
    run = await begun(runner, change)
    path.unlink()
    path.mkdir()
    change.gate.set()
    await run.ended.wait()
    assert run.result == "done"
    assert "the end of a change is not in the audit log" in caplog.text


class HeldLog(AuditLog):
    """An audit log whose next write takes until `may_write` is set."""

    __slots__ = ("is_writing", "may_write")

    def __init__(self, path: Path) -> None:
        super().__init__(path, SystemClock())
        self.is_writing = threading.Event()
        self.may_write = threading.Event()

    def _append(self, lines: bytes) -> None:
        self.is_writing.set()
        assert self.may_write.wait(PATIENCE_S)
        super()._append(lines)


@pytest.mark.parametrize("is_lost", [False, True], ids=["written", "kept"])
async def test_a_change_that_did_not_begin_before_the_end_of_the_console_is_stopped(
    change, path, is_lost
):
    audit = HeldLog(path)
    runner = ChangeRunner(audit, SystemClock())
    beginning = asyncio.create_task(begun(runner, change))
    await until(audit.is_writing.is_set)
    (run,) = runner.of_cluster("dev")
    beginning.cancel()
    await pause(0)
    closing = asyncio.create_task(runner.close())
    if is_lost:
        path.mkdir()
    audit.may_write.set()
    with pytest.raises(asyncio.CancelledError):
        await beginning
    if is_lost:
        assert audit._late
        path.rmdir()
    await closing
    assert run.ended.is_set()
    assert runner.of_cluster("dev") == []
    assert not change.has_begun.is_set()
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert (rows[-1]["result"], rows[-1]["message"]) == (
        "stopped",
        "the console ended before the change began",
    )
    assert [row["event"] for row in rows] == (["end"] if is_lost else ["begin", "end"])
