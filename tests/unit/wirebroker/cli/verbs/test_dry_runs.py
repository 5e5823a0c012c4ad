"""Dry runs report what the cluster would refuse, and change nothing."""

from __future__ import annotations

import json

import pytest
from confluent_kafka import Consumer

from tests.support.brokers.servers import ONE_NODE, ThreadedServer, config_of
from tests.support.cli.verbs import Verbs

PLAN = json.dumps({"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [7]}]})


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """Run a broker on which the user may not change topic `t` or group `g`."""
    settings = ONE_NODE | {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
    }
    folder = tmp_path_factory.mktemp("guarded")
    with ThreadedServer(config_of(folder, settings=settings)) as server:
        yield "{}:{}".format(*server.address)


@pytest.fixture
def denied(guarded, capsys):
    verbs = Verbs(guarded, capsys)
    user = ("--allow", "User:ANONYMOUS")
    if verbs.run("topic", "create", "t").status == 0:
        verbs.feed(b"a\n", "produce", "t")
        verbs.do("group", "seek", "g", "--to", "end", "-t", "t", "--yes")
        for name in ("--topic", "t"), ("--group", "g"):
            verbs.do("acl", "create", *user, *name, "--operation", "describe")
        verbs.do("acl", "create", *user, "--cluster", "--operation", "describe")
    return verbs


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("topic", "delete", "t"), "TOPIC_AUTHORIZATION_FAILED"),
        (("topic", "trim", "t", "--all"), "TOPIC_AUTHORIZATION_FAILED"),
        (("group", "delete", "g"), "GROUP_AUTHORIZATION_FAILED"),
        (("group", "seek", "g", "--to", "0", "-t", "t"), "GROUP_AUTHORIZATION_FAILED"),
        (("acl", "delete", "--topic", "t"), "CLUSTER_AUTHORIZATION_FAILED"),
        (("cluster", "unregister", "1"), "CLUSTER_AUTHORIZATION_FAILED"),
        (("cluster", "unregister-controller", "1"), "CLUSTER_AUTHORIZATION_FAILED"),
        (("reassign", "execute", "-"), "CLUSTER_AUTHORIZATION_FAILED"),
    ],
)
@pytest.mark.parametrize("flags", [(), ("--yes",)])
def test_dry_run_is_refused_without_authorization_too(denied, words, flags, code):
    result = denied.feed(PLAN.encode(), *words, *flags)
    assert result.status == 1, result
    assert code in result.err, result


@pytest.mark.parametrize("flags", [(), ("--yes",)])
def test_records_of_compacted_and_internal_topics_are_not_trimmed(verbs, flags):
    verbs.do("topic", "create", "compacted", "-c", "cleanup.policy=compact", "--if-not-exists")
    verbs.feed(b"k:v\n", "produce", "compacted", "--key-separator", ":")
    result = verbs.run("topic", "trim", "compacted", "--all", *flags)
    assert (result.status, "POLICY_VIOLATION" in result.err) == (1, True), result
    verbs.do("group", "seek", "g", "--to", "end", "-t", "compacted", "--yes")
    result = verbs.run("topic", "trim", "__consumer_offsets", "--all", *flags)
    assert (result.status, "INVALID_TOPIC_EXCEPTION" in result.err) == (1, True), result


def test_records_that_are_compacted_and_deleted_are_trimmed(verbs):
    verbs.do("topic", "create", "both", "-c", "cleanup.policy=compact,delete")
    verbs.feed(b"k:v\n", "produce", "both", "--key-separator", ":")
    assert verbs.do("topic", "trim", "both", "--all").rows == [["0", "0", "1", "1", "1"]]
    verbs.do("topic", "trim", "both", "--all", "--yes")


@pytest.mark.parametrize("flags", [(), ("--yes",)])
def test_groups_with_members_are_refused(verbs, joined, flags):
    result = verbs.run("group", "delete", joined, *flags)
    assert (result.status, "NON_EMPTY_GROUP" in result.err) == (1, True), result
    result = verbs.run("group", "seek", joined, "--to", "start", "-t", "joined", *flags)
    assert (result.status, "UNKNOWN_MEMBER_ID" in result.err) == (1, True), result


@pytest.mark.parametrize("flags", [(), ("--yes",)])
def test_brokers_that_are_not_registered_are_refused(verbs, flags):
    result = verbs.run("cluster", "unregister", "77", *flags)
    assert (result.status, "BROKER_ID_NOT_REGISTERED" in result.err) == (1, True), result
    verbs.do("topic", "create", "t", "--if-not-exists")
    result = verbs.feed(PLAN.encode(), "reassign", "execute", "-", *flags)
    assert (result.status, "INVALID_REPLICA_ASSIGNMENT" in result.err) == (1, True), result
    result = verbs.run("cluster", "unregister-controller", "1", *flags)
    assert (result.status, "INVALID_REQUEST" in result.err) == (1, True), result


def test_a_transaction_that_does_not_exist_is_not_aborted(verbs):
    result = verbs.run("transaction", "abort", "nobody's")
    assert (result.status, "there is no such transactional id" in result.err) == (1, True), result


def test_topics_are_not_deleted_if_deletion_is_disabled(tmp_path, capsys):
    settings = ONE_NODE | {"delete.topic.enable": "false"}
    with ThreadedServer(config_of(tmp_path, settings=settings)) as server:
        verbs = Verbs("{}:{}".format(*server.address), capsys)
        verbs.do("topic", "create", "kept")
        for flags in ((), ("--yes",)):
            result = verbs.run("topic", "delete", "kept", *flags)
            assert (result.status, "TOPIC_DELETION_DISABLED" in result.err) == (1, True), result


@pytest.fixture
def joined(verbs):
    verbs.do("topic", "create", "joined", "--if-not-exists")
    consumer = Consumer({"bootstrap.servers": verbs.bootstrap, "group.id": "joined"})
    consumer.subscribe(["joined"])
    while not consumer.assignment():
        consumer.poll(0.1)
    yield "joined"
    consumer.close()
