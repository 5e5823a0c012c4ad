"""The first SCRAM users of a new cluster, in the format of the Kafka storage tool.

    SCRAM-SHA-256=[name=alice,password=alice-secret]
    SCRAM-SHA-512=[name=alice,iterations=8192,salt=<base64>,saltedpassword=<base64>]

Source: KIP-900; Kafka's ScramParser.
"""

from __future__ import annotations

import base64
import binascii
import re
import secrets
from typing import TYPE_CHECKING, Final

from wirebroker.codecs.scram import (
    LEAST_ITERATIONS,
    MOST_ITERATIONS,
    SALT_BITS,
    SCRAM_NUMBERS,
    keys_of,
    salt_of,
    salted_password,
)
from wirebroker.config.rows.row import ConfigError
from wirebroker.coordinator.controller.security.scram_control import scram_user_record

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wirebroker.codecs.metadata_records import MetadataRecord

_USER: Final = re.compile(r"(SCRAM-SHA-256|SCRAM-SHA-512)=\[(.*)\]", re.DOTALL)
_NAMES: Final = frozenset({"name", "password", "salt", "saltedpassword", "iterations"})


def first_users(texts: Iterable[str]) -> list[MetadataRecord]:
    """Return the records of the users.

    Raises:
        ConfigError: A text is invalid; the message omits it, since it contains a password.
    """
    records: dict[tuple[str, str], MetadataRecord] = {}
    for text in texts:
        match = _USER.fullmatch(text.strip())
        if match is None:
            raise ConfigError(
                "--add-scram: write SCRAM-SHA-256=[name=NAME,password=PASSWORD], or SCRAM-SHA-512"
            )
        fields = _fields(match[2])
        key = (match[1], fields["name"])
        if key in records:
            raise ConfigError(f"--add-scram: {fields['name']} is given twice for {match[1]}")
        records[key] = _record(match[1], fields)
    return list(records.values())


def _fields(text: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    for part in text.split(","):
        name, equals, value = part.strip().partition("=")
        if not equals or name not in _NAMES or name in fields:
            allowed_names = ", ".join(sorted(_NAMES))
            raise ConfigError(
                f"--add-scram: inside [] write name=value, with the names {allowed_names}"
            )
        fields[name] = value.strip('"') if len(value) > 1 else value
    if not fields.get("name"):
        raise ConfigError("--add-scram: name is missing")
    if ("password" in fields) == ("saltedpassword" in fields):
        raise ConfigError("--add-scram: give either password or saltedpassword")
    if not fields.get("password", "-"):
        raise ConfigError("--add-scram: the password is empty")
    if "saltedpassword" in fields and "salt" not in fields:
        raise ConfigError("--add-scram: a saltedpassword needs its salt")
    return fields


def _record(mechanism: str, fields: dict[str, str]) -> MetadataRecord:
    number = SCRAM_NUMBERS[mechanism]
    iterations_text = fields.get("iterations", str(LEAST_ITERATIONS))
    iterations = (
        int(iterations_text)
        if iterations_text.isascii() and iterations_text.isdigit() and len(iterations_text) < 9
        else 0
    )
    if not LEAST_ITERATIONS <= iterations <= MOST_ITERATIONS:
        raise ConfigError(
            f"--add-scram: iterations must be from {LEAST_ITERATIONS} to {MOST_ITERATIONS}"
        )
    salt = _decoded(fields["salt"]) if "salt" in fields else _salt()
    if "password" in fields:
        salted = salted_password(number, fields["password"], salt, iterations)
    else:
        salted = _decoded(fields["saltedpassword"])
    keys = keys_of(number, salted, salt=salt, iterations=iterations)
    return scram_user_record(fields["name"], number, keys)


def _salt() -> bytes:
    return salt_of(secrets.randbits(SALT_BITS))


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise ConfigError("--add-scram: salt and saltedpassword must be base64") from None
