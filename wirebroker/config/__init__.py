"""The configs: their table, the values in force, and what is asked, changed, shown of them.

    from wirebroker.config import Config, ConfigError, StartError, TopicSettings

README.md tells the modules.  A leaf: any layer may import it.
"""

from wirebroker.config.describe import DescribedConfig, Synonym
from wirebroker.config.row import ConfigError, ConfigSource, ConfigType, Mutability, StartError
from wirebroker.config.together import validate_topic_config, validate_topic_configs
from wirebroker.config.topic import TopicSettings
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
