"""Fixtures: a broker for the whole session, brokers of a test's own, topics with fresh names."""

from __future__ import annotations

import contextlib
import gc
import itertools
import os
import warnings
from typing import TYPE_CHECKING

import pytest

from tests.support.brokers.brokers import Broker, RunningBroker, environment_address, make_broker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    StartBroker = Callable[..., Broker]

_numbers = itertools.count(1)


@pytest.fixture(scope="module", autouse=True)
def _no_rubbish_of_clients() -> Iterator[None]:
    """Let sockets that a client's library forgot be no other module's fault."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture(scope="session")
def broker_kind(request: pytest.FixtureRequest) -> str:
    """Say which broker is under test: "wirebroker" or "apache"."""
    return str(request.config.getoption("--broker", default="wirebroker"))


@pytest.fixture(scope="session")
def broker(broker_kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """Run one broker for the whole session, with the common profile."""
    address = environment_address()
    if address:
        yield RunningBroker(address)
        return
    with make_broker(broker_kind, tmp_path_factory.mktemp("broker")) as running:
        yield running


@pytest.fixture
def start_broker(
    broker_kind: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[StartBroker]:
    """Start brokers of the test's own; `settings` go beyond the common profile."""
    with contextlib.ExitStack() as started:

        def start(settings: dict[str, str] | None = None) -> Broker:
            one = make_broker(broker_kind, tmp_path_factory.mktemp("own-broker"), settings)
            return started.enter_context(one)

        yield start


@pytest.fixture(scope="session")
def strict_broker(broker_kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """Run one broker for the session that does not create topics on first use."""
    settings = {"auto.create.topics.enable": "false"}
    with make_broker(broker_kind, tmp_path_factory.mktemp("strict-broker"), settings) as running:
        yield running


@pytest.fixture
def topic() -> str:
    """Return the name of a topic that does not exist yet."""
    return new_topic_name()


def new_topic_name() -> str:
    """Return a name that no other test, process or run uses."""
    return f"t{next(_numbers)}-{os.getpid()}-{os.urandom(3).hex()}"
