"""What every client can do with transactions, in the same words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

TRANSACTION_TIMEOUT_MS = 60_000


class FencedError(Exception):
    """A newer producer has this transactional id; the client said so in its own way."""


class Driver(Protocol):
    """A transactional producer with one transactional id; initialized when it is made.

    All methods raise FencedError when a newer producer has the transactional id.
    """

    def begin(self) -> None:
        """Begin a transaction."""

    def write(self, topic: str, values: Sequence[bytes]) -> None:
        """Write to partition 0 within the transaction; return when all are acknowledged."""

    def copy(self, source: str, target: str, group: str, count: int) -> None:
        """Copy `count` records within the transaction, upper-cased, and commit their offsets in it.

        They are read under read_committed from partition 0 by a member of the group, from its
        committed offset on. The member leaves before this returns.
        """

    def commit(self) -> None:
        """Commit the transaction."""

    def abort(self) -> None:
        """Abort the transaction."""

    def close(self) -> None:
        """End the producer; a transaction that is open stays so."""


class DriverFactory(Protocol):
    """One client."""

    def start(self, bootstrap: str, transactional_id: str) -> Driver:
        """Return an initialized producer."""

    def read(self, bootstrap: str, topic: str, count: int) -> list[bytes]:
        """Read so many values from the start of partition 0 under read_committed."""
