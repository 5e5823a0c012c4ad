"""One broker in a thread for the tests of a module, and the verbs that ask it."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from tests.support.brokers.servers import ONE_NODE, ThreadedServer, config_of
from tests.support.cli.verbs import Verbs

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreadedServer]:
    """Run a broker."""
    with ThreadedServer(config_of(tmp_path_factory.mktemp("data"), settings=ONE_NODE)) as server:
        yield server


@pytest.fixture
def verbs(served: ThreadedServer, capsys: pytest.CaptureFixture[str]) -> Verbs:
    """Run verbs against it."""
    host, port = served.address
    return Verbs(f"{host}:{port}", capsys)


@pytest.fixture
def _interruptible() -> Iterator[None]:
    """Have children end at SIGINT, which is ignored by what a shell has started beside itself."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
