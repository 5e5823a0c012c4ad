"""Output of `cluster`, `doctor` and `quorum` while no controller responds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.brokers.own_cluster import FirstBroker, JoinedBroker
from tests.support.cli.verbs import Verbs
from tests.support.tools.waiting import eventually
from wirebroker.client.cluster.voter_states import SILENT_STEP

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PATIENCE_S = 60


@pytest.fixture(scope="module")
def left_alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[JoinedBroker, str]]:
    """Run broker 2 after its controller, node 1, was killed; return also that one's address."""
    folder: Path = tmp_path_factory.mktemp("cluster")
    first = FirstBroker(folder / "1")
    second = JoinedBroker(folder / "2", first, node_id=2)
    try:
        first.start()
        second.start()
        controller = first.controller
        first.kill9()
        yield second, controller
    finally:
        second.stop()


def test_missing_controller_is_reported_by_every_verb(
    left_alone: tuple[JoinedBroker, str], capsys: pytest.CaptureFixture[str]
) -> None:
    broker, controller = left_alone
    verbs = Verbs(broker.bootstrap, capsys)

    def first_line() -> str:
        return verbs.do("cluster").lines[0]

    eventually(lambda: "no controller has responded for" in first_line(), timeout_s=PATIENCE_S)
    assert "no controller responds" in first_line()
    assert first_line().endswith(f"tried {controller}")

    assert verbs.do("cluster").lines[2] == f"next: {SILENT_STEP}"

    cluster = verbs.json("cluster")
    assert cluster["controller_id"] == -1
    assert {node["broker"]: node["answers"] for node in cluster["brokers"]} == {1: False, 2: True}

    # A check that needs a controller would wait for 60 s.
    lines = verbs.run("doctor", "--timeout", "60").lines
    assert "?   moves: not checked: no controller responds" in lines
    (line,) = [text for text in lines if "quorum and clock" in text]
    assert "no controller responds: no controller has responded for" in line
    assert not [text for text in lines if "run the check as a user with the permission" in text]

    result = verbs.run("quorum")
    assert result.status == 1
    error, step = result.err.splitlines()
    assert error.startswith("wirebroker: ")
    assert "no controller has responded for" in error
    assert step == f"next: {SILENT_STEP}"
