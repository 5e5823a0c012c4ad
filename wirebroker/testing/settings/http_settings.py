"""What `wirebroker serve --test-mode` sets: HTTP, by which tests take hold of the broker.

Whoever may ask there may have the broker do anything to its clients. So it is served on loopback
alone, or to those who bring a token.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.config import StartError

if TYPE_CHECKING:
    from wirebroker.config import Config

_ANY_PORT_HERE: Final = "127.0.0.1:0"


def settings_of_test_mode(config: Config) -> dict[str, str]:
    """Return what has to be set besides: HTTP is served somewhere.

    Raises:
        StartError: It would be open to everybody.
    """
    if config.bool("wirebroker.http.open") and not config.optional_str("wirebroker.http.token"):
        raise StartError(
            "--test-mode is not served open to everybody",
            "give a token (wirebroker.http.token) instead of wirebroker.http.open",
        )
    if config.list("wirebroker.http.listeners"):
        return {}
    return {"wirebroker.http.listeners": _ANY_PORT_HERE}
