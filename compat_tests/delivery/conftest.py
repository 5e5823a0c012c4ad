"""Fixture: an instance of the service."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from compat_tests.delivery.running_service import Service

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.brokers.brokers import Broker


@pytest.fixture
def service(broker: Broker, tmp_path: Path, topic: str) -> Iterator[Service]:
    made = Service(broker, tmp_path, topic)
    with made.process:
        made.process.wait_until_ready()
        yield made
