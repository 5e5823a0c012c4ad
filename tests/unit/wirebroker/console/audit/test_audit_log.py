from __future__ import annotations

import asyncio
import json
import os
import stat
import threading
from pathlib import Path

import pytest

from tests.support.records.clocks import HandClock
from tests.support.tools.waiting import PATIENCE_S
from wirebroker.base.clock import next_turn
from wirebroker.console.audit.audit_entry import AuditEntry, line_of
from wirebroker.console.audit.audit_log import AuditError, AuditLog

EVIL = '"}\n{"event": "login"}\r\n\x00\x1b[2J\u2028\u202e\ud800'


@pytest.fixture
def log(tmp_path):
    opened = AuditLog(tmp_path / "state" / "audit.log", HandClock())
    yield opened
    opened.close()


def entries(log: AuditLog) -> list[dict[str, object]]:
    return [json.loads(line) for line in log.path.read_bytes().split(b"\n")[:-1]]


async def test_entries_are_appended_as_lines(log):
    await log.write(AuditEntry("login", "anna", "192.0.2.1"))
    await log.write(
        AuditEntry("begin", None, "192.0.2.1", cluster="dev", values={"topic": "orders"})
    )
    first, second = entries(log)
    assert first == {
        "time": "2023-11-14T22:13:20.000+00:00",
        "event": "login",
        "user": "anna",
        "address": "192.0.2.1",
        "via": "browser",
    }
    assert second["user"] is None
    assert second["values"] == {"topic": "orders"}
    assert stat.S_IMODE(log.path.stat().st_mode) == 0o600


def test_no_value_can_forge_a_line():
    line = line_of(AuditEntry("begin", EVIL, EVIL, target=EVIL, values={EVIL: EVIL}), 0)
    assert line.count(b"\n") == 1
    assert line.isascii()
    assert all(byte >= 32 for byte in line[:-1])
    assert json.loads(line)["target"] == EVIL


def test_long_values_are_shortened():
    entry = AuditEntry("begin", "a", "b", target="x" * 5000, values={"value": "y" * 50_000})
    assert len(line_of(entry, 0)) < 35_000


async def test_a_rotated_file_is_begun_again(log):
    await log.write(AuditEntry("login", "anna", "a"))
    log.path.rename(log.path.with_suffix(".1"))
    await log.write(AuditEntry("login", "bert", "a"))
    assert [entry["user"] for entry in entries(log)] == ["bert"]


async def test_a_torn_line_does_not_damage_the_next(log):
    log.path.parent.mkdir()
    log.path.write_bytes(b'{"event": "be')
    await log.write(AuditEntry("login", "anna", "a"))
    torn, whole = log.path.read_bytes().splitlines()
    assert torn == b'{"event": "be'
    assert json.loads(whole)["user"] == "anna"


async def test_an_entry_that_cannot_be_written_is_an_error(log, monkeypatch):
    def fail(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    await log.write(AuditEntry("login", "anna", "a"))
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(AuditError, match=r"no space left on device .*--audit-log FILE"):
        await log.write(AuditEntry("login", "anna", "a"))


async def test_a_folder_that_cannot_be_made_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    log = AuditLog(tmp_path / "file" / "audit.log", HandClock())
    with pytest.raises(AuditError, match="cannot write the audit log"):
        await log.write(AuditEntry("login", "anna", "a"))
    with pytest.raises(AuditError, match="cannot write the audit log"):
        log.open()


async def test_parallel_entries_are_whole(log):
    await asyncio.gather(*(log.write(AuditEntry("login", f"u{n}", "a")) for n in range(50)))
    assert sorted(str(entry["user"]) for entry in entries(log)) == sorted(
        f"u{n}" for n in range(50)
    )


async def test_an_entry_that_is_kept_is_written_before_the_next(log):
    log.path.mkdir(parents=True)
    for number in range(250):
        with pytest.raises(AuditError):
            await log.write_or_keep(AuditEntry("end", f"u{number}", "a"))
    with pytest.raises(AuditError):
        await log.write(AuditEntry("begin", "lost", "a"))
    log.path.rmdir()
    await log.write(AuditEntry("login", "anna", "a"))
    kept = [f"u{number}" for number in range(50, 250)]
    assert [entry["user"] for entry in entries(log)] == [*kept, "anna"]
    await log.write_kept()
    await log.write(AuditEntry("login", "bert", "a"))
    assert [entry["user"] for entry in entries(log)] == [*kept, "anna", "bert"]


async def test_the_last_kept_entries_are_written_at_the_end(log):
    log.path.mkdir(parents=True)
    with pytest.raises(AuditError):
        await log.write_or_keep(AuditEntry("end", "anna", "a"))
    log.path.rmdir()
    await log.write_kept()
    assert [entry["user"] for entry in entries(log)] == ["anna"]


@pytest.mark.parametrize("kind", ["fifo", "folder", "device"])
def test_only_a_regular_file_is_a_log(tmp_path, kind):
    path = tmp_path / "log"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path = Path(os.devnull)
    with pytest.raises(AuditError, match=r"it is not a regular file|is a directory"):
        AuditLog(path, HandClock()).open()


class HeldLog(AuditLog):
    """Appends only after `may_end` is set."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, HandClock())
        self.is_begun, self.may_end = threading.Event(), threading.Event()

    def _append(self, lines: bytes) -> None:
        self.is_begun.set()
        assert self.may_end.wait(PATIENCE_S)
        super()._append(lines)


async def test_kept_entries_are_written_after_a_cancelled_write_has_ended(tmp_path):
    log = HeldLog(tmp_path / "audit.log")
    login = asyncio.create_task(log.write(AuditEntry("login", "anna", "192.0.2.1")))
    assert await asyncio.to_thread(log.is_begun.wait, PATIENCE_S)
    login.cancel()
    last = asyncio.create_task(log.write_kept())
    await next_turn()
    await next_turn()
    assert login.cancelled()
    assert not last.done()
    log.may_end.set()
    await last
    assert [entry["event"] for entry in entries(log)] == ["login"]
    log.close()
