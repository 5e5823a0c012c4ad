"""What ends a pipeline with a message for people; anything else is a fault and has a traceback."""

from __future__ import annotations

import re
from typing import Final

_MOST_TOLD: Final = 500
# A line as tracebacks end with: "package.SomeError: words".
_OF_AN_ERROR: Final = re.compile(r"[\w.]*(Error|Exception): ")


class PipelineError(Exception):
    """A job cannot go on as it is; the message says what to change."""


class JobFileError(PipelineError):
    """A job's file that cannot be used."""


class PositionError(PipelineError):
    """What the group says of a job's batches and what its checkpoint says do not go together."""


class PatienceError(PipelineError):
    """A job failed again and again, and did not get on."""


class BadRowError(Exception):
    """A row that is not of the schema; the message is the reason that its dead letter carries."""


def first_line(error: Exception) -> str:
    """Return what a person wants to know of a failure: what Python said, else what Java did."""
    lines = [line.strip(" :\t") for line in str(error).splitlines()]
    told = [line for line in lines if _OF_AN_ERROR.match(line)]
    python = [line for line in told if not line.startswith(("org.", "java."))]
    return (python[:1] or told[:1] or list(filter(None, lines)) or [repr(error)])[0][:_MOST_TOLD]
