"""The common interface to all clients' transactions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

TRANSACTION_TIMEOUT_MS = 60_000


class FencedError(Exception):
    """A newer producer has this transactional id."""


class Driver(Protocol):
    """An initialized transactional producer with one transactional id.

    All methods raise FencedError when a newer producer has the transactional id.
    """

    def begin(self) -> None:
        """Begin a transaction."""

    def write(self, topic: str, values: Sequence[bytes]) -> None:
        """Produce to partition 0 within the transaction; return when all are acknowledged."""

    def copy(self, source: str, target: str, group: str, count: int) -> None:
        """Copy `count` records in upper case and commit their offsets within the transaction.

        A group member reads them from partition 0 as read_committed, from its committed offset on,
        and leaves before this returns.
        """

    def commit(self) -> None:
        """Commit the transaction."""

    def abort(self) -> None:
        """Abort the transaction."""

    def close(self) -> None:
        """End the producer; an open transaction stays open."""


class DriverFactory(Protocol):
    def start(self, bootstrap: str, transactional_id: str) -> Driver:
        """Return an initialized producer."""

    def read(self, bootstrap: str, topic: str, count: int) -> list[bytes]:
        """Read `count` values from the start of partition 0 as read_committed."""
