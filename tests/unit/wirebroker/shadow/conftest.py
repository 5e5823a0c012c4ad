"""A broker that is shadowed, in a thread for the tests of a module."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.servers import ThreadedServer, config_of
from tests.support.verbs import Verbs

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreadedServer]:
    """Run it."""
    settings = {
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "1",
        "group.initial.rebalance.delay.ms": "0",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "transaction.state.log.num.partitions": "1",
    }
    with ThreadedServer(config_of(tmp_path_factory.mktemp("data"), settings=settings)) as server:
        yield server


@pytest.fixture
def address(source: ThreadedServer) -> str:
    host, port = source.address
    return f"{host}:{port}"


@pytest.fixture
def verbs(address: str, capsys: pytest.CaptureFixture[str]) -> Verbs:
    """Run verbs against it."""
    return Verbs(address, capsys)
