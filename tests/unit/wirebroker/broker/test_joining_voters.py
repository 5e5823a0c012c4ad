"""A single node grows to three voters by `wirebroker join --voter`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from tests.support.brokers.brokers import BrokerError
from tests.support.brokers.own_cluster import DynamicFirst, FirstBroker, JoinedVoter
from tests.support.cli.verbs import Verbs
from tests.support.tools.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WAIT_S: Final = 60
# Topics of one replica may be written to while a node is down.
SETTINGS: Final = {"min.insync.replicas": "1", "default.replication.factor": "1"}


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[tuple[DynamicFirst, JoinedVoter, JoinedVoter]]:
    first = DynamicFirst(tmp_path / "1", SETTINGS)
    second, third = (
        JoinedVoter(tmp_path / str(node_id), first, node_id=node_id, settings=SETTINGS)
        for node_id in (2, 3)
    )
    try:
        for node in (first, second, third):
            node.start()
        yield first, second, third
    finally:
        for node in (third, second, first):
            node.kill9()


def test_the_first_node_may_be_lost_once_two_others_vote(
    nodes: tuple[DynamicFirst, JoinedVoter, JoinedVoter], capsys: pytest.CaptureFixture[str]
) -> None:
    first, second, third = nodes
    verbs = Verbs(second.bootstrap, capsys)
    eventually(lambda: verbs.json("quorum")["voters"] == [1, 2, 3], timeout_s=WAIT_S)
    verbs.do("topic", "create", "before")
    first.kill9()
    eventually(lambda: verbs.run("topic", "create", "after").status == 0, timeout_s=WAIT_S)
    # A voter finds the others in its log: the node that it joined is down.
    third.kill9()
    third.start()
    eventually(lambda: _missing(verbs) == [1], timeout_s=WAIT_S)
    topics = {line.split()[0] for line in verbs.do("topic", "list").lines}
    assert {"before", "after"} <= topics


def _missing(verbs: Verbs) -> list[int] | None:
    result = verbs.run("quorum", "--output", "json")
    return verbs.json("quorum")["missing_voters"] if result.status == 0 else None


def test_static_voters_are_left_alone(tmp_path: Path) -> None:
    first = FirstBroker(tmp_path / "1", SETTINGS)
    joining = JoinedVoter(tmp_path / "2", first, node_id=2)
    with first, pytest.raises(BrokerError, match="features upgrade kraft"):
        joining.start()
    assert not joining.data_dir.exists()
