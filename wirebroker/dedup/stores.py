"""Stores of ids: in memory, in SQLite, or behind any DB-API connection (PEP 249)."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pathlib import Path

# The marks of two arguments, by paramstyle.
_MARKS: Final = {
    "qmark": ("?", "?"),
    "format": ("%s", "%s"),
    "pyformat": ("%s", "%s"),
    "numeric": (":1", ":2"),
    "named": (":a1", ":a2"),
}


class MemoryStore:
    """Ids in memory: a restart of the consumer forgets them."""

    def __init__(self) -> None:
        # In the order of marking.
        self._seen_ms: dict[str, int] = {}
        self._begun: tuple[str, int] | None = None

    def begin(self, message: str, now_ms: int) -> bool:
        """See IdStore."""
        if message in self._seen_ms:
            return False
        self._begun = message, now_ms
        return True

    def commit(self) -> None:
        """See IdStore."""
        assert self._begun is not None, "begin came first"
        self._seen_ms[self._begun[0]] = self._begun[1]
        self._begun = None

    def rollback(self) -> None:
        """See IdStore."""
        self._begun = None

    def trim(self, before_ms: int, most: int) -> None:
        """See IdStore."""
        surplus = len(self._seen_ms) - most
        old: list[str] = []
        for message, seen_ms in self._seen_ms.items():
            if len(old) >= surplus and seen_ms >= before_ms:
                break
            old.append(message)
        for message in old:
            del self._seen_ms[message]


class DatabaseStore:
    """Ids in a table of a database.

    The application's changes on the same connection are committed together with the mark. Do not
    commit inside the block of `once`, and turn autocommit off. The database must support LIMIT with
    OFFSET and CREATE TABLE IF NOT EXISTS.
    """

    def __init__(
        self, connection: Any, *, table: str = "processed_messages", paramstyle: str = "qmark"
    ) -> None:
        """Create the table if it is missing.

        Args:
            connection: Of any driver with transactions.
            table: The table's name.
            paramstyle: The driver module's `paramstyle`.

        Raises:
            ValueError: The table's name or the style is not supported, the connection is in
                autocommit mode, or the table does not distinguish all ids.
        """
        if not table.isidentifier() or not table.isascii():
            raise ValueError(f"{table!r} is not a table's name: use letters, digits and _")
        if paramstyle not in _MARKS:
            raise ValueError(f"paramstyle {paramstyle!r} is not one of {', '.join(_MARKS)}")
        if _is_autocommitting(connection):
            raise ValueError(
                "the connection commits each statement, so a message that failed would count as"
                " processed: turn autocommit off"
            )
        self.connection = connection
        self._table = table
        self._marks = _MARKS[paramstyle]
        self._is_named = paramstyle == "named"
        if not self._exists():
            self._create()
        if not self._distinguishes():
            raise ValueError(
                f"column id of table {table} does not compare ids exactly, so messages would be"
                " lost: create the table with a binary collation of this column, without padding"
            )

    def _exists(self) -> bool:
        # The application may have changed something on this connection.
        self.connection.commit()
        try:
            self._run(f"SELECT 1 FROM {self._table} WHERE id = ''").fetchone()  # noqa: S608 - checked
        except Exception:  # noqa: BLE001 - each driver has its own
            return False
        finally:
            self.connection.rollback()
        return True

    def _create(self) -> None:
        """Create the table with an index for `trim`; another consumer may do it as well."""
        self._run(
            f"CREATE TABLE IF NOT EXISTS {self._table} "
            "(id VARCHAR(512) NOT NULL PRIMARY KEY, seen_ms BIGINT NOT NULL)"
        )
        self.connection.commit()
        try:
            self._run(f"CREATE INDEX {self._table}_seen ON {self._table} (seen_ms)")
        except Exception:  # noqa: BLE001 - it exists, and not every database has IF NOT EXISTS
            self.connection.rollback()
        else:
            self.connection.commit()

    def _distinguishes(self) -> bool:
        """Return whether the column distinguishes letter case and spaces at the end.

        UNION gives the literal the column's collation; no row is read.
        """
        ids = f"SELECT id FROM {self._table} WHERE 1 = 0 UNION ALL SELECT 'a'"  # noqa: S608 - checked
        try:
            found = self._run(f"SELECT 1 FROM ({ids}) probe WHERE id = 'A' OR id = 'a '").fetchone()  # noqa: S608
        except Exception:  # noqa: BLE001 - a database with another syntax
            return True
        finally:
            self.connection.rollback()
        return found is None

    def begin(self, message: str, now_ms: int) -> bool:
        """See IdStore; a mark that another consumer has not committed yet is waited for."""
        first, second = self._marks
        table = self._table
        found = self._run(f"SELECT 1 FROM {table} WHERE id = {first}", message).fetchone()  # noqa: S608 - checked
        if found is not None:
            self.connection.rollback()
            return False
        try:
            self._run(f"INSERT INTO {table} VALUES ({first}, {second})", message, now_ms)  # noqa: S608
        except Exception as error:  # each driver has its own errors
            self.connection.rollback()
            if _is_integrity_error(error):
                return False
            raise
        return True

    def commit(self) -> None:
        """See IdStore."""
        self.connection.commit()

    def rollback(self) -> None:
        """See IdStore."""
        self.connection.rollback()

    def trim(self, before_ms: int, most: int) -> None:
        """See IdStore."""
        try:
            self._trim(before_ms, most)
        except Exception:  # each driver has its own errors
            self.connection.rollback()
            raise
        self.connection.commit()

    def _trim(self, before_ms: int, most: int) -> None:
        table, (first, _) = self._table, self._marks
        row = self._run(
            f"SELECT seen_ms FROM {table} ORDER BY seen_ms DESC LIMIT 1 OFFSET {int(most)}"  # noqa: S608
        ).fetchone()
        # Ids of the same millisecond go together.
        limit_ms = before_ms if row is None else max(before_ms, row[0] + 1)
        self._run(f"DELETE FROM {table} WHERE seen_ms < {first}", limit_ms)  # noqa: S608

    def _run(self, statement: str, *arguments: object) -> Any:
        cursor = self.connection.cursor()
        names = {f"a{number}": value for number, value in enumerate(arguments, 1)}
        cursor.execute(statement, names if self._is_named else arguments)
        return cursor


class SqliteStore(DatabaseStore):
    """Ids in a file of SQLite.

    Use `connection` for changes that are committed together with the marks.
    """

    def __init__(self, path: str | Path) -> None:
        """Open or create the file."""
        super().__init__(sqlite3.connect(path))


def _is_autocommitting(connection: Any) -> bool:
    """Return whether a connection is in autocommit mode, as far as its driver says."""
    autocommit = getattr(connection, "autocommit", None)
    if isinstance(connection, sqlite3.Connection) and autocommit is not False:
        # Unless `autocommit` is set, the isolation level decides.
        return autocommit is True or connection.isolation_level is None
    return autocommit is True


def _is_integrity_error(error: Exception) -> bool:
    """Return whether a row with this id exists: each driver has its own class of this name."""
    return any(kind.__name__ == "IntegrityError" for kind in type(error).__mro__)
