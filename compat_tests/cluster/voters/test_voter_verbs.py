"""`wirebroker format` and `wirebroker quorum` with a quorum of Apache Kafka's controllers."""

from __future__ import annotations

import json
import shutil
import sys
from typing import TYPE_CHECKING, Final

import pytest

from compat_tests.cluster.nodes import CLUSTER_ID, Cluster, JavaController
from compat_tests.scripts.kafka_scripts import KafkaScripts
from tests.support.cli.script_transcripts import our_scripts
from tests.support.cli.verbs import Verbs
from tests.support.tools.ports import HOST, free_port
from tests.support.tools.waiting import eventually
from wirebroker.cli import main as cli
from wirebroker.codecs.primitives import random_uuid, uuid_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from compat_tests.cluster.conftest import StartCluster
    from tests.support.cli.script_transcripts import Answer

pytestmark = pytest.mark.java

WAIT_S: Final = 60
THREE: Final = (101, 102, 103)


class FormattedController(JavaController):
    """A controller of Apache Kafka whose directory `wirebroker format` has formatted.

    Args:
        cluster: Its cluster.
        node_id: Its id.
        choice: The flags for the first voters.
    """

    def __init__(self, cluster: Cluster, node_id: int, *choice: str) -> None:
        super().__init__(cluster, node_id)
        self._choice = choice

    def _format_command(self) -> list[str]:
        command = [sys.executable, "-m", "wirebroker", "format", "--config", str(self.properties)]
        return [*command, "--cluster-id", CLUSTER_ID, *self._choice]

    @property
    def directory_id(self) -> str:
        lines = (self.data_dir / "meta.properties").read_text().splitlines()
        return next(line for line in lines if line.startswith("directory.id=")).partition("=")[2]


class OwnFormattedController(FormattedController):
    """A wirebroker in its place."""

    def _command(self) -> list[str]:
        return [sys.executable, "-m", "wirebroker", "serve", "--config", str(self.properties)]


KINDS: Final = {
    "java": (FormattedController,) * 3,
    "wirebroker": (OwnFormattedController,) * 3,
    "mixed": (OwnFormattedController, FormattedController, OwnFormattedController),
}


@pytest.fixture(
    scope="module",
    params=[
        "wirebroker",
        pytest.param("java", marks=pytest.mark.nightly),
        pytest.param("mixed", marks=pytest.mark.nightly),
    ],
)
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """Three voters, and a broker that knows of them."""
    cluster = Cluster(tmp_path_factory.mktemp("voters"), controllers=0, has_dynamic_voters=True)
    cluster.places |= {node_id: free_port() for node_id in THREE}
    listed = ",".join(
        f"{node_id}@{HOST}:{cluster.places[node_id]}:{uuid_text(random_uuid())}"
        for node_id in THREE
    )
    for kind, node_id in zip(KINDS[request.param], THREE, strict=True):
        cluster.controllers[node_id] = kind(cluster, node_id, "--initial-controllers", listed)
    try:
        cluster.start_controllers()
        cluster.wirebroker(1)
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture
def verbs(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> Verbs:
    return Verbs(cluster.bootstrap, capsys)


def test_a_formatted_quorum_elects_a_leader(cluster: Cluster, verbs: Verbs) -> None:
    quorum = verbs.json("quorum")
    assert (quorum["voters"], quorum["missing_voters"]) == ([*THREE], [])
    assert quorum["leader_id"] in THREE
    ports = {row["node"]: row["endpoints"] for row in quorum["replicas"] if row["node"] in THREE}
    assert ports == {node_id: f"CONTROLLER://{HOST}:{cluster.places[node_id]}" for node_id in THREE}
    assert "3 voters (101, 102, 103): 1 more may fail" in verbs.do("cluster").lines[0]


def test_the_quorum_is_shown_without_a_broker(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    controllers = ",".join(f"{HOST}:{cluster.places[node_id]}" for node_id in THREE)
    arguments = ["--bootstrap-controller", controllers, "--output", "json"]
    assert cli.run(["quorum", *arguments]) == 0
    assert json.loads(capsys.readouterr().out)["voters"] == [*THREE]
    assert cli.run(["cluster", *arguments]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert [row["controller"] for row in shown["controllers"]] == [*THREE]
    assert shown["cluster_id"] == CLUSTER_ID


def test_a_lost_voter_is_reported_removed_and_replaced(cluster: Cluster, verbs: Verbs) -> None:
    leader_id = verbs.json("quorum")["leader_id"]
    lost_id = next(node_id for node_id in THREE if node_id != leader_id)
    lost = cluster.controllers[lost_id]
    assert isinstance(lost, FormattedController)
    former_directory_id = lost.directory_id
    lost.kill9()
    eventually(lambda: verbs.json("quorum")["missing_voters"] == [lost_id], timeout_s=WAIT_S)
    doctor = verbs.run("doctor", "--free", "0")
    assert doctor.status == 1
    assert f"!!  quorum and clock: controller {lost_id} at CONTROLLER://" in doctor.out
    assert f"`wirebroker quorum remove-voter {lost_id} --yes`" in doctor.out

    remaining = [node_id for node_id in THREE if node_id != lost_id]
    planned = verbs.do("quorum", "remove-voter", str(lost_id))
    assert "2 voters of 2 needed, 0 may fail" in planned.out
    assert verbs.json("quorum")["voters"] == [*THREE]
    verbs.do("quorum", "remove-voter", str(lost_id), "--yes")
    assert verbs.json("quorum")["voters"] == remaining

    # Its disk is replaced.
    shutil.rmtree(lost.data_dir)
    replaced = type(lost)(cluster, lost_id, "--no-initial-controllers")
    cluster.controllers[lost_id] = replaced
    unknown = verbs.run("quorum", "add-voter", f"{lost_id}@{HOST}:{replaced.port}")
    assert (unknown.status, "does not follow the quorum's leader" in unknown.err) == (1, True)
    replaced.start()
    eventually(lambda: _is_added(verbs, f"{lost_id}@{HOST}:{replaced.port}"), timeout_s=WAIT_S)
    assert verbs.json("quorum")["voters"] == [*THREE]
    assert replaced.directory_id != former_directory_id
    eventually(lambda: verbs.json("quorum")["missing_voters"] == [], timeout_s=WAIT_S)


def _is_added(verbs: Verbs, controller: str) -> bool:
    added = verbs.run("quorum", "add-voter", controller, "--yes")
    # A controller that lags is refused with a timeout.
    is_early = "does not follow" in added.err or "REQUEST_TIMED_OUT" in added.err
    assert added.status == 0 or is_early, added
    return added.status == 0


def test_kafkas_tool_says_the_same_of_changes(
    cluster: Cluster, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Compare refusals and trials of add-controller and remove-controller."""
    run = our_scripts(capfd)
    directory_id = uuid_text(random_uuid())
    first = cluster.controllers[101].properties
    no_controller = tmp_path / "broker.properties"
    no_controller.write_text(f"node.id=9\nprocess.roles=broker\nlog.dirs={tmp_path}\n")
    removal = ("remove-controller", "-i", "999", "-d", directory_id)
    with KafkaScripts() as kafka:
        for words in (
            ("add-controller",),
            ("--command-config", str(no_controller), "add-controller"),
            ("--command-config", str(first), "add-controller", "--dry-run"),
            ("--command-config", str(first), "add-controller"),
            ("remove-controller", "-i", "999"),
            ("remove-controller", "-i", "-1", "-d", directory_id),
            ("remove-controller", "-i", "999", "-d", "x"),
            removal,
            (*removal, "--dry-run"),
        ):
            for flag, place in (
                ("--bootstrap-server", cluster.bootstrap),
                ("--bootstrap-controller", f"{HOST}:{cluster.places[101]}"),
            ):
                arguments = [flag, place, *words]
                theirs: Answer = kafka.run("kafka-metadata-quorum", arguments)
                ours: Answer = run("kafka-metadata-quorum", arguments)
                assert (ours.status, ours.out) == (theirs.status, theirs.out), (words, ours, theirs)


@pytest.mark.nightly
def test_features_upgrade_makes_static_voters_dynamic(
    start_cluster: StartCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = start_cluster()
    verbs = Verbs(cluster.wirebroker(1).bootstrap, capsys)
    static = verbs.run("quorum", "add-voter", f"102@{HOST}:9", "--yes")
    assert (static.status, "features upgrade kraft.version=1" in static.err) == (1, True)
    verbs.do("features", "upgrade", "kraft.version=1", "--dry-run")
    verbs.do("features", "upgrade", "kraft.version=1")
    # The leader knows its directory as that of a voter.
    dynamic = verbs.run("quorum", "add-voter", f"102@{HOST}:9", "--yes")
    assert (dynamic.status, "does not follow the quorum's leader" in dynamic.err) == (1, True)
    downgrade = verbs.run("features", "downgrade", "kraft.version=0")
    assert downgrade.status == 1, downgrade
    assert "INVALID_UPDATE_VERSION" in downgrade.err, downgrade
