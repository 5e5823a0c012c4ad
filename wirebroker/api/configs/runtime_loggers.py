"""Log levels at run time: the configs of BROKER_LOGGER.

Names are those of Python's loggers, levels those of Kafka. An unset level is inherited. Changes
last until the process ends.

Source: Kafka's RuntimeLoggerManager and LoggingController (KIP-412).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from wirebroker.codecs.errors import ErrorCode, KafkaError, without_frames
from wirebroker.coordinator.controller.configs.broker_configs import check_this_broker
from wirebroker.coordinator.controller.configs.config_checks import check_request, resource_counts
from wirebroker.coordinator.controller.configs.config_edits import DELETE, SET
from wirebroker.coordinator.controller.image.cluster_image import ResourceType

if TYPE_CHECKING:
    from wirebroker.base.clock import Steps

logger = logging.getLogger("wirebroker")

ROOT: Final = "root"
# Below Python's lowest level.
_TRACE: Final = 5
_LEVELS: Final = {
    "DEBUG": logging.DEBUG,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
    "INFO": logging.INFO,
    "TRACE": _TRACE,
    "WARN": logging.WARNING,
}
_NAMES: Final = {number: name for name, number in _LEVELS.items()}


def logger_levels() -> dict[str, str]:
    """Return the effective levels by logger."""
    levels = {
        name: entry.getEffectiveLevel()
        for name, entry in list(logging.root.manager.loggerDict.items())
        if isinstance(entry, logging.Logger)
    }
    levels[ROOT] = logging.root.level
    return {name: _level_name(level) for name, level in sorted(levels.items())}


def names_loggers(body: Any) -> bool:
    """Return whether a request alters loggers."""
    return any(resource.resource_type == ResourceType.BROKER_LOGGER for resource in body.resources)


def change_loggers(body: Any, node_id: int) -> Steps[dict[int, KafkaError | None]]:
    """Change the named loggers of this node, of a client that may alter the cluster's configs.

    Returns:
        Errors, or None, by the positions of loggers in the request.
    """
    outcomes: dict[int, KafkaError | None] = {}
    counts = resource_counts(body)
    for index, resource in enumerate(body.resources):
        yield
        if resource.resource_type != ResourceType.BROKER_LOGGER:
            continue
        try:
            check_request(resource, counts, is_incremental=True)
            check_this_broker(resource.resource_name, node_id)
            _check(resource)
        except KafkaError as error:
            outcomes[index] = without_frames(error)
            continue
        outcomes[index] = None
        if not body.validate_only:
            _apply(resource)
    return outcomes


def _level_name(level: int) -> str:
    """Return a level's name; one in between counts as the lower."""
    return _NAMES[
        max((named_level for named_level in _NAMES if named_level <= level), default=_TRACE)
    ]


def _find(name: str) -> logging.Logger | None:
    entry = logging.root if name == ROOT else logging.root.manager.loggerDict.get(name)
    return entry if isinstance(entry, logging.Logger) else None


def _check(resource: Any) -> None:
    """Refuse an invalid change as a whole."""
    for entry in resource.configs:
        if entry.config_operation not in {SET, DELETE}:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                "APPEND and SUBTRACT are not allowed for the BROKER_LOGGER resource",
            )
        if _find(entry.name) is None:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"Logger {entry.name} does not exist!")
        if entry.config_operation == SET and entry.value not in _LEVELS:
            raise KafkaError(
                ErrorCode.INVALID_CONFIG,
                f"Cannot set the log level of {entry.name} to {entry.value} as it is not a"
                f" supported log level. Valid log levels are {', '.join(_LEVELS)}",
            )
        if entry.config_operation == DELETE and entry.name == ROOT:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                "Removing the log level of the root logger is not allowed",
            )


def _apply(resource: Any) -> None:
    for entry in resource.configs:
        target = _find(entry.name)
        assert target is not None
        if entry.config_operation == DELETE:
            target.setLevel(logging.NOTSET)
            logger.warning("unset the log level of %s", entry.name)
        else:
            target.setLevel(_LEVELS[entry.value])
            logger.warning("updated the log level of %s to %s", entry.name, entry.value)
