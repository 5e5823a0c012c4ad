"""Subscriptions of client metrics: their configs, and the clients that they match."""

from __future__ import annotations

import pytest

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.client_metrics.subscription import subscription_of

CLIENT = {
    "client_id": "billing-7",
    "client_instance_id": "AAAAAAAAAAAAAAAAAAAAAA",
    "client_software_name": "apache-kafka-java",
    "client_software_version": "4.4.0",
    "client_source_address": "127.0.0.1",
    "client_source_port": "41000",
}


def matches(match: str, **attributes: str | None) -> bool:
    return subscription_of("s", {"match": match}).matches({**CLIENT, **attributes})


def test_values_are_parsed_and_default_to_nothing_every_five_minutes() -> None:
    subscription = subscription_of("s", {"metrics": "a, b,a", "interval.ms": " 100 "})
    assert subscription == (("a", "b"), 100, {})
    assert subscription_of("s", {}) == ((), 300_000, {})


def test_each_pattern_must_match_a_whole_attribute() -> None:
    assert matches("")
    assert matches("client_id=billing-.*")
    assert not matches("client_id=billing")
    assert matches("client_id = billing.* ,client_source_port=[0-9]+")
    assert not matches("client_id=billing.*,client_software_name=librdkafka")
    assert not matches("client_id=.*", client_id=None)


def test_the_last_pattern_of_an_attribute_counts() -> None:
    assert matches("client_id=x,client_id=billing-7")
    assert not matches("client_id=billing-7,client_id=x")


@pytest.mark.parametrize(
    "match",
    ["client_id", "client_id=", "=a", "client_id=a=b", "client_id==a", "host=a", "client_id=("],
)
def test_invalid_pattern_is_refused(match: str) -> None:
    with pytest.raises(KafkaError, match="Illegal client matching pattern") as refused:
        subscription_of("s", {"match": match})
    assert refused.value.code is ErrorCode.INVALID_CONFIG


def test_a_pattern_larger_than_its_limit_is_refused() -> None:
    with pytest.raises(KafkaError, match="Illegal client matching pattern"):
        subscription_of("s", {"match": "client_id=((a{100}){100}){100}"})


def test_the_number_of_patterns_is_limited() -> None:
    assert matches(",".join([*(f"client_id=c{number}" for number in range(15)), "client_id=b.*"]))
    with pytest.raises(KafkaError, match="More than 16 client matching patterns"):
        matches(",".join([f"client_id=c{number}" for number in range(17)]))


@pytest.mark.parametrize(
    ("name", "configs", "code"),
    [
        ("", {"metrics": "a"}, ErrorCode.INVALID_REQUEST),
        ("s", {"nonsense": "a"}, ErrorCode.INVALID_REQUEST),
        ("s", {"interval.ms": "99"}, ErrorCode.INVALID_REQUEST),
        ("s", {"interval.ms": "3600001"}, ErrorCode.INVALID_REQUEST),
        ("s", {"interval.ms": "soon"}, ErrorCode.INVALID_CONFIG),
        ("s", {"metrics": "a,,b"}, ErrorCode.INVALID_CONFIG),
    ],
)
def test_invalid_config_is_refused_with_kafkas_error_code(
    name: str, configs: dict[str, str], code: ErrorCode
) -> None:
    with pytest.raises(KafkaError) as refused:
        subscription_of(name, configs)
    assert refused.value.code is code
