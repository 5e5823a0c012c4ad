"""What a broker for tests is told, below what its user sets.

Everything is as without a configuration file, but for fewer partitions of internal topics: 50 for
the offsets of groups and 50 for transactions take a second of a suite to make and end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from wirebroker.config import ConfigError
from wirebroker.config.hints import is_known, with_hint

if TYPE_CHECKING:
    from collections.abc import Mapping

# How a test writes a value of a config.
Setting: TypeAlias = "str | int | float | bool"

_ARGUMENT_OF: Final = {"--port N": "port=", "--data-dir DIR": "directory="}
_FOR_TESTS: Final = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}


def broker_settings(config: Mapping[str, Setting]) -> dict[str, str]:
    """Return a broker's settings, those of its user included.

    Raises:
        ConfigError: One of the user's does not exist.
    """
    check_names(config)
    return _FOR_TESTS | as_texts(config)


def in_kit_words(text: str) -> str:
    """Return the text of an error with arguments of Broker in place of flags."""
    for flag, argument in _ARGUMENT_OF.items():
        text = text.replace(flag, argument)
    return text


def check_names(config: Mapping[str, Setting]) -> None:
    """Refuse broker configs that do not exist.

    Raises:
        ConfigError: One does not.
    """
    for name in config:
        if not is_known(name):
            raise ConfigError(f"config: {with_hint(name)}: there is no such config")


def as_texts(config: Mapping[str, Setting]) -> dict[str, str]:
    """Return configs as Kafka writes them: True is `true`."""
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in config.items()
    }
