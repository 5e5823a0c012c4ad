"""Group configs: validation with the texts of Kafka 4.4.0's GroupConfig, and descriptions."""

from __future__ import annotations

import pytest

from wirebroker.config import Config, ConfigError
from wirebroker.config.groups import GROUP_ROWS, validate_group_configs
from wirebroker.config.rows.row import ConfigSource
from wirebroker.config.table import ROWS

SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
INTERVAL = "consumer.assignment.interval.ms"
TAGS = "streams.rack.aware.assignment.tags"
RESET = "share.auto.offset.reset"
LOW = Config({"group.consumer.min.session.timeout.ms": "5000"})


def text_of_refusal(overrides: dict[str, str], config: Config | None = None) -> str:
    with pytest.raises(ConfigError) as caught:
        validate_group_configs(config or Config(), overrides)
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("no.such", "1", "Unknown group config name: no.such"),
        (SESSION, "44999", f"{SESSION} must be in the range 45000 to 60000 inclusive."),
        (SESSION, "60001", f"{SESSION} must be in the range 45000 to 60000 inclusive."),
        (HEARTBEAT, "4999", f"{HEARTBEAT} must be in the range 5000 to 15000 inclusive."),
        (INTERVAL, "15001", f"{INTERVAL} must be in the range 0 to 15000 inclusive."),
        (
            "share.delivery.count.limit",
            "11",
            "share.delivery.count.limit must be in the range 2 to 10 inclusive.",
        ),
        (
            "streams.num.standby.replicas",
            "3",
            "streams.num.standby.replicas must be less than or equal to 2",
        ),
        (
            "streams.task.offset.interval.ms",
            "1",
            "streams.task.offset.interval.ms must be greater than or equal to 15000",
        ),
        (TAGS, "a,b,a", f"{TAGS} must not contain duplicate tag keys."),
        (
            "streams.assignor.name",
            "foo",
            "streams.assignor.name 'foo' is not a registered task assignor. Registered assignors "
            "are: [sticky].",
        ),
        (
            "errors.deadletterqueue.topic.name",
            "__x",
            "errors.deadletterqueue.topic.name: DLQ topic name must not start with '__'",
        ),
    ],
)
def test_invalid_value_is_refused_with_kafkas_text(name, value, text):
    assert text_of_refusal({name: value}) == text


@pytest.mark.parametrize(
    "overrides",
    [{SESSION: "5000"}, {HEARTBEAT: "6000", SESSION: "6000"}, {HEARTBEAT: "9000", SESSION: "8000"}],
    ids=str,
)
def test_session_is_longer_than_the_heartbeat_interval(overrides):
    assert text_of_refusal(overrides, LOW) == f"{SESSION} must be greater than {HEARTBEAT}"


def test_all_configs_of_a_group_are_validated_together():
    validate_group_configs(LOW, {SESSION: "15001", HEARTBEAT: "15000", INTERVAL: "0"})
    assert "Unknown" in text_of_refusal({SESSION: "50000", "no.such": "1"})
    assert "range" in text_of_refusal({SESSION: "50000", HEARTBEAT: "20000"})


def test_limits_are_those_of_the_broker():
    config = Config({"group.consumer.max.assignment.interval.ms": "2000"})
    assert "0 to 2000" in text_of_refusal({INTERVAL: "2001"}, config)
    config = Config({"group.share.max.session.timeout.ms": "90000"})
    validate_group_configs(config, {"share.session.timeout.ms": "90000"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (SESSION, "x"),
        (SESSION, ""),
        (SESSION, "0"),
        (INTERVAL, "-1"),
        ("share.delivery.count.limit", "1"),
        ("share.isolation.level", "READ_COMMITTED"),
        ("share.renew.acknowledge.enable", "maybe"),
        (TAGS, "a,,b"),
        (TAGS, ",".join(map(str, range(9_000)))),
        ("errors.deadletterqueue.topic.name", "x" * 33_000),
    ],
)
def test_value_of_the_wrong_type_is_refused(name, value):
    assert f"{name}=" in text_of_refusal({name: value})


# By ShareGroupAutoOffsetResetStrategy.Validator of Kafka 4.4.0 under Java 17.
@pytest.mark.parametrize(
    "value",
    [
        *("earliest", "latest", "by_duration:PT1H", "by_duration:pt1h", "by_duration:P1D"),
        *("by_duration:-PT-1H", "by_duration:P1DT-1H", "by_duration:PT0S", "by_duration:PT-0S"),
        *("by_duration:PT1.5S", "by_duration:PT1,5S", "by_duration:+PT1H", "by_duration:PT1.S"),
        *("by_duration:PT1H2M3S", "by_duration:P106751991168D"),
        "by_duration:PT9223372036854775807S",
    ],
)
def test_offset_reset_strategy_is_valid(value):
    validate_group_configs(Config(), {RESET: value})


@pytest.mark.parametrize(
    "value",
    [
        *("none", "EARLIEST", "BY_DURATION:PT1H", "by_duration", "by_duration:", "by_duration:P"),
        *("by_duration:PT", "by_duration:PT-1H", "by_duration:PT.5S", "by_duration:PT-0.5S"),
        *("by_duration:P1Y", "by_duration:P1W", "by_duration:PT3S2M", "by_duration:P1D1H"),
        *("by_duration:PT1.1234567890S", "by_duration:x:PT1H", "by_duration: PT1H"),
        *("by_duration:PT\uff19S", "by_duration:PT9223372036854775808S", "by_duration:P1DT"),
        *("", ":", "by_duration:PT1H:PT1H", "by_duration:PT1\u017f"),
    ],
)
def test_offset_reset_strategy_is_invalid(value):
    assert "by_duration:<PnDTnHnMn.nS>" in text_of_refusal({RESET: value})


def test_rows_have_the_defaults_of_the_broker():
    for name, row in GROUP_ROWS.items():
        for giver in row.synonyms:
            default = ROWS[giver].default
            assert row.default == default, name


def described(overrides: dict[str, str], config: Config | None = None) -> dict[str, object]:
    configs = (config or Config()).describe_group(overrides)
    return {each.name: (each.value, each.config_source) for each in configs}


def test_internal_configs_are_shown_only_if_they_are_set():
    name = "consumer.assignor.offload.enable"
    assert name not in described({})
    assert described({name: "FALSE"})[name] == ("false", ConfigSource.GROUP_CONFIG)


def test_values_are_shown_as_kafka_parses_them():
    shown = described({SESSION: " 46000 ", TAGS: " a , b ", HEARTBEAT: "soon", "later": "x"})
    group = ConfigSource.GROUP_CONFIG
    assert shown[SESSION] == ("46000", group)
    assert shown[TAGS] == ("a,b", group)
    # Of another release.
    assert shown[HEARTBEAT] == ("soon", group)
    assert shown["later"] == ("x", group)


def test_clamped_value_of_the_broker_is_shown():
    config = Config(cluster_wide={f"group.{INTERVAL}": "20000"})
    source = ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
    assert described({}, config)[INTERVAL] == ("15000", source)
