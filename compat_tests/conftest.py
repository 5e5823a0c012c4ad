"""Fixtures: a broker for the whole session, brokers of a test's own, topics with fresh names."""

from __future__ import annotations

import itertools
import os
from typing import TYPE_CHECKING

import pytest

from tests.support.brokers import Broker, RunningBroker, environment_address, make_broker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    StartBroker = Callable[..., Broker]

_numbers = itertools.count(1)


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
    running = make_broker(broker_kind, tmp_path_factory.mktemp("broker"))
    running.start()
    yield running
    running.stop()


@pytest.fixture
def start_broker(
    broker_kind: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[StartBroker]:
    """Start brokers of the test's own; `settings` go beyond the common profile."""
    started: list[Broker] = []

    def start(settings: dict[str, str] | None = None) -> Broker:
        one = make_broker(broker_kind, tmp_path_factory.mktemp("own-broker"), settings)
        started.append(one)
        one.start()
        return one

    yield start
    for one in started:
        one.stop()


@pytest.fixture(scope="session")
def strict_broker(broker_kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """Run one broker for the session that does not create topics on first use."""
    settings = {"auto.create.topics.enable": "false"}
    running = make_broker(broker_kind, tmp_path_factory.mktemp("strict-broker"), settings)
    running.start()
    yield running
    running.stop()


@pytest.fixture
def topic() -> str:
    """Return the name of a topic that does not exist yet."""
    return new_topic_name()


def new_topic_name() -> str:
    """Return a name that no other test, process or run uses."""
    return f"t{next(_numbers)}-{os.getpid()}-{os.urandom(3).hex()}"
