"""Configs of BROKER_LOGGER: logger levels, described and changed."""

import logging

import pytest

import wirebroker.api.configs.alter_configs
import wirebroker.api.configs.describe_configs  # noqa: F401 - both register their handlers
from tests.unit.wirebroker.api.api_kit import answer, make_broker
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.controller.image.cluster_image import ResourceType

SET, DELETE, APPEND, SUBTRACT = range(4)
PARENT, CHILD = "tests.runtime", "tests.runtime.loggers"


@pytest.fixture(autouse=True)
def levels():
    """Two loggers with known levels; the root's level is restored."""
    root = logging.root.level
    logging.root.setLevel(logging.WARNING)
    logging.getLogger(PARENT).setLevel(logging.INFO)
    logging.getLogger(CHILD).setLevel(logging.NOTSET)
    yield
    logging.root.setLevel(root)


def shown(*names):
    keys = list(names) or None
    row = {"resource_type": ResourceType.BROKER_LOGGER, "resource_name": "1"}
    reply = answer(
        make_broker(),
        ApiKey.DESCRIBE_CONFIGS,
        4,
        resources=[{**row, "configuration_keys": keys}],
        include_synonyms=True,
        include_documentation=True,
    )
    (result,) = reply.results
    assert result.error_code == 0
    return result.configs


def change(*changes, name="1", validate_only=False, resources=None):
    configs = [
        {"name": logger, "config_operation": operation, "value": value}
        for logger, operation, value in changes
    ]
    row = {"resource_type": ResourceType.BROKER_LOGGER, "resource_name": name, "configs": configs}
    reply = answer(
        make_broker(),
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        1,
        resources=resources or [row],
        validate_only=validate_only,
    )
    return [(response.error_code, response.error_message) for response in reply.responses]


def level(name):
    (config,) = shown(name)
    return config.value


def test_each_logger_is_described_with_its_effective_level():
    loggers = {entry.name: entry for entry in shown()}
    assert (loggers["root"].value, loggers[PARENT].value, loggers[CHILD].value) == (
        "WARN",
        "INFO",
        "INFO",
    )
    assert list(loggers) == sorted(loggers)
    assert "wirebroker" in loggers
    config = loggers[CHILD]
    assert (config.config_source, config.read_only, config.is_sensitive) == (6, False, False)
    assert (config.synonyms, config.config_type, config.documentation) == ([], 0, None)


@pytest.mark.parametrize(
    ("name", "number"),
    [("TRACE", 5), ("DEBUG", 10), ("INFO", 20), ("WARN", 30), ("ERROR", 40), ("FATAL", 50)],
)
def test_level_is_set_by_its_kafka_name(name, number):
    assert change((CHILD, SET, name)) == [(0, None)]
    assert logging.getLogger(CHILD).level == number
    assert level(CHILD) == name
    assert level(PARENT) == "INFO"


def test_logger_without_a_level_inherits_it():
    assert change((CHILD, SET, "ERROR"), (PARENT, SET, "DEBUG")) == [(0, None)]
    assert change((CHILD, DELETE, None)) == [(0, None)]
    assert level(CHILD) == "DEBUG"
    assert change((PARENT, DELETE, None), ("root", SET, "FATAL")) == [(0, None)]
    assert level(CHILD) == level(PARENT) == level("root") == "FATAL"


@pytest.mark.parametrize(
    ("changes", "code", "message"),
    [
        ([(CHILD, SET, "LOUD")], ErrorCode.INVALID_CONFIG, "Valid log levels are DEBUG, ERROR, "),
        ([(CHILD, SET, "info")], ErrorCode.INVALID_CONFIG, "not a supported log level"),
        ([("no.such", SET, "INFO")], ErrorCode.INVALID_CONFIG, "Logger no.such does not exist!"),
        ([("no.such", DELETE, None)], ErrorCode.INVALID_CONFIG, "Logger no.such does not exist!"),
        ([("tests", SET, "INFO")], ErrorCode.INVALID_CONFIG, "Logger tests does not exist!"),
        ([("root", DELETE, None)], ErrorCode.INVALID_REQUEST, "root logger is not allowed"),
        ([(CHILD, APPEND, "INFO")], ErrorCode.INVALID_REQUEST, "APPEND"),
        ([(CHILD, SUBTRACT, "INFO")], ErrorCode.INVALID_REQUEST, "SUBTRACT"),
        ([(CHILD, 9, "INFO")], ErrorCode.INVALID_REQUEST, "9"),
        ([(CHILD, SET, None)], ErrorCode.INVALID_REQUEST, CHILD),
        ([(CHILD, SET, "INFO"), (CHILD, SET, "WARN")], ErrorCode.INVALID_REQUEST, "once"),
    ],
)
def test_refused_change_leaves_the_levels_unchanged(changes, code, message):
    [(error_code, text)] = change((PARENT, SET, "ERROR"), *changes)
    assert error_code == code
    assert message in text
    assert level(PARENT) == "INFO"


@pytest.mark.parametrize("name", ["", "2", "one"])
def test_loggers_of_other_nodes_are_refused(name):
    [(code, _)] = change((PARENT, SET, "ERROR"), name=name)
    assert code == ErrorCode.INVALID_REQUEST
    assert level(PARENT) == "INFO"


def test_validate_only_changes_no_level():
    assert change((PARENT, SET, "ERROR"), validate_only=True) == [(0, None)]
    [(code, _)] = change((PARENT, SET, "LOUD"), validate_only=True)
    assert code == ErrorCode.INVALID_CONFIG
    assert level(PARENT) == "INFO"


def test_other_resources_of_a_request_have_their_results_in_order():
    def row(kind, name, key, value):
        configs = [{"name": key, "config_operation": SET, "value": value}]
        return {"resource_type": kind, "resource_name": name, "configs": configs}

    results = change(
        resources=[
            row(ResourceType.TOPIC, "none", "retention.ms", "7"),
            row(ResourceType.BROKER_LOGGER, "1", PARENT, "ERROR"),
            row(ResourceType.BROKER, "1", "max.connections", "77"),
            row(ResourceType.BROKER_LOGGER, "2", PARENT, "DEBUG"),
        ]
    )
    codes = [code for code, _ in results]
    assert codes == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0, 0, ErrorCode.INVALID_REQUEST]
    assert level(PARENT) == "ERROR"
