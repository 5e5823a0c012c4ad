"""The pending entries of one partition, indexed in SQLite.

The pending topic is the truth; this index can be rebuilt from it. It holds the entries as of
`next_offset`, and is never ahead of committed transactions. After a power failure it may be older
than its last commit, but not inconsistent: `synchronous` is NORMAL. A damaged index is rebuilt.

    entries   name, due (ms since 1970), id, value (entry.py). If `own_due` is not null, it is the
              due time, and `due` a later time: the entry is postponed until then.
    garbage   names of entries that ended, but are still in the topic. With an `entry`, the name
              must stay in the topic for as long as that entry waits.
    meta      next_offset, stamp_ms, topic
"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS entries
  (position INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, due INTEGER NOT NULL, id TEXT,
   value BLOB NOT NULL, own_due INTEGER);
CREATE INDEX IF NOT EXISTS entries_due ON entries (due, position);
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
_CACHE_KIB: Final = 4_096


# The due time of an entry, also if it is postponed.
_OWN_DUE: Final = "coalesce(own_due, due)"


class StoredEntry(NamedTuple):
    """A row of the index.

    Attributes:
        name: The entry's name.
        due_ms: When it is due, also if it is postponed; 0 if a command made it due.
        value: See entry.py.
    """

    name: str
    due_ms: int
    value: bytes


class PendingStore:
    """The index of one partition; `commit` makes the changes since the last one durable.

    Attributes:
        next_offset: The offset of the topic up to which the index is complete.
        stamp_ms: When it was last complete.
        topic_id: The id of the topic that it belongs to.
    """

    def __init__(self, path: Path | None) -> None:
        """Open an index, which is created if it is missing; None keeps it in memory.

        Raises:
            sqlite3.DatabaseError: The file is damaged, or has another version.
        """
        target = ":memory:" if path is None else str(path)
        # One thread at a time, which its owner sees to.
        self._database = sqlite3.connect(target, isolation_level=None, check_same_thread=False)
        try:
            self._open()
        except sqlite3.DatabaseError:
            self._database.close()
            raise

    def _open(self) -> None:
        run = self._database.execute
        run("PRAGMA journal_mode = WAL")
        run("PRAGMA synchronous = NORMAL")
        run(f"PRAGMA cache_size = -{_CACHE_KIB}")
        version = run("PRAGMA user_version").fetchone()[0]
        if version not in {0, _SCHEMA_VERSION}:
            raise sqlite3.DatabaseError(f"the index has version {version}")
        self._database.executescript(_SCHEMA)
        run(f"PRAGMA user_version = {_SCHEMA_VERSION}")
        meta = dict(run("SELECT name, value FROM meta"))
        self.next_offset = int(meta.get("next_offset", 0))
        self.stamp_ms = int(meta.get("stamp_ms", 0))
        self.topic_id = meta.get("topic", "")
        # Most partitions have none; then statements about it are left out.
        self._has_garbage = bool(run("SELECT EXISTS (SELECT 1 FROM garbage)").fetchone()[0])
        run("BEGIN")

    def put(self, name: str, due_ms: int, delivery_id: str | None, value: bytes) -> None:
        """Add an entry."""
        self._database.execute(
            "INSERT OR REPLACE INTO entries (name, due, id, value) VALUES (?, ?, ?, ?)",
            (name, due_ms, delivery_id, value),
        )

    def remove(self, name: str) -> bool:
        """Remove an entry and its garbage; return whether it was pending."""
        run = self._database.execute
        if self._has_garbage:
            run("DELETE FROM garbage WHERE name = ?", (name,))
        was_pending = run("DELETE FROM entries WHERE name = ?", (name,)).rowcount > 0
        if was_pending and self._has_garbage:
            run("UPDATE garbage SET entry = NULL WHERE entry = ?", (name,))
        return was_pending

    def set_due(self, name: str, due_ms: int) -> bool:
        """Change when an entry is due; return whether it is pending."""
        changed = self._database.execute(
            "UPDATE entries SET due = ?, own_due = NULL WHERE name = ?", (due_ms, name)
        )
        return changed.rowcount > 0

    def postpone(self, name: str, until_ms: int) -> None:
        """Hold back a due entry until a later time; its due time stays the same."""
        self._database.execute(
            f"UPDATE entries SET own_due = {_OWN_DUE}, due = ? WHERE name = ?",  # noqa: S608 - constant
            (until_ms, name),
        )

    def has(self, name: str) -> bool:
        """Return whether an entry is pending."""
        row = self._database.execute("SELECT 1 FROM entries WHERE name = ?", (name,)).fetchone()
        return row is not None

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

    def garbage(self, most: int) -> list[str]:
        """Return names to remove from the topic, in the order in which they became garbage."""
        if not self._has_garbage:
            return []
        rows = self._database.execute(
            "SELECT name FROM garbage WHERE entry IS NULL ORDER BY position LIMIT ?", (most,)
        )
        return [name for (name,) in rows]

    def garbage_of(self, entry: str) -> list[str]:
        """Return the names that end with an entry."""
        if not self._has_garbage:
            return []
        rows = self._database.execute("SELECT name FROM garbage WHERE entry = ?", (entry,))
        return [name for (name,) in rows]

    def due(self, now_ms: int, most: int) -> Iterator[StoredEntry]:
        """Yield the entries that can be delivered by a time, the earliest first, one by one.

        Postponed entries follow when their pause has ended.
        """
        rows = self._database.execute(
            f"SELECT name, {_OWN_DUE}, value FROM entries WHERE due <= ?"  # noqa: S608 - constant
            " ORDER BY due, position LIMIT ?",
            (now_ms, most),
        )
        try:
            for row in rows:
                yield StoredEntry(*row)
        finally:
            rows.close()

    def next_due_ms(self) -> int | None:
        """Return when the next entry is due, or its pause ends; None if none waits."""
        earliest: int | None = self._database.execute("SELECT min(due) FROM entries").fetchone()[0]
        return earliest

    def due_counts(self, limits_ms: list[int]) -> list[int]:
        """Return how many entries are due by each time, postponed ones included."""
        return [self._due_count(limit_ms) for limit_ms in limits_ms]

    def _due_count(self, limit_ms: int) -> int:
        run = self._database.execute
        (by_index,) = run("SELECT count(*) FROM entries WHERE due <= ?", (limit_ms,)).fetchone()
        (postponed,) = run(
            "SELECT count(*) FROM entries WHERE own_due <= ? AND due > ?", (limit_ms, limit_ms)
        ).fetchone()
        return int(by_index + postponed)

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
