"""Fixture: clusters for single tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from compat_tests.cluster.nodes import Cluster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    StartCluster = Callable[..., Cluster]


@pytest.fixture
def start_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartCluster]:
    """Start clusters with Apache Kafka's controllers; the arguments are those of Cluster."""
    started: list[Cluster] = []

    def start(**arguments: object) -> Cluster:
        cluster = Cluster(tmp_path_factory.mktemp("cluster"), **arguments)  # type: ignore[arg-type]
        started.append(cluster)
        cluster.start_controllers()
        return cluster

    yield start
    for cluster in started:
        cluster.stop()
