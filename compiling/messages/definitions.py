"""The message definitions: those of kafka-python, with checked digests, and our own tables.

kafka-python.txt has a digest of the meaning of each message. A different one stops the build, so
the generated modules are always those that were tested.
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

# 3.0.0 to 3.0.12 have the same definitions.
KAFKA_PYTHON: Final = "kafka-python>=3.0,<3.1"

_RESOURCES: Final = Path("kafka", "protocol", "schemas", "resources")


class DefinitionsError(Exception):
    """kafka-python is missing, or its definitions differ from the checked ones."""


def all_schemas() -> list[MessageSchema]:
    """Return all messages, kafka-python's first.

    Raises:
        DefinitionsError.
    """
    kafka_python_schemas = [kafka_python_schema(name) for name in checked_digests()]
    wirebroker_schemas = [
        schema for path in sorted(TABLES.glob("*.txt")) for schema in table_schemas(path)
    ]
    names = [schema.name for schema in (*kafka_python_schemas, *wirebroker_schemas)]
    assert len(names) == len(set(names)), "a message is defined twice"
    return [*kafka_python_schemas, *wirebroker_schemas]


@cache
def kafka_python_schema(name: str) -> MessageSchema:
    """Return a message that is taken from kafka-python.

    Raises:
        DefinitionsError.
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
    """Return the messages of one of our tables."""
    return [] if path == CHECKED else parse_table(path.read_text(encoding="utf-8"))


@cache
def checked_digests() -> dict[str, str]:
    """Return the digests of kafka-python's messages, by name."""
    lines = CHECKED.read_text(encoding="utf-8").splitlines()
    pairs = [line.split() for line in lines if line and not line.startswith("#")]
    return {name: digest for name, digest in pairs}  # noqa: C416 - dict() takes no lists of str


def schema_digest(schema: MessageSchema) -> str:
    """Return a short digest of a definition's meaning."""
    return hashlib.sha256(repr(schema).encode()).hexdigest()[:16]


def _resources() -> Path:
    """Find kafka-python's definitions without importing it."""
    for entry in sys.path:
        folder = Path(entry, _RESOURCES)
        if folder.is_dir():
            return folder
    raise DefinitionsError(f"the message modules are made from {KAFKA_PYTHON}: install it")
