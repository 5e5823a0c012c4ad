"""A quorum whose voters change while a wirebroker is a member (kraft.version 1, KIP-853)."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING

import pytest

from compat_tests.clients.java import run
from compat_tests.cluster.nodes import JavaController
from compat_tests.cluster.test_membership import WAIT_S, create, produce, read, values
from tests.support.brokers import java_start
from tests.support.brokers.brokers import java_tool
from tests.support.tools.ports import free_port
from tests.support.tools.waiting import eventually

if TYPE_CHECKING:
    from compat_tests.cluster.conftest import StartCluster
    from compat_tests.cluster.nodes import Cluster, MemberBroker

pytestmark = [pytest.mark.java, pytest.mark.nightly]

QUORUM = "org.apache.kafka.tools.MetadataQuorumCommand"


def describe(broker: MemberBroker) -> str:
    return run(broker.bootstrap, QUORUM, "describe", "--status")


def voters(broker: MemberBroker) -> set[int]:
    line = next(
        line_text for line_text in describe(broker).splitlines() if "CurrentVoters" in line_text
    )
    return {int(voter_id) for voter_id in re.findall(r'"id": (\d+)', line)}


def leader(broker: MemberBroker) -> int:
    match = re.search(r"LeaderId:\s+(\d+)", describe(broker))
    assert match is not None
    return int(match[1])


def add(broker: MemberBroker, controller: JavaController) -> None:
    tool = java_tool("-Xmx128m", QUORUM, java_start.options())
    tool += ["--bootstrap-server", broker.bootstrap, "--command-config"]
    tool += [str(controller.properties), "add-controller"]

    def is_added() -> bool:
        done = subprocess.run(tool, capture_output=True, text=True, check=False)
        output = done.stdout + done.stderr
        # A controller that lags is refused with a timeout.
        assert done.returncode == 0 or "TimeoutException" in output, output
        return done.returncode == 0

    eventually(is_added, timeout_s=WAIT_S)


def begin_another(cluster: Cluster, node_id: int) -> JavaController:
    cluster.places[node_id] = free_port()
    controller = cluster.controllers[node_id] = JavaController(cluster, node_id)
    controller.start()
    return controller


def test_broker_works_while_voters_are_added_and_removed(start_cluster: StartCluster) -> None:
    cluster = start_cluster(has_dynamic_voters=True)
    wirebroker = cluster.wirebroker(1)
    create(cluster, "t", [[1]])
    produce(cluster, "t", values(0, 10))
    assert voters(wirebroker) == {101}
    second = begin_another(cluster, 102)
    add(wirebroker, second)
    assert voters(wirebroker) == {101, 102}
    create(cluster, "with-two", [[1]])
    directory = re.search(
        r"^directory\.id=(.+)$",
        (cluster.controllers[101].data_dir / "meta.properties").read_text(),
        re.MULTILINE,
    )
    assert directory is not None
    run(
        wirebroker.bootstrap,
        QUORUM,
        "remove-controller",
        "--controller-id",
        "101",
        "--controller-directory-id",
        directory[1],
    )
    eventually(lambda: voters(wirebroker) == {102}, timeout_s=WAIT_S)
    cluster.controllers.pop(101).stop()
    # The broker was configured with 101 only; it has learned of the other since.
    eventually(lambda: leader(wirebroker) == 102, timeout_s=WAIT_S)
    create(cluster, "after", [[1]])
    produce(cluster, "t", values(10, 20))
    assert read(cluster, "t", 20) == values(0, 20)
