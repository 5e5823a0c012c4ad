"""The machine's view of the topics of the cluster."""

from __future__ import annotations

from typing import Protocol


class KnownTopics(Protocol):
    """The topics of the cluster."""

    def partition_count(self, topic: str, *, at_least: int = 1) -> int:
        """Return the number of partitions, 0 if there is no such topic.

        Requests the metadata again if fewer than `at_least` are known.
        """
        ...

    def may_write(self, topic: str) -> bool:
        """Return whether the login may write to a topic; True if there is no such topic."""
        ...
