"""Voters of Apache Kafka and wirebroker in one quorum, under faults.

Each mix runs for two minutes, with --long for twenty.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from compat_tests.cluster.quorum.mixed_quorum import MixedQuorum
from compat_tests.cluster.quorum.quorum_ordeal import SETTINGS, endure, start_brokers

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.java

_LONG_S = 1_200
_SHORT_S = 120
MIXES = {
    "three": ("wirebroker", "wirebroker", "wirebroker"),
    "two": ("wirebroker", "apache", "wirebroker"),
    "one": ("apache", "wirebroker", "apache"),
}


@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("kinds", MIXES.values(), ids=MIXES)
def test_quorum_loses_nothing_that_it_acknowledged(
    kinds, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    seconds = _LONG_S if request.config.option.long else _SHORT_S
    quorum = MixedQuorum(tmp_path, kinds, SETTINGS)
    try:
        quorum.start()
        start_brokers(quorum)
        print(endure(quorum, seconds=seconds, seed=request.config.option.seed))  # noqa: T201
    finally:
        quorum.stop()
