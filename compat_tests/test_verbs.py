"""Our verbs (wirebroker/commands) against Apache Kafka, and against wirebroker with the same tests.

What they say in detail, tests/unit/wirebroker/commands asks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from compat_tests.conftest import new_topic_name
from compat_tests.waiting import eventually
from tests.support.brokers import make_broker
from tests.support.verbs import Verbs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.brokers import Broker


@pytest.fixture(
    scope="module", params=["wirebroker", pytest.param("apache", marks=pytest.mark.java)]
)
def asked(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator:
    running: Broker = make_broker(request.param, tmp_path_factory.mktemp("broker"))
    running.start()
    yield running
    running.stop()


@pytest.fixture
def verbs(asked: Broker, capsys: pytest.CaptureFixture[str]) -> Verbs:
    return Verbs(asked.bootstrap, capsys)


@pytest.fixture
def name() -> str:
    return new_topic_name()


def partition_counts(verbs: Verbs) -> dict[str, int]:
    return {each["name"]: each["partitions"] for each in verbs.json("topic", "list")}


def configs(verbs: Verbs, *of: str) -> dict[str, str]:
    return {each["name"]: each["value"] for each in verbs.json("config", "list", *of)}


def test_topics_come_change_and_go(verbs: Verbs, name: str) -> None:
    verbs.do("topic", "create", name, "-p", "2", "-c", "retention.ms=86400000")
    assert partition_counts(verbs)[name] == 2
    verbs.do("topic", "alter", name, "-p", "3", "-c", "segment.ms=5000", "--unset", "retention.ms")
    eventually(lambda: configs(verbs, "topic", name) == {"segment.ms": "5000"})
    (described,) = verbs.json("topic", "describe", name)
    assert described["configs"] == {"segment.ms": "5000"}
    assert [each["partition"] for each in described["partitions"]] == [0, 1, 2]
    assert {(each["start"], each["end"]) for each in described["partitions"]} == {(0, 0)}
    assert "TOPIC_ALREADY_EXISTS" in verbs.run("topic", "create", name).err
    assert "INVALID_PARTITIONS" in verbs.run("topic", "alter", name, "-p", "1").err
    assert f"did you mean {name}?" in verbs.run("topic", "describe", f"{name}x").err
    verbs.do("topic", "delete", name, "--yes")
    assert name not in partition_counts(verbs)


def test_configs_are_set_and_unset(verbs: Verbs, name: str) -> None:
    verbs.do("topic", "create", name)
    verbs.do("config", "set", "topic", name, "retention.ms=1000", "segment.ms=5000")
    verbs.do("config", "unset", "topic", name, "segment.ms")
    eventually(lambda: configs(verbs, "topic", name) == {"retention.ms": "1000"})
    assert "INVALID_CONFIG" in verbs.run("config", "set", "topic", name, "retention.ms=x").err
    verbs.do("config", "set", "broker", "all", "log.retention.ms=7200000")
    eventually(lambda: configs(verbs, "broker", "all") == {"log.retention.ms": "7200000"})
    verbs.do("config", "unset", "broker", "all", "log.retention.ms")
    assert "log.dirs" in configs(verbs, "broker", "1")


def test_a_cluster_is_its_brokers(verbs: Verbs) -> None:
    found = verbs.json("cluster")
    assert [f"{each['host']}:{each['port']}" for each in found["brokers"]] == [verbs.bootstrap]
