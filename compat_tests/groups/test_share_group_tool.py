"""Apache Kafka's tool for share groups: offsets and groups, without members (KIP-932)."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pytest

from compat_tests.clients import java
from compat_tests.support.raw_requests import Requests
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from tests.support.brokers.brokers import Broker

pytestmark = pytest.mark.java

TOOL = "org.apache.kafka.tools.consumer.group.ShareGroupCommand"
_UPGRADE = 1


@pytest.fixture
def bootstrap(broker: Broker) -> str:
    """Return the address of a broker that serves share groups."""
    host, _, port = broker.bootstrap.rpartition(":")
    with contextlib.closing(Requests((host, int(port)))) as requests:
        updates = [{"feature": "share.version", "max_version_level": 2, "upgrade_type": _UPGRADE}]
        fields = {"timeout_ms": 30_000, "feature_updates": updates}
        requests.ask(ApiKey.UPDATE_FEATURES, 2, fields)
    return broker.bootstrap


def words_of(printed: str) -> list[list[str]]:
    return [line.split() for line in printed.splitlines() if line.strip()]


def test_offsets_of_a_group_are_set_shown_and_deleted(bootstrap: str, topic: str) -> None:
    group = f"share-{topic}"
    java.run(bootstrap, java.TOPICS, "--create", "--topic", topic, "--partitions", "2")
    java.run(
        bootstrap,
        java.CONSOLE_PRODUCER,
        *("--topic", topic, "--sync"),
        text="one\ntwo\nthree\n",
    )
    set_offsets = ("--reset-offsets", "--to-earliest", "--topic", topic, "--execute")
    printed = words_of(java.run(bootstrap, TOOL, "--group", group, *set_offsets))
    assert [group, topic, "0", "0"] in printed
    assert [group, "Empty"] in words_of(java.run(bootstrap, TOOL, "--list", "--state"))
    described = words_of(
        java.run(bootstrap, TOOL, "--group", group, "--describe", "--offsets", "--verbose")
    )
    rows = [row[1:] for row in described if row[0] == group]
    assert sorted(row[:2] for row in rows) == [[topic, "0"], [topic, "1"]]
    assert sum(int(row[-1]) for row in rows) == 3, described
    printed = words_of(
        java.run(bootstrap, TOOL, "--group", group, "--delete-offsets", "--topic", topic)
    )
    assert [topic, "Successful"] in printed
    java.run(bootstrap, TOOL, "--group", group, "--delete")
    assert not [row for row in words_of(java.run(bootstrap, TOOL, "--list")) if row == [group]]
