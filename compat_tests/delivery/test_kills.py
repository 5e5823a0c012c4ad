"""Kills at random moments: no record is lost, delivered twice or early.

The nightly step has 100 runs of 1,000 records on one node and 10 on three.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from compat_tests.delivery.killed_service import OneNode, run_with_kills, three_nodes

if TYPE_CHECKING:
    from pathlib import Path

    from compat_tests.conftest import StartBroker

RECORDS = 200
NIGHTLY_RECORDS = 1_000
NIGHTLY_RUNS = 100
NIGHTLY_CLUSTER_RUNS = 10
_SHORT_SESSIONS = {"group.min.session.timeout.ms": "1000"}


def test_kills_lose_and_repeat_nothing(start_broker: StartBroker, tmp_path: Path) -> None:
    run_with_kills(OneNode(start_broker(_SHORT_SESSIONS)), tmp_path, RECORDS, seed=1)


@pytest.mark.nightly
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(NIGHTLY_RUNS))
def test_many_kills_lose_and_repeat_nothing(
    start_broker: StartBroker, tmp_path: Path, seed: int
) -> None:
    run_with_kills(OneNode(start_broker(_SHORT_SESSIONS)), tmp_path, NIGHTLY_RECORDS, seed=seed)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_kills_on_three_nodes_lose_and_repeat_nothing(broker_kind: str, tmp_path: Path) -> None:
    with three_nodes(broker_kind, tmp_path / "nodes") as nodes:
        run_with_kills(nodes, tmp_path, RECORDS, seed=1)


@pytest.mark.nightly
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(NIGHTLY_CLUSTER_RUNS))
def test_many_kills_on_three_nodes_lose_and_repeat_nothing(
    broker_kind: str, tmp_path: Path, seed: int
) -> None:
    with three_nodes(broker_kind, tmp_path / "nodes") as nodes:
        run_with_kills(nodes, tmp_path, NIGHTLY_RECORDS, seed=seed)
