"""The start of Spark's Java process; its last lines of standard error explain failures."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import threading
from collections import deque
from typing import TYPE_CHECKING, Final

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException, PySparkRuntimeError
from pyspark.java_gateway import launch_gateway

from wirebroker.pipelines.job.errors import PipelineError, first_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# Errors of a running Spark: its own, or Java's (a killed worker).
OF_SPARK: Final = (PySparkException, Py4JJavaError)
# Other errors than OF_SPARK: the Java process has ended.
SPARK_ENDED: Final = (Py4JError, ConnectionError)
_KEPT_LINES: Final = 400
_END_S: Final = 10.0


def start_java(settings: Mapping[str, str]) -> None:
    """Start Spark's Java process and context if missing; raise PipelineError on failure."""
    if SparkContext._gateway is not None:
        return
    conf = SparkConf()
    for name, value in settings.items():
        conf.set(name, value)
    written = _ErrorLines()
    try:
        gateway = launch_gateway(conf, {"stderr": written.writer})
    except (PySparkRuntimeError, OSError) as error:
        written.close_writer()
        written.await_end()
        raise PipelineError(f"Spark does not start: {reason_in(written.last, error)}") from error
    written.close_writer()
    try:
        SparkContext(conf=conf, gateway=gateway)
    except Py4JJavaError as error:
        raise PipelineError(f"Spark does not start: {first_line(error)}") from error


class _ErrorLines:
    """A process's standard error, passed on; the last lines are kept.

    Attributes:
        writer: The descriptor for the process.
    """

    def __init__(self) -> None:
        self.last: deque[str] = deque(maxlen=_KEPT_LINES)
        reader, self.writer = os.pipe()
        self._thread = threading.Thread(target=self._pass_on, args=(reader,), daemon=True)
        self._thread.start()

    def close_writer(self) -> None:
        """Close this process's copy, so that reading ends with the other process."""
        os.close(self.writer)

    def await_end(self) -> None:
        """Wait up to _END_S until the process has closed its standard error."""
        self._thread.join(_END_S)

    def _pass_on(self, reader: int) -> None:
        with os.fdopen(reader, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                self.last.append(line)
                # A full disk loses lines; unread ones would block the process.
                with contextlib.suppress(OSError):
                    sys.stderr.write(line)
                    sys.stderr.flush()


# Why Spark's Java process did not start: Java is missing, or Ivy cannot download a jar

_MOST_REASONS: Final = 4
_JAVA: Final = "Java 17 or later must be on PATH, or in JAVA_HOME"
_NO_JAVA: Final = re.compile(
    r"JAVA_HOME is not set|java: (?:No such file|not found|command not found)|/java: .*(?:directory"
    r"|denied|execute)|UnsupportedClassVersionError|Unrecognized option: --add-"
)
# Ivy's lines about missing jars and unreachable repositories.
_OF_IVY: Final = re.compile(
    r"(?::: )?(\S+: (?:not found|download failed)|Host \S+ not found.*|Server access [Ee]rror.*)"
)
# One of Spark's own repositories, which never has the connector.
_UNUSED_REPOSITORY: Final = "spark-packages"
_EXCEPTION: Final = 'Exception in thread "main" '
_LAST_LINES: Final = 3
_FETCH_HELP: Final = (
    "Spark downloads the connector of its version from Maven's central repository, which lacks "
    "it for some versions of PySpark; pip install 'wirebroker[spark]' installs one that has it. "
    'If the repository cannot be reached, name the jars as "spark.jars" in [spark]'
)


def reason_in(lines: Iterable[str], error: Exception) -> str:
    """Return why Java did not start, from its output and PySpark's error."""
    output_lines = [line.strip() for line in lines if line.strip()]
    of_java = [line for line in output_lines if _NO_JAVA.search(line)]
    if of_java or not output_lines:
        return f"{_JAVA}: {of_java[0] if of_java else error}"
    of_ivy = [match[1] for match in map(_OF_IVY.fullmatch, output_lines) if match]
    reasons = [reason for reason in dict.fromkeys(of_ivy) if _UNUSED_REPOSITORY not in reason]
    if reasons:
        return f"Ivy: {'; '.join(reasons[:_MOST_REASONS])}. {_FETCH_HELP}"
    thrown = [line.removeprefix(_EXCEPTION) for line in output_lines if line.startswith(_EXCEPTION)]
    return "; ".join(thrown[:1] or output_lines[-_LAST_LINES:])
