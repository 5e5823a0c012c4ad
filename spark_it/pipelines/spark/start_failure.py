"""Why Spark's Java process did not start: Java is missing, or Ivy cannot download a jar."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

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
