"""ACLs are part of the directory: Kafka's tool adds some at each broker, and both enforce all."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pytest

from compat_tests.clients.java import ACLS, attempt, run
from compat_tests.interchange.shared_folder import SharedFolder, address
from compat_tests.support.raw_requests import Requests
from tests.support.brokers.brokers import Wirebroker
from tests.support.protocol.requests import produce_request
from tests.support.records.batches import batch
from tests.support.tools.ports import HOST, free_ports
from tests.support.tools.waiting import eventually
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.config.rows.authorizer import STANDARD

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.brokers.brokers import Broker

pytestmark = pytest.mark.java

SETTINGS = {
    "authorizer.class.name": STANDARD,
    "allow.everyone.if.no.acl.found": "true",
}


def denied(broker: Broker, topic: str) -> bool:
    with contextlib.closing(Requests(address(broker))) as requests:
        answer = requests.try_ask(ApiKey.PRODUCE, 9, produce_request({(topic, 0): batch(b"a")}))
    code: int = answer.responses[0].partition_responses[0].error_code
    return code == ErrorCode.TOPIC_AUTHORIZATION_FAILED


def listed(broker: Broker) -> set[str]:
    return {line.strip() for line in run(broker.bootstrap, ACLS, "--list").splitlines() if line}


@pytest.mark.nightly  # test_quotas.py hands a directory over with each change
def test_both_brokers_apply_acls_stored_in_directory(tmp_path: Path) -> None:
    folder = SharedFolder(tmp_path, settings=SETTINGS)
    with folder.run("apache") as broker:
        rule = ("--add", "--allow-principal", "User:alice", "--operation", "Read")
        run(broker.bootstrap, ACLS, *rule, "--topic", "of-", "--resource-pattern-type", "prefixed")
        # Kafka's broker applies changes some time after the controller's response.
        eventually(lambda: denied(broker, "of-alice"))
        expected = listed(broker)
    with folder.run("wirebroker") as broker:
        assert listed(broker) == expected
        assert denied(broker, "of-alice")
        assert not denied(broker, "free")
        rule = ("--add", "--deny-principal", "User:*", "--deny-host", "127.0.0.1")
        run(broker.bootstrap, ACLS, *rule, "--operation", "Write", "--topic", "closed")
        assert denied(broker, "closed")
        expected = listed(broker)
    with folder.run("apache") as broker:
        assert listed(broker) == expected
        assert denied(broker, "closed")
        run(broker.bootstrap, ACLS, "--remove", "--force", "--topic", "closed")
        eventually(lambda: not denied(broker, "closed"))
        expected = listed(broker)
    with folder.run("wirebroker") as broker:
        assert listed(broker) == expected
        assert not denied(broker, "closed")


def test_kafka_acls_works_with_bootstrap_controller(tmp_path: Path) -> None:
    port, controller_port = free_ports(2)
    listeners = f"PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{controller_port}"
    controller = {"listeners": listeners, "controller.listener.names": "CONTROLLER"}
    broker = Wirebroker(tmp_path, {**SETTINGS, **controller})
    broker.port = port
    broker.start()
    try:
        rule = ("--add", "--allow-principal", "User:alice", "--operation", "Read", "--topic", "t")
        run(broker.bootstrap, ACLS, *rule)
        status, output = attempt(
            f"{HOST}:{controller_port}", ACLS, "--list", address_flag="--bootstrap-controller"
        )
        assert status == 0, output
        assert {line.strip() for line in output.splitlines() if line} == listed(broker)
        assert "principal=User:alice" in output
    finally:
        broker.stop()
