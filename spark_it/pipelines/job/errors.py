"""Errors that end a job with a message for users; others are bugs and print a traceback."""

from __future__ import annotations

import re
from typing import Final

_MOST_TOLD: Final = 500
# The last line of a traceback: "package.SomeError: words".
_OF_AN_ERROR: Final = re.compile(r"[\w.]*(Error|Exception): ")


class PipelineError(Exception):
    """A job cannot continue; the message says what to change."""


class JobFileError(PipelineError):
    """A job's file or settings are invalid."""


class PositionError(PipelineError):
    """A job's positions in its group and its checkpoint do not match."""


class PatienceError(PipelineError):
    """A job failed repeatedly without progress."""


class BadRowError(Exception):
    """A row does not match the schema; the message is its dead letter's reason."""


def first_line(error: Exception) -> str:
    """Return the most useful line of an error: Python's message, else Java's."""
    lines = [line.strip(" :\t") for line in str(error).splitlines()]
    error_lines = [line for line in lines if _OF_AN_ERROR.match(line)]
    python = [line for line in error_lines if not line.startswith(("org.", "java."))]
    candidates = python or error_lines or list(filter(None, lines)) or [repr(error)]
    return candidates[0][:_MOST_TOLD]
