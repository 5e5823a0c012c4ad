"""The error for work that is too long for the event loop."""

from __future__ import annotations


class TakesLongError(Exception):
    """The call would block the event loop for too long; nothing has changed."""
