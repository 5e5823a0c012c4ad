"""How long a partition has made no progress, and why."""

from __future__ import annotations


class Waits:
    """The wait for one partition.

    Attributes:
        reason: A sentence; "" without a wait.
    """

    __slots__ = ("_has_logged", "_since", "reason")

    def __init__(self) -> None:
        self.reason = ""
        self._since: float | None = None
        self._has_logged = False

    def begin(self, reason: str, now: float) -> None:
        """Note missing progress; the time counts from the first note."""
        self.reason = reason
        if self._since is None:
            self._since = now

    def end(self) -> None:
        """Note progress."""
        self.reason = ""
        self._since = None
        self._has_logged = False

    def have_lasted_since(self, monotonic_s: float) -> bool:
        """Return whether there was no progress since a moment, in monotonic seconds."""
        return self._since is not None and self._since <= monotonic_s

    def should_log(self) -> bool:
        """Return True once for each wait, to log its reason."""
        is_new = not self._has_logged
        self._has_logged = True
        return is_new
