"""Properties of scripts, from flags and files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def pairs_of(texts: tuple[str, ...]) -> dict[str, str]:
    """Parse `key=value` properties; the value may be missing."""
    properties: dict[str, str] = {}
    for text in texts:
        key, _, value = text.partition("=")
        if not key:
            raise click.UsageError(f"{text} is no property: write key=value")
        properties[key] = value
    return properties


def properties_in(file: Path | None) -> dict[str, str]:
    """Return a file's properties, or none."""
    if file is None:
        return {}
    from wirebroker.config.java.properties import parse_properties  # noqa: PLC0415 - for those files

    return parse_properties(file.read_text(encoding="utf-8"))


def client_properties(file: Path | None, texts: tuple[str, ...]) -> dict[str, str]:
    """Return the properties of a file and flags, with config providers resolved."""
    properties = properties_in(file) | pairs_of(texts)
    if not any(name.startswith("config.") for name in properties):
        return properties
    from wirebroker.config.rows.row import ConfigError  # noqa: PLC0415 - few clients have providers
    from wirebroker.config.sources.sources import without_placeholders  # noqa: PLC0415

    try:
        return without_placeholders(properties, os.environ)
    except ConfigError as error:
        raise click.UsageError(f"a client property cannot be used: {error}") from None


def is_true(properties: Mapping[str, str], name: str, *, otherwise: bool = False) -> bool:
    """Return whether a property is true."""
    text = properties.get(name)
    return otherwise if text is None else text.strip().lower() == "true"


def told_of_newer_names(used: Mapping[str, tuple[str, tuple[str, ...]]]) -> None:
    """Warn of flags with newer names (KIP-1147).

    `used` has, by a flag's older name, the newer name and the flag's values.
    """
    for old, (new, values) in used.items():
        if values:
            click.echo(f"{old} is the older name of {new}", err=True)
