"""Java processes that start quickly: hundreds of them are started by the tests.

No second compiler, no threads for the collector, and the classes of a broker that has run once,
as the JVM wants them in memory (a class data archive). Apache Kafka is formatted and started for
2.0 s of processor time so, instead of 5.0; a command-line tool takes two thirds of what it took.
Benchmarks don't use this: Apache Kafka runs as its scripts start it there.
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
# What the JVM says of an archive that it can't use would stand among what a tool prints.
_QUIET = ("-Xlog:disable", "-Xlog:all=error:stderr")
_ERRORS_ONLY = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
_ARCHIVE = "classes.jsa"


@cache
def options() -> tuple[str, ...]:
    """Return the options of a quick start; class paths begin with `kafka_path()`."""
    # Java says which options it picked up there: they are a test's own, and make no other Java.
    own = {name: value for name, value in os.environ.items() if name != "JAVA_TOOL_OPTIONS"}
    asked = [tools.java_command(), "-version"]
    version = subprocess.run(asked, capture_output=True, check=True, env=own)
    jars = str(tools.kafka_jars()).encode()
    of_this_java = hashlib.sha256(version.stderr + jars).hexdigest()[:12]
    folder = tools._installed(f"kafka-{tools.KAFKA_VERSION}-{of_this_java}", _run_a_broker)
    return (*_COMPILE_ONCE, *_QUIET, f"-XX:SharedArchiveFile={folder / _ARCHIVE}")


def kafka_path() -> str:
    """Return the class path that the archive was made with."""
    return f"{tools.kafka_jars()}/*"


def command(heap: str, main_class: str, *, more_classes: Path | None = None) -> list[str]:
    """Return the command of a Java program on Kafka's jars; its arguments follow.

    Args:
        heap: Option for its most memory, "-Xmx128m".
        main_class: Its full name.
        more_classes: A folder of classes beside Kafka's.
    """
    path = kafka_path() if more_classes is None else f"{kafka_path()}:{more_classes}"
    return [tools.java_command(), heap, *options(), _ERRORS_ONLY, "-cp", path, main_class]


def _run_a_broker(folder: Path) -> None:
    """Run Apache Kafka from its format to its stop; what it has loaded is archived."""
    from tests.support.brokers.brokers import ApacheKafka  # which starts quickly by this module

    archive = f"-XX:ArchiveClassesAtExit={folder / _ARCHIVE}"
    broker = ApacheKafka(folder / "broker", java_options=(*_COMPILE_ONCE, *_QUIET, archive))
    broker.start()
    broker.stop()
    shutil.rmtree(broker.directory)
