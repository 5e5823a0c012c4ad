"""The HTTP settings of `wirebroker serve --test-mode`.

Its HTTP interface controls the broker, so it is served on loopback or to clients with a token.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.config import StartError

if TYPE_CHECKING:
    from wirebroker.config import Config

_ANY_PORT_HERE: Final = "127.0.0.1:0"


def settings_of_test_mode(config: Config) -> dict[str, str]:
    """Return the settings to add, so that HTTP is served.

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
