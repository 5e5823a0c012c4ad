"""The group that stores the progress of redrives of a topic."""

from __future__ import annotations


def redrive_group(topic: str) -> str:
    """Return the name of the group, which is also the transactional id of a redrive."""
    return f"wirebroker-redrive.{topic}"
