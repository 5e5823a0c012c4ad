"""What is done on the event loop has to be brief; this says that something is not."""

from __future__ import annotations


class TakesLongError(Exception):
    """It would hold the event loop too long, and is given up: a thread, or slices, can do it.

    Nothing has changed.
    """
