"""Settings: the config table, the values in force, checks, dynamic changes and descriptions.

The exported names are loaded on first use, so that importing one module does not load the table.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from wirebroker.config.describe import DescribedConfig, Synonym
    from wirebroker.config.rows.row import (
        ConfigError,
        ConfigSource,
        ConfigType,
        Mutability,
        StartError,
    )
    from wirebroker.config.rows.topic import TopicSettings
    from wirebroker.config.together import validate_topic_config, validate_topic_configs
    from wirebroker.config.values import Config

__all__ = [
    "Config",
    "ConfigError",
    "ConfigSource",
    "ConfigType",
    "DescribedConfig",
    "Mutability",
    "StartError",
    "Synonym",
    "TopicSettings",
    "validate_topic_config",
    "validate_topic_configs",
]

_MODULES: Final = {
    "Config": "values",
    "ConfigError": "rows.row",
    "ConfigSource": "rows.row",
    "ConfigType": "rows.row",
    "DescribedConfig": "describe",
    "Mutability": "rows.row",
    "StartError": "rows.row",
    "Synonym": "describe",
    "TopicSettings": "rows.topic",
    "validate_topic_config": "together",
    "validate_topic_configs": "together",
}


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    attribute = globals()[name] = getattr(import_module(f"{__name__}.{module}"), name)
    return attribute
