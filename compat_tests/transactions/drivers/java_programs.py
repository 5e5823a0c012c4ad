"""The Java programs of these tests and their jars, compiled on first use."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from tests.support.brokers import java_start
from tests.support.tools import tools
from tests.support.tools.java_programs import compiled

if TYPE_CHECKING:
    from pathlib import Path

_FOLDER = tools.PROJECT / "compat_tests" / "transactions"
_STREAMS_JARS = (
    f"org.apache.kafka:kafka-streams:{tools.KAFKA_VERSION}",
    "org.slf4j:slf4j-simple:1.7.36",
)
_COPIER = "org.apache.kafka.tools.TransactionalMessageCopier"


@cache
def transactions_command() -> list[str]:
    """Return the command of java/Transactions.java, without the address of the broker."""
    return _command(_FOLDER / "java", tools.kafka_jars(), "Transactions")


@cache
def words_command() -> list[str]:
    return _command(_FOLDER / "streams", streams_jars(), "Words")


@cache
def streams_jars() -> Path:
    name = f"kafka-streams-{tools.KAFKA_VERSION}"
    return tools._installed(name, lambda folder: tools._install_jars(_STREAMS_JARS, folder))


def copier_command() -> list[str]:
    return java_start.command("-Xmx256m", _COPIER)


def _command(sources: Path, jars: Path, main_class: str) -> list[str]:
    classes = compiled(main_class.lower(), sources, jars)
    more_jars = None if jars == tools.kafka_jars() else jars
    return java_start.command("-Xmx256m", main_class, more_classes=classes, more_jars=more_jars)
