"""Options that make Java processes start quickly, because the tests start hundreds of them.

They disable the second compiler and the collector's threads, and load classes from a class data
archive of an earlier run. This saves 60 % of the CPU time of Apache Kafka's start. Benchmarks do
not use these options.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from functools import cache
from typing import TYPE_CHECKING

from tests.support.tools import tools

if TYPE_CHECKING:
    from pathlib import Path

_COMPILE_ONCE = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
# Keep the JVM's warnings about an unusable archive out of a tool's standard output.
_QUIET = ("-Xlog:disable", "-Xlog:all=error:stderr")
_ARCHIVE = "classes.jsa"
# The JVM writes the archive when it exits, which takes some seconds of CPU time.
_ARCHIVE_S = 300.0


@cache
def options() -> tuple[str, ...]:
    """Return the JVM options for a quick start; class paths must begin with `kafka_path()`."""
    # Java prints the options of this variable, which would change the digest.
    own = {name: value for name, value in os.environ.items() if name != "JAVA_TOOL_OPTIONS"}
    version_command = [tools.java_command(), "-version"]
    version = subprocess.run(version_command, capture_output=True, check=True, env=own)
    jars = str(tools.kafka_jars()).encode()
    of_this_java = hashlib.sha256(version.stderr + jars).hexdigest()[:12]
    folder = tools._installed(f"kafka-{tools.KAFKA_VERSION}-{of_this_java}", _run_a_broker)
    return (*_COMPILE_ONCE, *_QUIET, f"-XX:SharedArchiveFile={folder / _ARCHIVE}")


def kafka_path() -> str:
    return f"{tools.kafka_jars()}/*"


def command(
    heap: str,
    main_class: str,
    *,
    more_classes: Path | None = None,
    more_jars: Path | None = None,
    log_level: str = "error",
) -> list[str]:
    """Return the command of a Java program on Kafka's jars, without arguments.

    Args:
        heap: Heap size option, such as "-Xmx128m".
        main_class: Its full name.
        more_classes: A folder with further classes.
        more_jars: A folder with further jars.
        log_level: Of its log lines, which go to the standard error.
    """
    path = kafka_path()
    if more_classes is not None:
        path += f":{more_classes}"
    if more_jars is not None:
        path += f":{more_jars}/*"
    level = f"-Dorg.slf4j.simpleLogger.defaultLogLevel={log_level}"
    return [tools.java_command(), heap, *options(), level, "-cp", path, main_class]


def _run_a_broker(folder: Path) -> None:
    """Format, start and stop Apache Kafka to archive the classes that it loads."""
    from tests.support.brokers.brokers import ApacheKafka  # imports this module

    archive = f"-XX:ArchiveClassesAtExit={folder / _ARCHIVE}"
    broker = ApacheKafka(folder / "broker", java_options=(*_COMPILE_ONCE, *_QUIET, archive))
    broker.start()
    broker.stop(timeout_s=_ARCHIVE_S)
    shutil.rmtree(broker.directory)
