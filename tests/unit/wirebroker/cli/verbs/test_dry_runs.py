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
def test_what_a_user_is_not_allowed_is_refused_by_the_dry_run_too(denied, words, flags, code):
    said = denied.feed(PLAN.encode(), *words, *flags)
    assert said.status == 1, said
    assert code in said.err, said


@pytest.mark.parametrize("flags", [(), ("--yes",)])
def test_records_of_compacted_and_internal_topics_are_not_trimmed(verbs, flags):
    verbs.do("topic", "create", "compacted", "-c", "cleanup.policy=compact", "--if-not-exists")
    verbs.feed(b"k:v\n", "produce", "compacted", "--key-separator", ":")
    said = verbs.run("topic", "trim", "compacted", "--all", *flags)
    assert (said.status, "POLICY_VIOLATION" in said.err) == (1, True), said
    verbs.do("group", "seek", "g", "--to", "end", "-t", "compacted", "--yes")
    said = verbs.run("topic", "trim", "__consumer_offsets", "--all", *flags)
    assert (said.status, "INVALID_TOPIC_EXCEPTION" in said.err) == (1, True), said


def test_records_that_are_compacted_and_deleted_are_trimmed(verbs):
    verbs.do("topic", "create", "both", "-c", "cleanup.policy=compact,delete")
    verbs.feed(b"k:v\n", "produce", "both", "--key-separator", ":")
    assert verbs.do("topic", "trim", "both", "--all").rows == [["0", "0", "1", "1", "1"]]
    verbs.do("topic", "trim", "both", "--all", "--yes")


@pytest.mark.parametrize("flags", [(), ("--yes",)])
def test_groups_with_members_are_left_alone(verbs, joined, flags):
    said = verbs.run("group", "delete", joined, *flags)
    assert (said.status, "NON_EMPTY_GROUP" in said.err) == (1, True), said
    said = verbs.run("group", "seek", joined, "--to", "start", "-t", "joined", *flags)
    assert (said.status, "UNKNOWN_MEMBER_ID" in said.err) == (1, True), said


@pytest.mark.parametrize("flags", [(), ("--yes",)])
def test_brokers_that_are_not_registered_are_refused(verbs, flags):
    said = verbs.run("cluster", "unregister", "77", *flags)
    assert (said.status, "BROKER_ID_NOT_REGISTERED" in said.err) == (1, True), said
    verbs.do("topic", "create", "t", "--if-not-exists")
    said = verbs.feed(PLAN.encode(), "reassign", "execute", "-", *flags)
    assert (said.status, "INVALID_REPLICA_ASSIGNMENT" in said.err) == (1, True), said
    said = verbs.run("cluster", "unregister-controller", "1", *flags)
    assert (said.status, "INVALID_REQUEST" in said.err) == (1, True), said


def test_a_transaction_that_does_not_exist_is_not_aborted(verbs):
    said = verbs.run("transaction", "abort", "nobody's")
    assert (said.status, "there is none of that id" in said.err) == (1, True), said


def test_topics_are_not_deleted_where_that_is_off(tmp_path, capsys):
    settings = ONE_NODE | {"delete.topic.enable": "false"}
    with ThreadedServer(config_of(tmp_path, settings=settings)) as server:
        verbs = Verbs("{}:{}".format(*server.address), capsys)
        verbs.do("topic", "create", "kept")
        for flags in ((), ("--yes",)):
            said = verbs.run("topic", "delete", "kept", *flags)
            assert (said.status, "TOPIC_DELETION_DISABLED" in said.err) == (1, True), said


@pytest.fixture
def joined(verbs):
    verbs.do("topic", "create", "joined", "--if-not-exists")
    consumer = Consumer({"bootstrap.servers": verbs.bootstrap, "group.id": "joined"})
    consumer.subscribe(["joined"])
    while not consumer.assignment():
        consumer.poll(0.1)
    yield "joined"
    consumer.close()
