"""Checks of a job's table [reader], the options of Spark's reader.

The connector ignores unknown names, and reports invalid values only when a query runs.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from wirebroker.pipelines.job.errors import JobFileError
from wirebroker.pipelines.job.job_file import like
from wirebroker.segments.errors import OptionError
from wirebroker.segments.options import parse_options

if TYPE_CHECKING:
    from collections.abc import Mapping

# Source: the connector's KafkaSourceProvider.
_OF_THE_CONNECTOR: Final = (
    "startingOffsets",
    "startingTimestamp",
    "startingOffsetsByTimestamp",
    "startingOffsetsByTimestampStrategy",
    "failOnDataLoss",
    "minPartitions",
    "maxRecordsPerPartition",
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "kafkaConsumer.pollTimeoutMs",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    "groupIdPrefix",
)
_OF_A_CLIENT: Final = "kafka."
# Set by the job.
_OF_THE_JOB: Final = (
    "path",
    "subscribe",
    "subscribePattern",
    "assign",
    "includeHeaders",
    "columns",
    "includeControlRecords",
    "kafka.bootstrap.servers",
)
# How Java and the data source report an invalid option, except an address that cannot be
# resolved, which may be temporary.
_REFUSAL: Final = re.compile(
    r"\b(?:IllegalArgumentException|NumberFormatException|ConfigException|OptionError"
    r"|AssertionError: assertion failed(?=: If )): (?!No resolvable)(.+)"
)


def check_reader(path: str, reader_options: Mapping[str, Any]) -> None:
    """Check the options in a table [reader]; raise JobFileError."""
    own = {name.lower() for name in _OF_THE_JOB}
    for name in reader_options:
        if name.lower() in own:
            raise JobFileError(f"[reader] {name} is set by the job")
    if path:
        options = {"path": path, "subscribe": "a", **texts_of(reader_options)}
        try:
            parse_options(options, is_stream=True)
        except OptionError as error:
            raise JobFileError(f"[reader] {error}") from error
        return
    names = {name.lower(): name for name in _OF_THE_CONNECTOR}
    for name in reader_options:
        if name.lower() not in names and not name.lower().startswith(_OF_A_CLIENT):
            raise JobFileError(
                f"[reader] there is no option {name}{like(name, names.values())}; "
                "settings of Kafka's client begin with kafka."
            )


def texts_of(options: Mapping[str, Any]) -> dict[str, str]:
    """Return options as texts for Spark."""
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in options.items()
    }


def of_a_client(options: Mapping[str, Any]) -> dict[str, str]:
    """Return the options for Kafka's client."""
    texts = texts_of(options)
    return {name: value for name, value in texts.items() if name.lower().startswith(_OF_A_CLIENT)}


def refusal_in(error: Exception) -> str | None:
    """Return why Spark rejects an option, or None."""
    # Java's exception classes appear only in the stack trace.
    match = _REFUSAL.search(f"{error}\n{getattr(error, '_stackTrace', '')}")
    return match[1].strip() if match else None
