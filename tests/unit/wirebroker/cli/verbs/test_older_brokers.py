"""Verbs against older versions of requests, near the oldest."""

from __future__ import annotations

import pytest

from wirebroker.codecs.api_keys import SPOKEN_VERSIONS
from wirebroker.codecs.messages import request_message
from wirebroker.net.client.versions import PeerVersions

# Steps above the oldest version of each request, where they exist. Metadata 0 knows no controller
# and is older than Kafka 2.4.
STEPS = (1, 2, 3, 4, 6, 9)


@pytest.fixture(params=STEPS)
def old_verbs(verbs, request, monkeypatch):
    newest = PeerVersions.highest

    def highest(self, key, at_most=None):
        # Brokers still advertise versions of Produce that they refuse.
        oldest = max(SPOKEN_VERSIONS[key].min_version, request_message(key).versions.start)
        version = newest(self, key, at_most)
        return None if version is None else min(version, oldest + request.param)

    monkeypatch.setattr(PeerVersions, "highest", highest)
    return verbs


def test_topic_and_config_verbs_work_with_older_brokers(old_verbs, request):
    name = f"old-{request.node.callspec.params['old_verbs']}"
    old_verbs.do("topic", "create", name, "-p", "2", "-r", "1", "-c", "retention.ms=1000")
    old_verbs.do("topic", "alter", name, "-p", "3", "--unset", "retention.ms")
    old_verbs.do("config", "set", "topic", name, "segment.ms=5000")
    (described,) = old_verbs.json("topic", "describe", name)
    assert described["configs"] == {"segment.ms": "5000"}
    assert [partition["end"] for partition in described["partitions"]] == [0, 0, 0]
    old_verbs.do("topic", "trim", name, "--all", "--yes")
    old_verbs.do("topic", "delete", name, "--yes")
    assert old_verbs.run("topic", "describe", name).status == 1
    assert old_verbs.json("cluster")["controller_id"] == 1


def test_records_are_produced_and_consumed_with_older_brokers(old_verbs, request):
    name = f"records-{request.node.callspec.params['old_verbs']}"
    old_verbs.do("topic", "create", name, "-p", "1", "-r", "1")
    assert old_verbs.feed(b"a\nb\n", "produce", name).status == 0
    assert old_verbs.do("consume", name, "-o", "start", "-e").lines == ["a", "b"]


def test_group_verbs_work_with_older_brokers(old_verbs, request):
    name = f"groups-{request.node.callspec.params['old_verbs']}"
    old_verbs.do("topic", "create", name, "-p", "1", "-r", "1")
    old_verbs.do("group", "seek", name, "--to", "end", "-t", name, "--yes")
    assert [partition["lag"] for partition in old_verbs.json("group", "lag", name)] == [0]
    assert name in [group["name"] for group in old_verbs.json("group", "list")]
    old_verbs.do("group", "delete", name, "--yes")
    assert old_verbs.run("group", "describe", name).status == 1
