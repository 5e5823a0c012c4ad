"""By which workers reach the controller that they bring: a name and a password of one run.

Where clients have to say who they are, or an authorizer says what they may do, the controller's
port on this machine is no way around it: it takes this one login, which nobody has written down.
The supervisor makes it up and hands it to the workers with their orders.
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
# Of chance, in the name, which tools show, and in the password.
_NAME_BYTES: Final = 8
_PASSWORD_BYTES: Final = 32


def is_protected(config: Config) -> bool:
    """Tell whether something keeps clients of these settings from doing everything unseen.

    Raises:
        ConfigError: A listener cannot be used.
    """
    protocols = {each.protocol for each in listeners_of(config)}
    return protocols != {"PLAINTEXT"} or bool(config.str(_AUTHORIZER))


def controller_login(config: Config, listener_name: str) -> dict[str, str]:
    """Return settings for all workers by which they, and nobody else, use a controller's listener.

    Args:
        config: What is set for all of them.
        listener_name: The listener's, of protocol SASL_PLAINTEXT: it is bound to this machine.
    """
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
        others = config.optional_str(_SUPER_USERS)
        settings[_SUPER_USERS] = ";".join([*([others] if others else []), f"User:{name}"])
    return settings
