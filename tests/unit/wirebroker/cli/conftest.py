"""One broker per module in a thread, and verbs that call it."""

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
    """Let SIGINT end child processes; background processes of a shell ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
