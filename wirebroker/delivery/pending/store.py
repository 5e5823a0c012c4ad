"""The pending entries of one partition, indexed in SQLite.

The pending topic is the truth; this index can be rebuilt from it. It holds the entries as of
`next_offset`, and is never ahead of committed transactions. After a power failure it may be older
than its last commit, but not inconsistent: `synchronous` is NORMAL. A damaged index is rebuilt.

    entries   name, due (ms since 1970), id, value (entry.py). Entries for one topic are in one
              queue. If `own_due` is not null, it is the due time, and `due` a later time: the entry
              is postponed until then.
    garbage   names of entries that ended, but are still in the topic. With an `entry`, the name
              must stay in the topic for as long as that entry waits.
    meta      next_offset, stamp_ms, topic
"""

from __future__ import annotations

import heapq
import sqlite3
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.client.records.partitioning import partition_for
from wirebroker.delivery.pending.earliest_times import EarliestTimes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS entries
  (position INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, queue INTEGER NOT NULL,
   due INTEGER NOT NULL, id TEXT, value BLOB NOT NULL, own_due INTEGER);
CREATE INDEX IF NOT EXISTS entries_due ON entries (queue, due);
CREATE INDEX IF NOT EXISTS entries_id ON entries (id) WHERE id IS NOT NULL;
CREATE INDEX IF NOT EXISTS entries_own_due ON entries (own_due) WHERE own_due IS NOT NULL;
CREATE TABLE IF NOT EXISTS garbage
  (position INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, entry TEXT);
CREATE INDEX IF NOT EXISTS garbage_entry ON garbage (entry) WHERE entry IS NOT NULL;
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
"""
# Changes with the schema; an index with another version is rebuilt.
_SCHEMA_VERSION: Final = 2
# Pages in memory, in KiB: a part of the memory bound of docs/delivery.md.
_MOST_CACHE_KIB: Final = 4_096
_LEAST_CACHE_KIB: Final = 64
_CACHE_KIB_OF_ALL: Final = 32_768
# A few topics are rarely in the same queue; each has its earliest due time in memory.
_QUEUES: Final = 64
# The due time of an entry, even if it is postponed.
_OWN_DUE: Final = "coalesce(own_due, due)"
# How many entries are due by a time, and how many were, but are postponed beyond it. Conditions of
# entries_due and entries_own_due: a sum over all rows takes three times as long.
_DUE_COUNT: Final = (
    "(SELECT count(*) FROM entries WHERE due <= ?{0} AND queue IN ({1}))"
    " + (SELECT count(*) FROM entries WHERE own_due <= ?{0} AND due > ?{0})"
)
_BY_DUE_TIME: Final = attrgetter("due_ms")


class _Place(NamedTuple):
    """Where an entry is in the index."""

    position: int
    queue: int
    due_ms: int


class StoredEntry(NamedTuple):
    """A row of the index.

    Attributes:
        name: The entry's name.
        due_ms: When it is due, even if it is postponed; 0 if a command made it due.
        value: See entry.py.
    """

    name: str
    due_ms: int
    value: bytes


class PendingStore:
    """The index of one partition; `commit` makes the changes since the last one durable.

    Attributes:
        path: The file, or None if it is in memory.
        next_offset: The offset of the topic up to which the index is complete.
        stamp_ms: When it was last complete.
        topic_id: The id of the topic that it belongs to.
    """

    def __init__(self, path: Path | None, *, open_count: int = 1) -> None:
        """Open an index, or create it if it is missing; without a path it is in memory.

        `open_count` is the number of indexes that are open at the same time: they share the memory.

        Raises:
            sqlite3.DatabaseError: The file is damaged, or has another version.
        """
        self.path = path
        target = ":memory:" if path is None else str(path)
        # One thread at a time, which its owner sees to.
        self._database = sqlite3.connect(target, isolation_level=None, check_same_thread=False)
        try:
            self._open(open_count)
        except sqlite3.DatabaseError:
            self._database.close()
            raise

    def _open(self, open_count: int) -> None:
        run = self._database.execute
        run("PRAGMA journal_mode = WAL")
        run("PRAGMA synchronous = NORMAL")
        cache_kib = min(max(_CACHE_KIB_OF_ALL // open_count, _LEAST_CACHE_KIB), _MOST_CACHE_KIB)
        run(f"PRAGMA cache_size = -{cache_kib}")
        version = run("PRAGMA user_version").fetchone()[0]
        if version not in {0, _SCHEMA_VERSION}:
            raise sqlite3.DatabaseError(f"the index has version {version}")
        self._database.executescript(_SCHEMA)
        run(f"PRAGMA user_version = {_SCHEMA_VERSION}")
        meta = dict(run("SELECT name, value FROM meta"))
        self.next_offset = int(meta.get("next_offset", 0))
        self.stamp_ms = int(meta.get("stamp_ms", 0))
        self.topic_id = meta.get("topic", "")
        self._earliest = EarliestTimes(_QUEUES, self._earliest_of)
        # Most partitions have none; then statements about it are left out.
        self._has_garbage = bool(run("SELECT EXISTS (SELECT 1 FROM garbage)").fetchone()[0])
        run("BEGIN")

    def put(
        self, name: str, target: str, due_ms: int, delivery_id: str | None, value: bytes
    ) -> None:
        """Add an entry for a topic, perhaps again; then its name is no longer garbage."""
        if self._has_garbage:
            self._database.execute("DELETE FROM garbage WHERE name = ?", (name,))
        queue = partition_for(target.encode(), _QUEUES)
        row = (name, queue, due_ms, delivery_id, value)
        columns = "INTO entries (name, queue, due, id, value) VALUES (?, ?, ?, ?, ?)"
        if not self._database.execute(f"INSERT OR IGNORE {columns}", row).rowcount:
            self._remove_entry(name)
            self._database.execute(f"INSERT {columns}", row)
        self._earliest.add(queue, due_ms)

    def remove(self, name: str) -> bool:
        """Remove an entry and its garbage; return whether it was pending."""
        run = self._database.execute
        if self._has_garbage:
            run("DELETE FROM garbage WHERE name = ?", (name,))
        was_pending = self._remove_entry(name)
        if was_pending and self._has_garbage:
            run("UPDATE garbage SET entry = NULL WHERE entry = ?", (name,))
        return was_pending

    def _remove_entry(self, name: str) -> bool:
        place = self._place(name)
        if place is None:
            return False
        self._database.execute("DELETE FROM entries WHERE position = ?", (place.position,))
        self._earliest.remove(place.queue, place.due_ms)
        return True

    def set_due(self, name: str, due_ms: int) -> bool:
        """Change when an entry is due; return whether it is pending."""
        return self._move(name, due_ms, "NULL")

    def postpone(self, name: str, until_ms: int) -> None:
        """Hold back a due entry until a later time; its due time stays the same."""
        self._move(name, until_ms, _OWN_DUE)

    def _move(self, name: str, due_ms: int, own_due: str) -> bool:
        place = self._place(name)
        if place is None:
            return False
        self._database.execute(
            f"UPDATE entries SET own_due = {own_due}, due = ? WHERE position = ?",  # noqa: S608 - constant
            (due_ms, place.position),
        )
        self._earliest.remove(place.queue, place.due_ms)
        self._earliest.add(place.queue, due_ms)
        return True

    def _place(self, name: str) -> _Place | None:
        """Return where a pending entry is; None if it is not pending."""
        row = self._database.execute(
            "SELECT position, queue, due FROM entries WHERE name = ?", (name,)
        ).fetchone()
        return None if row is None else _Place(*row)

    def has(self, name: str) -> bool:
        """Return whether an entry is pending."""
        return self._place(name) is not None

    def entry(self, name: str) -> StoredEntry | None:
        """Return a pending entry; None if it is not pending."""
        row = self._database.execute(
            f"SELECT name, {_OWN_DUE}, value FROM entries WHERE name = ?",  # noqa: S608 - constant
            (name,),
        ).fetchone()
        return None if row is None else StoredEntry(*row)

    def name_of(self, delivery_id: str) -> str | None:
        """Return the name of the entry with an id."""
        row = self._database.execute(
            "SELECT name FROM entries WHERE id = ?", (delivery_id,)
        ).fetchone()
        return None if row is None else row[0]

    def add_garbage(self, name: str, *, while_pending: str | None = None) -> None:
        """Note that a name is to be removed from the topic, once an entry has ended."""
        self._has_garbage = True
        self._database.execute(
            "INSERT OR REPLACE INTO garbage (name, entry) VALUES (?, ?)", (name, while_pending)
        )

    @property
    def has_garbage(self) -> bool:
        """Whether there may be garbage."""
        return self._has_garbage

    def garbage(self, most: int, skipped: int = 0) -> list[str]:
        """Return names to remove from the topic, in the order in which they became garbage."""
        if not self._has_garbage or most <= 0:
            return []
        rows = self._database.execute(
            "SELECT name FROM garbage WHERE entry IS NULL ORDER BY position LIMIT ? OFFSET ?",
            (most, skipped),
        )
        return [name for (name,) in rows]

    def garbage_of(self, entry: str) -> list[str]:
        """Return the names that end with an entry."""
        if not self._has_garbage:
            return []
        rows = self._database.execute("SELECT name FROM garbage WHERE entry = ?", (entry,))
        return [name for (name,) in rows]

    def due(self, now_ms: int, most: int) -> Iterator[StoredEntry]:
        """Yield the entries of all queues that are due by a time, the earliest first."""
        queues = [
            self.due_in_queue(queue, now_ms, most) for queue in sorted(self._earliest.by_queue())
        ]
        yield from islice(heapq.merge(*queues, key=_BY_DUE_TIME), most)

    def due_in_queue(self, queue: int, now_ms: int, most: int) -> Iterator[StoredEntry]:
        """Yield the entries of a queue that can be delivered by a time, the earliest first.

        They are read one by one. Postponed entries are included once their pause has ended.
        """
        rows = self._database.execute(
            f"SELECT name, {_OWN_DUE}, value FROM entries WHERE queue = ? AND due <= ?"  # noqa: S608 - constant
            " ORDER BY due, position LIMIT ?",
            (queue, now_ms, most),
        )
        try:
            for row in rows:
                yield StoredEntry(*row)
        finally:
            rows.close()

    def next_due_ms(self) -> int | None:
        """Return when the next entry is due, or its pause ends; None if none waits."""
        return min(self._earliest.by_queue().values(), default=None)

    def due_queues(self, now_ms: int) -> list[tuple[int, int]]:
        """Return the queues with deliverable entries: the earliest due time and the number."""
        earliest = self._earliest.by_queue()
        return [(due_ms, queue) for queue, due_ms in earliest.items() if due_ms <= now_ms]

    def _earliest_of(self, queue: int) -> int | None:
        (due_ms,) = self._database.execute(
            "SELECT min(due) FROM entries WHERE queue = ?", (queue,)
        ).fetchone()
        return None if due_ms is None else int(due_ms)

    def due_counts(self, limits_ms: list[int]) -> list[int]:
        """Return how many entries are due by each time, postponed ones included."""
        return _due_counts(self._database, limits_ms)

    def commit(self, next_offset: int, stamp_ms: int, topic_id: str) -> None:
        """Make the changes durable; the index is complete up to an offset at a time."""
        run = self._database.execute
        self.next_offset, self.stamp_ms, self.topic_id = next_offset, stamp_ms, topic_id
        for name, value in (
            ("next_offset", next_offset),
            ("stamp_ms", stamp_ms),
            ("topic", topic_id),
        ):
            run("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, str(value)))
        if self._has_garbage:
            self._has_garbage = bool(run("SELECT EXISTS (SELECT 1 FROM garbage)").fetchone()[0])
        run("COMMIT")
        run("BEGIN")

    def close(self) -> None:
        """Close the file; changes since the last commit are lost."""
        self._database.close()


def saved_due_counts(path: Path, limits_ms: list[int]) -> list[int] | None:
    """Return `due_counts` of an index as of its last commit; any thread may call this.

    Return None if the file is missing or has another version: it may be replaced meanwhile.
    """
    try:
        database = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        try:
            return _due_counts(database, limits_ms)
        finally:
            database.close()
    except sqlite3.Error:
        return None


def _due_counts(database: sqlite3.Connection, limits_ms: list[int]) -> list[int]:
    """Return `due_counts` of one state: a single statement does not see later commits."""
    queues = ", ".join(map(str, range(_QUEUES)))
    numbers = range(1, len(limits_ms) + 1)
    columns = ", ".join(_DUE_COUNT.format(number, queues) for number in numbers)
    row = database.execute(f"SELECT {columns}", limits_ms).fetchone()
    return [int(count) for count in row]
