"""Default settings of test brokers, below the user's.

Internal topics have one partition: two times 50 cost a test suite a second.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from wirebroker.config import ConfigError
from wirebroker.config.hints import is_known, with_hint

if TYPE_CHECKING:
    from collections.abc import Mapping

# Type of a config's value in tests.
Setting: TypeAlias = "str | int | float | bool"

_ARGUMENT_OF: Final = {"--port N": "port=", "--data-dir DIR": "directory="}
_FOR_TESTS: Final = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}


def broker_settings(config: Mapping[str, Setting]) -> dict[str, str]:
    """Return a broker's settings, including the user's.

    Raises:
        ConfigError: A config is unknown.
    """
    check_names(config)
    return _FOR_TESTS | as_texts(config)


def with_kit_names(text: str) -> str:
    """Replace flags in an error's text with arguments of Broker."""
    for flag, argument in _ARGUMENT_OF.items():
        text = text.replace(flag, argument)
    return text


def check_names(config: Mapping[str, Setting]) -> None:
    """Raise ConfigError if a broker config is unknown."""
    for name in config:
        if not is_known(name):
            raise ConfigError(f"config: {with_hint(name)}: there is no such config")


def as_texts(config: Mapping[str, Setting]) -> dict[str, str]:
    """Return configs as Kafka writes them: True is `true`."""
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in config.items()
    }
