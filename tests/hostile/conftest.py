"""Fixtures of the hostile tests."""

from __future__ import annotations

import pytest

from tests.hostile.hosted_broker import HostedBroker


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory):
    hosted = HostedBroker(tmp_path_factory.mktemp("hostile"))
    yield hosted
    hosted.stop()


@pytest.fixture
def broker_address(broker: HostedBroker) -> tuple[str, int]:
    return broker.address
