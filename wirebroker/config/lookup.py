"""The row of a broker config by its name, also of one that a single listener has for itself.

    max.connections                                 of the broker
    listener.name.internal.max.connections          of its listener INTERNAL; else the broker's

A leaf.  Source: Kafka's DynamicBrokerConfig.brokerConfigSynonyms.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from wirebroker.config.row import ConfigType, Effect, Mutability, OfListener
from wirebroker.config.table import BROKER_ROWS, ROWS

if TYPE_CHECKING:
    from wirebroker.config.row import ConfigRow

# Configs of which a listener's own value is read here.
READ_PER_LISTENER: Final = tuple(
    name for name, row in BROKER_ROWS.items() if row.of_listener is OfListener.CLUSTER_WIDE
)
_OF_A_LISTENER: Final = re.compile(r"listener\.name\.[^.]*\.(.+)")


def listener_config(listener: str, name: str) -> str:
    """Return the name of a listener's own value of a config."""
    return f"listener.name.{listener.lower()}.{name}"


def base_name(name: str) -> str:
    """Return a config's name without the listener that it is for."""
    match = _OF_A_LISTENER.fullmatch(name)
    return match.group(1) if match else name


def is_of_a_listener(name: str) -> bool:
    """Tell whether the name is one of a listener's own values."""
    return _OF_A_LISTENER.fullmatch(name) is not None


def row_of(name: str) -> ConfigRow | None:
    """Return the row that tells a broker config's type and range; None if there is none."""
    row = ROWS.get(base_name(name))
    return None if row is None or row.effect is Effect.NAMED else row


def is_read(name: str) -> bool:
    """Tell whether some code here reads the config."""
    base = base_name(name)
    return base in READ_PER_LISTENER if is_of_a_listener(name) else base in BROKER_ROWS


def is_read_only(name: str) -> bool:
    """Tell whether Kafka refuses to change the config while the broker runs."""
    row = ROWS.get(name)
    return row is not None and row.mutability is Mutability.READ_ONLY


def is_list(name: str) -> bool:
    """Tell whether AlterConfigs may append to a broker config, and subtract from it."""
    row = ROWS.get(name)
    return row is not None and row.type is ConfigType.LIST
