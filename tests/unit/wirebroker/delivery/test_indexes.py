"""The index of pending entries on disk: durability, damage, and reading row by row."""

from __future__ import annotations

import sqlite3

import pytest

from wirebroker.delivery.pending.store import PendingStore
from wirebroker.delivery.service.errors import FencedError
from wirebroker.delivery.service.process import _rebuilding

NORMAL = 1


def test_an_index_survives_a_power_failure_in_a_consistent_state(tmp_path):
    store = PendingStore(tmp_path / "pending-0.sqlite")
    assert store._database.execute("PRAGMA synchronous").fetchone() == (NORMAL,)
    store.close()


def test_a_damaged_index_is_deleted_and_the_instance_starts_again(tmp_path):
    for name in ("pending-0.sqlite", "pending-0.sqlite-wal", "instance.id"):
        (tmp_path / name).touch()
    with pytest.raises(FencedError, match="rebuilt"), _rebuilding(tmp_path):
        raise sqlite3.DatabaseError("database disk image is malformed")
    assert [file.name for file in tmp_path.iterdir()] == ["instance.id"]


def test_an_index_stays_when_the_disk_is_full(tmp_path):
    (tmp_path / "pending-0.sqlite").touch()
    with pytest.raises(sqlite3.OperationalError), _rebuilding(tmp_path):
        raise sqlite3.OperationalError("database or disk is full")
    assert (tmp_path / "pending-0.sqlite").exists()


def test_garbage_is_kept_over_commits_and_restarts_until_it_is_removed(tmp_path):
    path = tmp_path / "pending-0.sqlite"
    store = PendingStore(path)
    store.put("entry", "orders", 5, None, b"v")
    store.add_garbage("command", while_pending="entry")
    store.commit(2, 0, "topic")
    assert (store.garbage(10), store.garbage_of("entry")) == ([], ["command"])
    store.close()
    store = PendingStore(path)
    assert store.remove("entry")
    assert store.garbage(10) == ["command"]
    store.remove("command")
    store.commit(4, 0, "topic")
    assert store.garbage(10) == []
    store.add_garbage("other")
    assert store.garbage(10) == ["other"]
    store.close()


def test_due_entries_are_read_one_by_one():
    store = PendingStore(None)
    for number in range(3):
        store.put(f"entry-{number}", "orders", number, None, b"v")
    rows = iter(store.due(10, 100))
    assert next(rows).name == "entry-0"
    store.close()
    with pytest.raises(sqlite3.ProgrammingError):
        next(rows)


def test_due_entries_of_all_queues_are_read_in_the_order_of_their_times():
    store = PendingStore(None)
    for number in range(200):
        store.put(f"entry-{number}", f"topic-{number}", 1_000 - number, None, b"v")
    assert [row.due_ms for row in store.due(1_000, 150)] == list(range(801, 951))
    assert store.next_due_ms() == 801
    queues = {queue for _, queue in store.due_queues(1_000)}
    assert len(queues) > 32
    for number in range(200):
        assert store.remove(f"entry-{number}")
    assert store.next_due_ms() is None
    assert store.due_queues(1_000) == []
    store.close()


def test_due_times_are_read_again_only_for_changed_queues():
    store = PendingStore(None)
    for number in range(200):
        store.put(f"entry-{number}", f"topic-{number}", 1_000 + number, None, b"v")
    assert store.next_due_ms() == 1_000
    statements: list[str] = []
    store._database.set_trace_callback(statements.append)
    assert store.next_due_ms() == 1_000
    assert len(store.due_queues(1_010)) == 11
    assert statements == []
    assert store.remove("entry-0")
    statements.clear()
    assert store.next_due_ms() == 1_001
    assert len(statements) == 1
    store.close()


def test_due_entries_are_counted_in_one_statement():
    store = PendingStore(None)
    for number in range(200):
        store.put(f"entry-{number}", f"topic-{number}", 1_000 + number, None, b"v")
    store.postpone("entry-0", 5_000)
    store.postpone("entry-1", 1_002)
    statements: list[str] = []
    store._database.set_trace_callback(statements.append)
    assert store.due_counts([999, 1_000, 1_001, 1_099, 4_000, 6_000]) == [0, 1, 2, 100, 200, 200]
    assert len(statements) == 1
    store.close()


def test_an_index_of_an_earlier_version_is_refused(tmp_path):
    path = tmp_path / "pending-0.sqlite"
    database = sqlite3.connect(path)
    database.execute("PRAGMA user_version = 1")
    database.close()
    with pytest.raises(sqlite3.DatabaseError, match="has version 1"):
        PendingStore(path)


@pytest.mark.parametrize(("count", "kib"), [(1, 4_096), (8, 4_096), (64, 512), (1_000, 64)])
def test_open_indexes_share_the_memory_for_pages(count, kib):
    store = PendingStore(None, open_count=count)
    assert store._database.execute("PRAGMA cache_size").fetchone() == (-kib,)
    store.close()
