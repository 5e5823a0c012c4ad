"""The program of streams/Application.java, compiled on first use."""

from __future__ import annotations

from functools import cache

from compat_tests.transactions.drivers.java_programs import streams_jars
from tests.support.brokers import java_start
from tests.support.tools import tools
from tests.support.tools.java_programs import compiled


@cache
def application_command() -> list[str]:
    """Return the command without arguments."""
    sources = tools.PROJECT / "compat_tests" / "groups" / "streams"
    jars = streams_jars()
    classes = compiled("streams-application", sources, jars)
    return java_start.command(
        "-Xmx256m", "Application", more_classes=classes, more_jars=jars, log_level="warn"
    )
