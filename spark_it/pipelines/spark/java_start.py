"""The start of Spark's Java process."""

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
    """A process's standard error (`writer`), passed on; the last lines are kept."""

    def __init__(self) -> None:
        self.last: deque[str] = deque(maxlen=_KEPT_LINES)
        reader, self.writer = os.pipe()
        self._thread = threading.Thread(target=self._pass_on, args=(reader,), daemon=True)
        self._thread.start()

    def close_writer(self) -> None:
        os.close(self.writer)

    def await_end(self) -> None:
        self._thread.join(_END_S)

    def _pass_on(self, reader: int) -> None:
        with os.fdopen(reader, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                self.last.append(line)
                # A full disk loses lines; unread ones would block the process.
                with contextlib.suppress(OSError):
                    sys.stderr.write(line)
                    sys.stderr.flush()
