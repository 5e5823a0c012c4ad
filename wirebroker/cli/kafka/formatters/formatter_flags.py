"""Flags of the console consumers that choose how records are printed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypedDict, TypeVar

import click

from wirebroker.cli.kafka.formatters.named_formatters import (
    DEFAULT_FORMATTER,
    FORMATTERS,
    formatter_of,
)
from wirebroker.cli.kafka.plumbing.properties import pairs_of, properties_in
from wirebroker.cli.plumbing.file_path import FilePath
from wirebroker.client.configs.configs import TOPIC, configs_of
from wirebroker.client.errors import ClientError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from wirebroker.cli.kafka.formatters.named_formatters import Formatter
    from wirebroker.client.kafka_client import KafkaClient

_Command = TypeVar("_Command", bound="Callable[..., int]")
_TIMESTAMP_TYPE: Final = "message.timestamp.type"


class FormatterFlags(TypedDict):
    """The flags."""

    formatter: str
    formatter_config: Path | None
    formatter_properties: tuple[str, ...]
    old_properties: tuple[str, ...]
    key_deserializer: str | None
    value_deserializer: str | None


def formatter_flags(command: _Command) -> _Command:
    """Add the flags to a command."""
    for option in (
        click.option("--value-deserializer", metavar="CLASS", help="Deserializer of values."),
        click.option("--key-deserializer", metavar="CLASS", help="Deserializer of keys."),
        click.option(
            "--formatter-config",
            type=FilePath(exists=True, dir_okay=False),
            metavar="FILE",
            help="File with properties of the formatter.",
        ),
        click.option(
            "--property",
            "old_properties",
            multiple=True,
            metavar="KEY=VALUE",
            help="Deprecated: use --formatter-property.",
        ),
        click.option(
            "--formatter-property",
            "formatter_properties",
            multiple=True,
            metavar="KEY=VALUE",
            help="Property of the formatter: print.key=true, print.headers, print.timestamp, …",
        ),
        click.option(
            "--formatter",
            default=DEFAULT_FORMATTER,
            metavar="CLASS",
            help="Kafka class that formats records. [default: DefaultMessageFormatter]",
        ),
    ):
        command = option(command)
    return command


def chosen_formatter(flags: FormatterFlags) -> Formatter:
    """Return the formatter, or raise click.UsageError for an unknown one."""
    if flags["formatter"] not in FORMATTERS:
        supported = ", ".join(FORMATTERS)
        raise click.UsageError(f"unknown formatter {flags['formatter']}; there are {supported}")
    properties = properties_in(flags["formatter_config"])
    properties |= pairs_of(flags["old_properties"] + flags["formatter_properties"])
    classes = {
        "key.deserializer": flags["key_deserializer"],
        "value.deserializer": flags["value_deserializer"],
    }
    properties |= {
        name: class_name for name, class_name in classes.items() if class_name is not None
    }
    return formatter_of(flags["formatter"], properties)


async def timestamp_type_of(client: KafkaClient, topic: str) -> str:
    """Return a topic's timestamp type, CreateTime if unknown."""
    try:
        configs = await configs_of(client, TOPIC, topic, names=[_TIMESTAMP_TYPE])
    except ClientError as error:
        if not error.code:
            raise
        return "CreateTime"
    return next((config.value or "CreateTime" for config in configs), "CreateTime")
