"""Kills at random moments: no record is lost, delivered twice or early.

A hundred runs of 1,000 records on one node, and ten on three:

    pytest compat_tests/delivery/test_kills.py --nightly --kills 100 --seed random
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from compat_tests.delivery.killed_service import OneNode, run_with_kills, three_nodes
from tests.support.harness.budget import Budget

if TYPE_CHECKING:
    from pathlib import Path

    from compat_tests.conftest import StartBroker

RECORDS = 200
NIGHTLY_RECORDS = 1_000
_SHORT_SESSIONS = {"group.min.session.timeout.ms": "1000"}


def test_kills_lose_and_repeat_nothing(start_broker: StartBroker, tmp_path: Path) -> None:
    run_with_kills(OneNode(start_broker(_SHORT_SESSIONS)), tmp_path, RECORDS, seed=1)


@pytest.mark.nightly
@pytest.mark.timeout(7_200)
def test_many_kills_lose_and_repeat_nothing(
    request: pytest.FixtureRequest, start_broker: StartBroker, tmp_path: Path
) -> None:
    for seed in seeds(request, share=1):
        nodes = OneNode(start_broker(_SHORT_SESSIONS))
        run_with_kills(nodes, tmp_path / str(seed), NIGHTLY_RECORDS, seed=seed)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_kills_on_three_nodes_lose_and_repeat_nothing(broker_kind: str, tmp_path: Path) -> None:
    with three_nodes(broker_kind, tmp_path / "nodes") as nodes:
        run_with_kills(nodes, tmp_path, RECORDS, seed=1)


@pytest.mark.nightly
@pytest.mark.timeout(7_200)
def test_many_kills_on_three_nodes_lose_and_repeat_nothing(
    request: pytest.FixtureRequest, broker_kind: str, tmp_path: Path
) -> None:
    for seed in seeds(request, share=10):
        folder = tmp_path / str(seed)
        with three_nodes(broker_kind, folder / "nodes") as nodes:
            run_with_kills(nodes, folder, NIGHTLY_RECORDS, seed=seed)


def seeds(request: pytest.FixtureRequest, share: int) -> range:
    """Return the seeds of the runs: `--kills` of them divided by `share`, from `--seed`."""
    first = Budget(request.config, seconds=1).seed
    return range(first, first + max(1, int(request.config.getoption("--kills")) // share))
