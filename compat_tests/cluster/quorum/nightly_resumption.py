"""acks=all writes go on about as soon with wirebroker's voters as with Apache Kafka's."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Final

import pytest

from compat_tests.cluster.quorum.resumption import cluster, resumption_s

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.java

PAIRS: Final = 4
# Times Kafka's median.
MOST: Final = 1.2


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_writes_go_on_as_soon_as_with_controllers_of_kafka(tmp_path: Path) -> None:
    own: list[float] = []
    apache: list[float] = []
    with (
        cluster(tmp_path / "own", "wirebroker") as own_voters,
        cluster(tmp_path / "apache", "apache") as apache_voters,
    ):
        for _ in range(PAIRS):
            own.append(resumption_s(own_voters))
            apache.append(resumption_s(apache_voters))
    figures = ", ".join(f"{a:.2f} and {b:.2f} s" for a, b in zip(own, apache, strict=True))
    print(f"\nseconds with voters of wirebroker and of Apache Kafka: {figures}")  # noqa: T201
    assert statistics.median(own) <= MOST * statistics.median(apache), figures
