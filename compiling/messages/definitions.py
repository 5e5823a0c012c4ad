"""Where the definitions are: kafka-python's, as they were checked, and tables of our own.

kafka-python.txt names each message that is taken from kafka-python with a digest of its meaning
(comments and spelling aside). Another meaning stops the build: whatever release makes them, the
modules are those that were tested.
"""

from __future__ import annotations

import hashlib
import sys
from functools import cache
from pathlib import Path
from typing import Final

from compiling.messages.schema import MessageSchema, parse_json_schema, parse_table

TABLES: Final = Path(__file__).resolve().parent.parent / "tables"
CHECKED: Final = TABLES / "kafka-python.txt"

# All of 3.0.0 to 3.0.12 have the same definitions.
KAFKA_PYTHON: Final = "kafka-python>=3.0,<3.1"

_RESOURCES: Final = Path("kafka", "protocol", "schemas", "resources")


class DefinitionsError(Exception):
    """kafka-python is not there, or does not define what was checked."""


def all_schemas() -> list[MessageSchema]:
    """Return every message, kafka-python's first.

    Raises:
        DefinitionsError: See there.
    """
    theirs = [kafka_python_schema(name) for name in checked_digests()]
    ours = [schema for path in sorted(TABLES.glob("*.txt")) for schema in table_schemas(path)]
    names = [schema.name for schema in (*theirs, *ours)]
    assert len(names) == len(set(names)), "a message is defined twice"
    return [*theirs, *ours]


@cache
def kafka_python_schema(name: str) -> MessageSchema:
    """Return one of the messages that are taken from kafka-python.

    Raises:
        DefinitionsError: See there.
    """
    path = _resources() / f"{name}.json"
    if not path.is_file():
        raise DefinitionsError(f"{path} is missing: install {KAFKA_PYTHON}")
    schema = parse_json_schema(path.read_text(encoding="utf-8"))
    if schema_digest(schema) != checked_digests()[name]:
        raise DefinitionsError(f"{path} means another {name} than was checked: see {CHECKED}")
    return schema


@cache
def table_schemas(path: Path) -> list[MessageSchema]:
    """Return the messages of a table of our own."""
    return [] if path == CHECKED else parse_table(path.read_text(encoding="utf-8"))


@cache
def checked_digests() -> dict[str, str]:
    """Return the names of what is taken from kafka-python, each with its digest."""
    lines = CHECKED.read_text(encoding="utf-8").splitlines()
    pairs = [line.split() for line in lines if line and not line.startswith("#")]
    return {name: digest for name, digest in pairs}  # noqa: C416 - dict() takes no lists of str


def schema_digest(schema: MessageSchema) -> str:
    """Return a short digest of everything that a definition says."""
    return hashlib.sha256(repr(schema).encode()).hexdigest()[:16]


def _resources() -> Path:
    """Find kafka-python's definitions without importing it, nor a folder kafka/ that lies about."""
    for entry in sys.path:
        folder = Path(entry, _RESOURCES)
        if folder.is_dir():
            return folder
    raise DefinitionsError(f"the message modules are made from {KAFKA_PYTHON}: install it")
