"""Settings of test brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from wirebroker.config import ConfigError, StartError
from wirebroker.config.hints import is_known, with_hint

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.config import Config

Setting: TypeAlias = "str | int | float | bool"

_ANY_PORT_HERE: Final = "127.0.0.1:0"
_ARGUMENT_OF: Final = {"--port N": "port=", "--data-dir DIR": "directory="}
# Two times 50 partitions would cost a test suite a second.
_FOR_TESTS: Final = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
}


def broker_settings(config: Mapping[str, Setting]) -> dict[str, str]:
    """Return a broker's settings: the defaults and the user's.

    Raises:
        ConfigError: A config is unknown.
    """
    check_names(config)
    return _FOR_TESTS | as_texts(config)


def with_kit_names(text: str) -> str:
    """Replace flags in a text with Broker's arguments."""
    for flag, argument in _ARGUMENT_OF.items():
        text = text.replace(flag, argument)
    return text


def check_names(config: Mapping[str, Setting]) -> None:
    """Raise ConfigError if a broker config is unknown."""
    for name in config:
        if not is_known(name):
            raise ConfigError(f"config: {with_hint(name)}: there is no such config")


def as_texts(config: Mapping[str, Setting]) -> dict[str, str]:
    """Return configs as Kafka writes them."""
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in config.items()
    }


def settings_of_test_mode(config: Config) -> dict[str, str]:
    """Return the settings to add for HTTP, which is on loopback or requires a token.

    Raises:
        StartError: HTTP would be open to all clients.
    """
    if config.bool("wirebroker.http.open") and not config.optional_str("wirebroker.http.token"):
        raise StartError(
            "--test-mode needs a token",
            "set wirebroker.http.token instead of wirebroker.http.open",
        )
    if config.list("wirebroker.http.listeners"):
        return {}
    return {"wirebroker.http.listeners": _ANY_PORT_HERE}
