"""A request for a missing topic creates it before the kit's broker responds."""

from __future__ import annotations

import contextlib

import pytest

from tests.support.protocol.raw_client import BlockingClient
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.testing import Broker


@pytest.fixture(scope="module")
def broker():
    with Broker() as broker:
        yield broker


def told_of(broker, *names, may_create=True):
    """Send one request; return each topic's error and number of partitions."""
    host, port = broker.bootstrap_servers.split(":")
    body = {
        "topics": [{"topic_id": bytes(16), "name": name} for name in names],
        "allow_auto_topic_creation": may_create,
    }
    with contextlib.closing(BlockingClient((host, int(port)))) as client:
        answer = client.ask(ApiKey.METADATA, 12, body)
    return {
        topic.name: (ErrorCode(topic.error_code), len(topic.partitions)) for topic in answer.topics
    }


def test_auto_created_topic_is_in_the_same_response(broker):
    broker.reset(config={"num.partitions": 3})
    broker.create_topic("old")
    assert told_of(broker, "new", "old", "newer") == {
        "new": (ErrorCode.NONE, 3),
        "old": (ErrorCode.NONE, 1),
        "newer": (ErrorCode.NONE, 3),
    }
    assert broker.topics() == {"new": 3, "old": 1, "newer": 3}


def test_disallowed_topic_is_not_auto_created(broker):
    broker.reset()
    unknown, invalid = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION
    assert told_of(broker, "orders", may_create=False) == {"orders": (unknown, 0)}
    assert told_of(broker, "no good") == {"no good": (invalid, 0)}
    broker.reset(config={"auto.create.topics.enable": False})
    assert told_of(broker, "orders") == {"orders": (unknown, 0)}
    assert broker.topics() == {}


def test_failed_auto_creation_is_reported_like_kafka(broker):
    broker.reset(config={"default.replication.factor": 3})
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert told_of(broker, "orders") == {"orders": (unknown, 0)}
    # librdkafka retries forever.
    assert told_of(broker, "orders") == {"orders": (unknown, 0)}
    assert broker.topics() == {}


def test_injected_fault_precedes_auto_creation(broker):
    broker.reset()
    leaderless = ErrorCode.LEADER_NOT_AVAILABLE
    with broker.faults.error("METADATA", leaderless):
        assert told_of(broker, "orders") == {"orders": (leaderless, 0)}
    assert told_of(broker, "orders") == {"orders": (ErrorCode.NONE, 1)}
