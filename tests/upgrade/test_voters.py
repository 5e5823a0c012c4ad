"""A cluster of an earlier version, whose voter is static, gets more voters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.brokers.own_cluster import DynamicFirst, JoinedVoter
from tests.support.cli.verbs import Verbs
from tests.support.tools.waiting import eventually
from tests.upgrade.content import WAIT_S
from tests.upgrade.fixtures import FIXTURES
from tests.upgrade.make_directories import SETTINGS, THREE_REPLICAS, unpack

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

THREE = FIXTURES[1]


@pytest.fixture
def first(tmp_path: Path) -> Iterator[DynamicFirst]:
    """Run node 1 of a cluster of 80b693e; its brokers 2 and 3 stay down."""
    unpack(THREE.archive, tmp_path)
    node = DynamicFirst(tmp_path / "1", {**SETTINGS, **THREE_REPLICAS})
    with node:
        yield node
        node.kill9()


@pytest.mark.long
def test_an_earlier_cluster_survives_the_loss_of_its_only_controller(
    first: DynamicFirst, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    verbs = Verbs(first.bootstrap, capsys)
    assert verbs.json("quorum")["voters"] == [1]
    topics = _topics(verbs)
    assert "orders" in topics
    verbs.do("features", "upgrade", "kraft.version=1")
    voters = [JoinedVoter(tmp_path / str(node_id), first, node_id=node_id) for node_id in (4, 5)]
    try:
        for voter in voters:
            voter.start()
        eventually(lambda: verbs.json("quorum")["voters"] == [1, 4, 5], timeout_s=WAIT_S)
        first.kill9()
        verbs = Verbs(voters[0].bootstrap, capsys)
        eventually(lambda: verbs.run("topic", "create", "after").status == 0, timeout_s=WAIT_S)
        assert _topics(verbs) == topics | {"after"}
    finally:
        for voter in voters:
            voter.kill9()


def _topics(verbs: Verbs) -> set[str]:
    return {line.split()[0] for line in verbs.do("topic", "list").lines}
