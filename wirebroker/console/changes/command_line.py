"""Command lines that make the same change, quoted for a POSIX shell.

A command names the brokers. If a cluster has more settings, such as a login, it names a file with
the cluster's section of the console's file: `CLUSTER.properties`.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from wirebroker.console.model.settings import ClusterSettings

_PROGRAM: Final = "wirebroker"
_BOOTSTRAP: Final = "bootstrap.servers"
# Settings of the console, not of its client.
_OF_CONSOLE: Final = "wirebroker."


def verb_line(
    settings: ClusterSettings,
    verb: str,
    flags: Iterable[str] = (),
    arguments: Sequence[str] = (),
) -> str:
    """Return a command line of a verb, such as `user delete`.

    `flags` are its flags with their values, `arguments` its other arguments.
    """
    cluster = ["-b", settings.bootstrap]
    if _has_security(settings):
        cluster += ["--client-config", _file_of(settings)]
    is_like_flag = any(argument.startswith("-") and argument != "-" for argument in arguments)
    end_of_flags = ["--"] if is_like_flag else []
    return shlex.join([_PROGRAM, *verb.split(), *cluster, *flags, *end_of_flags, *arguments])


def kafka_line(settings: ClusterSettings, tool: str, flags: Iterable[str]) -> str:
    """Return a command line of one of Kafka's own tools, such as `kafka-acls`."""
    cluster = ["--bootstrap-server", settings.bootstrap]
    if _has_security(settings):
        cluster += ["--command-config", _file_of(settings)]
    return shlex.join([_PROGRAM, tool, *cluster, *flags])


def piped(text: str, command: str) -> str:
    """Return a command line that reads a text from standard input."""
    return f"printf %s {shlex.quote(text)} | {command}"


def _has_security(settings: ClusterSettings) -> bool:
    return any(
        name != _BOOTSTRAP and not name.startswith(_OF_CONSOLE) for name in settings.properties
    )


def _file_of(settings: ClusterSettings) -> str:
    return f"{settings.name}.properties"
