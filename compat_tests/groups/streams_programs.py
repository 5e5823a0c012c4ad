"""The program of streams/Application.java, compiled on first use."""

from __future__ import annotations

from functools import cache

from compat_tests.support.java_programs import compiled
from compat_tests.transactions.drivers.java_programs import streams_jars
from tests.support.tools import tools

# For a quick start: no second compiler, no collector threads.
_OPTIONS = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_LOG = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"


@cache
def application_command() -> list[str]:
    """Return the command without arguments."""
    sources = tools.PROJECT / "compat_tests" / "groups" / "streams"
    jars = streams_jars()
    classes = compiled("streams-application", sources, jars)
    return [tools.java_command(), *_OPTIONS, _LOG, "-cp", f"{classes}:{jars}/*", "Application"]
