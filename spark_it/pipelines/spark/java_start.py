"""Start Spark's Java process, and keep its last lines of standard error.

They say why the process does not start. All lines are passed on as they come.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections import deque
from typing import TYPE_CHECKING, Final

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException, PySparkRuntimeError
from pyspark.java_gateway import launch_gateway

from wirebroker.pipelines.job.errors import PipelineError, first_line
from wirebroker.pipelines.spark.start_failure import reason_in

if TYPE_CHECKING:
    from collections.abc import Mapping

# Errors of a Spark that runs: in its own words, or Java's (a worker that was killed).
OF_SPARK: Final = (PySparkException, Py4JJavaError)
# Without OF_SPARK: the Java process has ended.
SPARK_ENDED: Final = (Py4JError, ConnectionError)
_KEPT_LINES: Final = 400
_END_S: Final = 10.0


def start_java(settings: Mapping[str, str]) -> None:
    """Start Spark's Java process and its context, unless this process has them.

    Args:
        settings: Spark's settings.

    Raises:
        PipelineError: Spark does not start.
    """
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
    """A process's standard error: passes it on as it comes, and keeps the last lines.

    Attributes:
        writer: The descriptor for the process.
        last: The last lines.
    """

    def __init__(self) -> None:
        self.last: deque[str] = deque(maxlen=_KEPT_LINES)
        reader, self.writer = os.pipe()
        self._thread = threading.Thread(target=self._pass_on, args=(reader,), daemon=True)
        self._thread.start()

    def close_writer(self) -> None:
        """Close this process's copy, so that reading ends when the other process ends."""
        os.close(self.writer)

    def await_end(self) -> None:
        """Wait until the process has closed its standard error, at most _END_S."""
        self._thread.join(_END_S)

    def _pass_on(self, reader: int) -> None:
        with os.fdopen(reader, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                self.last.append(line)
                # On a full disk lines are lost; unread ones would block the process.
                with contextlib.suppress(OSError):
                    sys.stderr.write(line)
                    sys.stderr.flush()
