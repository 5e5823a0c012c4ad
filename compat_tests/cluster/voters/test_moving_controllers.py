"""Controllers change hands one by one, on their directories, while brokers of both kinds serve."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

import pytest

from compat_tests.cluster.nodes import Cluster, JavaController
from compat_tests.cluster.test_membership import create, produce, read, values
from tests.support.cli.verbs import Verbs
from tests.support.tools.ports import HOST, free_port
from tests.support.tools.waiting import eventually
from wirebroker.codecs.primitives import random_uuid, uuid_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.java, pytest.mark.nightly]

THREE: Final = (101, 102, 103)
WAIT_S: Final = 60


class EitherController(JavaController):
    """A controller of either kind, formatted by Apache Kafka; `is_own` before a start chooses."""

    is_own = False
    listed = ""

    def _format_options(self) -> list[str]:
        return ["--initial-controllers", self.listed]

    def _command(self) -> list[str]:
        if not self.is_own:
            return super()._command()
        return [sys.executable, "-m", "wirebroker", "serve", "--config", str(self.properties)]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path, controllers=0, has_dynamic_voters=True)
    cluster.places |= {node_id: free_port() for node_id in THREE}
    listed = ",".join(
        f"{node_id}@{HOST}:{cluster.places[node_id]}:{uuid_text(random_uuid())}"
        for node_id in THREE
    )
    for node_id in THREE:
        controller = cluster.controllers[node_id] = EitherController(cluster, node_id)
        controller.listed = listed
    try:
        cluster.start_controllers()
        cluster.wirebroker(1)
        cluster.java_broker(2)
        yield cluster
    finally:
        cluster.stop()


def test_controllers_are_replaced_by_the_other_kind_and_back(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    verbs = Verbs(cluster.bootstrap, capsys)
    create(cluster, "t", [[1, 2]])
    count = 0
    for is_own in (True, False):
        for node_id, controller in cluster.controllers.items():
            assert isinstance(controller, EitherController)
            controller.stop()
            controller.is_own = is_own
            controller.start()
            eventually(lambda: _is_whole(verbs), timeout_s=WAIT_S)
            create(cluster, f"after-{node_id}-{is_own}", [[1, 2]])
            produce(cluster, "t", values(count, count + 5))
            count += 5
    assert read(cluster, "t", count) == values(0, count)
    # Every controller has the same log.
    topics = {line.split()[0] for line in verbs.do("topic", "list").lines}
    assert {f"after-{node_id}-{is_own}" for node_id in THREE for is_own in (True, False)} <= topics


def _is_whole(verbs: Verbs) -> bool:
    result = verbs.run("quorum", "--output", "json")
    return result.status == 0 and '"missing_voters": []' in result.out
