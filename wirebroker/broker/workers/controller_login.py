"""Generated login with which workers reach their controller.

If clients have to authenticate, or an authorizer is configured, the controller's local port must
not bypass that: it accepts only this login, which is valid for one run.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from wirebroker.config.java.jaas import LOGIN_MODULES
from wirebroker.config.listeners.listeners import listeners_of

if TYPE_CHECKING:
    from wirebroker.config import Config

_AUTHORIZER: Final = "authorizer.class.name"
_SUPER_USERS: Final = "super.users"
# Random bytes; tools display the name.
_NAME_BYTES: Final = 8
_PASSWORD_BYTES: Final = 32


def is_protected(config: Config) -> bool:
    """Return whether clients' access is restricted or encrypted.

    Raises:
        ConfigError: A listener cannot be used.
    """
    protocols = {listener.protocol for listener in listeners_of(config)}
    return protocols != {"PLAINTEXT"} or bool(config.str(_AUTHORIZER))


def controller_login(config: Config, listener_name: str) -> dict[str, str]:
    """Return settings by which only the workers can use a local SASL_PLAINTEXT listener."""
    name = f"worker-{os.urandom(_NAME_BYTES).hex()}"
    password = os.urandom(_PASSWORD_BYTES).hex()
    prefix = f"listener.name.{listener_name.lower()}."
    settings = {
        "sasl.mechanism.controller.protocol": "PLAIN",
        f"{prefix}sasl.enabled.mechanisms": "PLAIN",
        f"{prefix}plain.sasl.jaas.config": (
            f'{LOGIN_MODULES["PLAIN"]} required username="{name}" password="{password}" '
            f'user_{name}="{password}";'
        ),
    }
    if config.str(_AUTHORIZER):
        super_users = config.optional_str(_SUPER_USERS)
        settings[_SUPER_USERS] = ";".join([*([super_users] if super_users else []), f"User:{name}"])
    return settings
