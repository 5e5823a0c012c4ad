"""Fixtures: a cluster of three brokers and its consoles, one of each for a module."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from compat_tests.console.actions.action_cluster import ActionCluster, running_cluster
from compat_tests.console.actions.action_sites import ActionSites, action_sites

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser


@pytest.fixture(scope="module")
def cluster(broker_kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ActionCluster]:
    with running_cluster(broker_kind, tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture(scope="module")
def sites(
    browser: Browser, cluster: ActionCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ActionSites]:
    with action_sites(browser, cluster, tmp_path_factory.mktemp("consoles")) as running:
        yield running
