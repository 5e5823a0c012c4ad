"""Kills at random moments: no record is lost, delivered twice or early.

`--kills` is the number of runs on one node, a tenth of them on three. Run N has the seed `--seed`
plus N, and its own broker. A hundred runs of 1,000 records can be made in pieces:

    pytest compat_tests/delivery/test_kills.py --nightly -k many -s --kills 20 --seed 1
    pytest compat_tests/delivery/test_kills.py --nightly -k many -s --kills 20 --seed 21

A run takes about a minute on two busy cores. Each prints its seed; a failed one is repeated with
`--kills 1 --seed SEED`. `--records` changes the number of records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from compat_tests.delivery.killed_service import OneNode, run_with_kills, three_nodes
from tests.support.brokers.brokers import make_broker
from tests.support.harness.budget import Budget

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from compat_tests.conftest import StartBroker

RECORDS = 200
_SHORT_SESSIONS = {"group.min.session.timeout.ms": "1000"}


def test_kills_lose_and_repeat_nothing(start_broker: StartBroker, tmp_path: Path) -> None:
    run_with_kills(OneNode(start_broker(_SHORT_SESSIONS)), tmp_path, RECORDS, seed=1)


@pytest.mark.nightly
@pytest.mark.timeout(7_200)
def test_many_kills_lose_and_repeat_nothing(
    request: pytest.FixtureRequest, broker_kind: str, tmp_path: Path
) -> None:
    for seed, records in runs(request, share=1):
        folder = tmp_path / str(seed)
        with make_broker(broker_kind, folder / "node", _SHORT_SESSIONS) as broker:
            run_with_kills(OneNode(broker), folder, records, seed=seed)


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
    for seed, records in runs(request, share=10):
        folder = tmp_path / str(seed)
        with three_nodes(broker_kind, folder / "nodes") as nodes:
            run_with_kills(nodes, folder, records, seed=seed)


def runs(request: pytest.FixtureRequest, share: int) -> Iterator[tuple[int, int]]:
    """Yield the seed and the number of records of each run; print them.

    There are `--kills` runs divided by `share`, with seeds from `--seed`.
    """
    records = int(request.config.getoption("--records"))
    count = max(1, int(request.config.getoption("--kills")) // share)
    first = Budget(request.config, seconds=1).seed
    for number in range(count):
        seed = first + number
        print(f"\nrun {number + 1} of {count}: {records} records, seed {seed}", flush=True)  # noqa: T201
        yield seed, records
