"""What ends a pipeline with a message for people; anything else is a fault and has a traceback."""

from __future__ import annotations


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
