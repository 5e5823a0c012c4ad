"""A shadowed broker, in a thread for the tests of a module."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.brokers.servers import ONE_NODE, ThreadedServer, config_of
from tests.support.cli.verbs import Verbs

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreadedServer]:
    with ThreadedServer(config_of(tmp_path_factory.mktemp("data"), settings=ONE_NODE)) as server:
        yield server


@pytest.fixture
def address(source: ThreadedServer) -> str:
    host, port = source.address
    return f"{host}:{port}"


@pytest.fixture
def verbs(address: str, capsys: pytest.CaptureFixture[str]) -> Verbs:
    return Verbs(address, capsys)
