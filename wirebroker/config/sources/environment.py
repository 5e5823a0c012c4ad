r"""KAFKA_ variables: settings in the environment of a container.

    KAFKA_LOG_RETENTION_HOURS=24      log.retention.hours=24
    KAFKA_LISTENER_NAME_A__B_X=1      listener.name.a_b.x=1
    KAFKA_A___B=1                     a-b=1

Values have the escapes of a properties file: `\n`, `\u0041`, a backslash at the end of a line.

Source: Apache Kafka's container image.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.config.rows.row import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

PREFIX: Final = "KAFKA_"

# Variables of Kafka scripts and images.
_NOT_CONFIGS: Final = frozenset(
    {
        "KAFKA_CLUSTER_ID",
        "KAFKA_DEBUG",
        "KAFKA_GC_LOG_OPTS",
        "KAFKA_HEAP_OPT",
        "KAFKA_HEAP_OPTS",
        "KAFKA_HOME",
        "KAFKA_JMX_HOSTNAME",
        "KAFKA_JMX_OPTS",
        "KAFKA_JMX_PORT",
        "KAFKA_JVM_PERFORMANCE_OPTS",
        "KAFKA_LOG4J_LOGGERS",
        "KAFKA_LOG4J_OPTS",
        "KAFKA_LOG4J_ROOT_LOGLEVEL",
        "KAFKA_OPTS",
        "KAFKA_TOOLS_LOG4J_LOGLEVEL",
        "KAFKA_VERSION",
    }
)


def settings_from_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the configs that a process environment sets.

    CLUSTER_ID is that of a new data directory.

    Raises:
        ConfigError: A value has an invalid escape.
    """
    settings: dict[str, str] = {}
    for variable, value in environment.items():
        if variable.startswith(PREFIX) and variable not in _NOT_CONFIGS:
            name = variable[len(PREFIX) :].lower().replace("_", ".")
            name = name.replace("...", "-").replace("..", "_")
            if name:
                settings[name] = _value(variable, value)
    if environment.get("CLUSTER_ID"):
        settings.setdefault("wirebroker.cluster.id", environment["CLUSTER_ID"])
    return settings


def _value(variable: str, text: str) -> str:
    if "\\" not in text:
        return text.lstrip(" \t\f")
    from wirebroker.config.java.properties import parse_value  # noqa: PLC0415

    try:
        return parse_value(text)
    except ValueError as error:
        raise ConfigError(f"{variable} cannot be used: {error}") from None
