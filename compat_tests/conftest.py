"""Fixtures: a broker for the session, brokers for single tests, topics with new names."""

from __future__ import annotations

import contextlib
import gc
import itertools
import os
import warnings
from typing import TYPE_CHECKING, Any

import pytest

from compat_tests.cluster.nodes import Cluster
from tests.support.brokers.brokers import Broker, broker_under_test, make_broker

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    StartBroker = Callable[..., Broker]

_numbers = itertools.count(1)
_SHOWN_LINES = 60


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Function,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the end of each broker's log to the report of a failed test."""
    report = yield
    if report.when == "call" and report.failed:
        for name, value in item.funcargs.items():
            for broker in brokers_in(value):
                if broker.log.exists():
                    lines = broker.log.read_text(errors="replace").splitlines()[-_SHOWN_LINES:]
                    title = f"end of the log {name}: {broker.log}"
                    report.sections.append((title, "\n".join(lines)))
    return report


def brokers_in(fixture: Any) -> list[Broker]:
    """Return the brokers and controllers of a fixture's value."""
    if isinstance(fixture, Broker):
        return [fixture]
    cluster = getattr(fixture, "nodes", fixture)
    if not isinstance(cluster, Cluster):
        return []
    return [*cluster.controllers.values(), *cluster.brokers.values()]


@pytest.fixture(scope="module", autouse=True)
def _no_rubbish_of_clients() -> Iterator[None]:
    """Collect sockets leaked by clients, so that their warnings do not appear in another module."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture(scope="session")
def broker_kind(request: pytest.FixtureRequest) -> str:
    """Return the kind of broker under test: "wirebroker" or "apache"."""
    return str(request.config.getoption("--broker", default="wirebroker"))


@pytest.fixture(scope="session")
def broker(broker_kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """Run one broker for the whole session, with the common profile."""
    with broker_under_test(broker_kind, tmp_path_factory.mktemp("broker")) as running:
        yield running


@pytest.fixture
def start_broker(
    broker_kind: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[StartBroker]:
    """Start brokers for one test; `settings` extend the common profile."""
    with contextlib.ExitStack() as started:

        def start(settings: dict[str, str] | None = None) -> Broker:
            new_broker = make_broker(broker_kind, tmp_path_factory.mktemp("own-broker"), settings)
            return started.enter_context(new_broker)

        yield start


@pytest.fixture(scope="session")
def strict_broker(broker_kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """Run one broker for the session that does not create topics automatically."""
    settings = {"auto.create.topics.enable": "false"}
    with make_broker(broker_kind, tmp_path_factory.mktemp("strict-broker"), settings) as running:
        yield running


@pytest.fixture
def topic() -> str:
    """Return the name of a new topic."""
    return new_topic_name()


def new_topic_name() -> str:
    """Return a name that no other test, process or run uses."""
    return f"t{next(_numbers)}-{os.getpid()}-{os.urandom(3).hex()}"
