"""How long a partition has made no progress, and why."""

from __future__ import annotations


class Waits:
    """The wait for one partition.

    Attributes:
        reason: A sentence; "" without a wait.
    """

    __slots__ = ("_is_told", "_since", "reason")

    def __init__(self) -> None:
        self.reason = ""
        self._since: float | None = None
        self._is_told = False

    def begin(self, reason: str, now: float) -> None:
        """Note missing progress; the time counts from the first note."""
        self.reason = reason
        if self._since is None:
            self._since = now

    def end(self) -> None:
        """Note progress."""
        self.reason = ""
        self._since = None
        self._is_told = False

    def have_lasted_since(self, moment: float) -> bool:
        """Return whether there was no progress since a moment, in monotonic seconds."""
        return self._since is not None and self._since <= moment

    def is_to_be_told(self) -> bool:
        """Return True once for each wait, to log its reason."""
        is_new = not self._is_told
        self._is_told = True
        return is_new
