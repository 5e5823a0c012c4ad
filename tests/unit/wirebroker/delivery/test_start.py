"""What the service checks when it starts: its settings, the metrics port and the pending topic."""

from __future__ import annotations

import re
import socket
import threading
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from tests.unit.wirebroker.delivery.delivery_kit import PENDING, RULES
from tests.unit.wirebroker.delivery.fake_producer import SETTINGS
from wirebroker.base.clock import SystemClock
from wirebroker.config import ConfigError
from wirebroker.config.sources.sources import load_config
from wirebroker.delivery.model.rules import dead_letters_of
from wirebroker.delivery.service.errors import ServiceError, StoppingError
from wirebroker.delivery.service.metrics_page import metrics_page
from wirebroker.delivery.service.settings import rules_of
from wirebroker.delivery.service.topics import ClusterTopics


def test_a_metrics_port_in_use_is_an_error_with_advice():
    with socket.socket() as used:
        used.bind(("127.0.0.1", 0))
        used.listen()
        port = used.getsockname()[1]
        with (
            pytest.raises(ServiceError, match=rf"{port}: .*wirebroker\.delivery\.metrics\.port"),
            metrics_page(port, str),
        ):
            pass


def test_an_input_topic_that_is_listed_twice_is_read_once():
    names = {"topics": "deliver,later,deliver", "retry.topics": "retry,retry"}
    flags = {f"wirebroker.delivery.{name}": value for name, value in names.items()}
    config = load_config(file=None, environment={}, flags=flags, is_one_node=False)
    assert rules_of(config).input_topics == ("deliver", "later", "retry")


def targets_of(text: str) -> tuple[str, ...] | None:
    flags = {"wirebroker.delivery.targets": text}
    return rules_of(load_config(file=None, environment={}, flags=flags, is_one_node=False)).targets


@pytest.mark.parametrize("entry", ["t?", "or*ders", "*orders", "a b", "**", "a" * 250, "t?*", "."])
def test_a_target_that_can_match_no_topic_is_refused(entry: str) -> None:
    reason = rf"targets: '{re.escape(entry)}' is neither a topic name nor a prefix"
    with pytest.raises(ConfigError, match=reason):
        targets_of(f"orders,{entry}")


def test_targets_are_topic_names_and_prefixes() -> None:
    assert targets_of("orders,billing-*,*,.*") == ("orders", "billing-*", "*", ".*")
    assert targets_of("") == ()


class FakeAdmin:
    """A cluster where all topics of the service exist."""

    def __init__(self, policy: str | None) -> None:
        self.policy = policy
        inputs = RULES.input_topics
        self.names = [*inputs, *map(dead_letters_of, inputs), PENDING]
        self.requests = 0

    def list_topics(self, timeout: float) -> Any:
        self.requests += 1
        topic = SimpleNamespace(partitions={0: None}, error=None)
        return SimpleNamespace(topics=dict.fromkeys(self.names, topic))

    def describe_configs(self, resources: list[Any], request_timeout: float) -> dict[Any, Any]:
        return dict.fromkeys(resources, self)

    def result(self) -> dict[str, Any]:
        if self.policy is None:
            raise KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))
        return {"cleanup.policy": SimpleNamespace(value=self.policy)}


def topics(policy: str | None, monkeypatch: pytest.MonkeyPatch) -> ClusterTopics:
    admin = FakeAdmin(policy)
    monkeypatch.setattr("wirebroker.delivery.service.topics.AdminClient", lambda _config: admin)
    return ClusterTopics({}, SystemClock())


@pytest.mark.parametrize("policy", ["delete", "compact,delete"])
def test_a_pending_topic_that_deletes_records_is_refused(policy, monkeypatch):
    with pytest.raises(ServiceError, match=f"cleanup.policy={policy}, which deletes"):
        topics(policy, monkeypatch).create_missing(SETTINGS, threading.Event())


def test_a_compacted_pending_topic_is_accepted(monkeypatch):
    topics("compact", monkeypatch).create_missing(SETTINGS, threading.Event())


def test_a_missing_right_to_read_configs_is_a_warning(monkeypatch, caplog):
    topics(None, monkeypatch).create_missing(SETTINGS, threading.Event())
    assert f"cannot check that topic {PENDING} is compacted" in caplog.text


class SlowAdmin(FakeAdmin):
    """Brokers do not know the created pending topic; the service is to stop meanwhile."""

    def __init__(self, stopping: threading.Event, stops_after: int) -> None:
        super().__init__("compact")
        self.names.remove(PENDING)
        self._stopping = stopping
        self._stops_after = stops_after

    def create_topics(self, new_topics: list[Any], **_: Any) -> dict[str, Any]:
        return {topic.topic: self for topic in new_topics}

    def list_topics(self, timeout: float) -> Any:
        if self.requests == self._stops_after:
            self._stopping.set()
        return super().list_topics(timeout)


def test_a_start_that_waits_for_its_topic_looks_at_the_request_to_stop(monkeypatch):
    stopping = threading.Event()
    admin = SlowAdmin(stopping, 3)
    monkeypatch.setattr("wirebroker.delivery.service.topics.AdminClient", lambda _config: admin)
    with pytest.raises(StoppingError):
        ClusterTopics({}, SystemClock()).create_missing(SETTINGS, stopping)
    assert admin.requests == 4


class RefusingAdmin(FakeAdmin):
    """No topic exists, and none can be created."""

    def __init__(self, code: int) -> None:
        super().__init__("compact")
        self.names = []
        self._error = KafkaException(KafkaError(code, "No."))

    def create_topics(self, new_topics: list[Any], **_: Any) -> dict[str, Any]:
        return {topic.topic: self for topic in new_topics}

    def result(self) -> dict[str, Any]:
        raise self._error


def refused_creation(code: int, monkeypatch: pytest.MonkeyPatch) -> str:
    admin = RefusingAdmin(code)
    monkeypatch.setattr("wirebroker.delivery.service.topics.AdminClient", lambda _config: admin)
    with pytest.raises(ServiceError) as error:
        ClusterTopics({}, SystemClock()).create_missing(SETTINGS, threading.Event())
    return str(error.value)


@pytest.mark.parametrize(
    "code", [KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED]
)
def test_a_missing_right_to_create_topics_is_named_with_the_commands(code, monkeypatch):
    message = refused_creation(code, monkeypatch)
    commands = [line.strip() for line in message.splitlines()[1:]]
    inputs = SETTINGS.rules.input_topics
    assert commands == [
        f"wirebroker acl create --allow User:NAME --operation create --topic {topic}"
        for topic in (*inputs, *map(dead_letters_of, inputs), PENDING)
    ]


def test_a_topic_that_cannot_be_created_is_named_with_the_reason(monkeypatch):
    message = refused_creation(KafkaError.INVALID_REPLICATION_FACTOR, monkeypatch)
    assert message.startswith("topic deliver cannot be created: No. Create it, or")
