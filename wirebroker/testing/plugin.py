"""The pytest plugin, loaded wherever wirebroker is installed.

    def test_an_order_is_billed(wirebroker): ...                a clean broker for each test

    @pytest.mark.wirebroker(topics={"orders": 3}, config={"message.max.bytes": 1000})
    def test_large_orders_are_refused(wirebroker): ...          with these topics and configs

Tests of a process share one broker, which is reset for each; see docs/testing.md. Until a fixture
is used, only pytest is imported.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping

    from wirebroker.testing.broker.broker import Broker, BrokerFactory
    from wirebroker.testing.settings.settings import Setting

_MARKER: Final = "wirebroker"
_USAGE: Final = (
    "wirebroker(topics=None, config=None): topics of the test's broker (partition counts by name, "
    "or a list of names), and its configs"
)
# For each broker in a failure report.
_LOG_LINES: Final = 30
_REQUESTS: Final = 20


def pytest_addoption(pluginmanager: pytest.PytestPluginManager) -> None:
    """Exclude wirebroker from assertion rewriting, which takes 2 s of CPU and slows the broker.

    The only public way to opt out is a word in each module's docstring.
    """
    marked: set[str] = getattr(pluginmanager.rewrite_hook, "_must_rewrite", set[str]())
    marked.discard("wirebroker")


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line("markers", _USAGE)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Add the fixture to a marked test."""
    if item.get_closest_marker(_MARKER) is not None:
        names: list[str] | None = getattr(item, "fixturenames", None)
        if names is not None and _MARKER not in names:
            names.append(_MARKER)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, Any, None]:
    """Add logs and client requests to a failure report, and shorten its traceback."""
    if call.excinfo is not None and "wirebroker.testing.base.arguments" in sys.modules:
        from wirebroker.testing.hidden_frames import hide_frames  # noqa: PLC0415 - lazy

        if not item.config.getoption("fulltrace"):
            hide_frames(call.excinfo.value)
            info: Any = pytest.ExceptionInfo
            call.excinfo = info.from_exception(call.excinfo.value)
    outcome = yield
    report = outcome.get_result()
    if report.failed:
        for name, broker in _brokers_of(item):
            lines = broker.log_lines(_LOG_LINES)
            if lines:
                report.sections.append((f"{name} log", "\n".join(lines)))
            requests = _last_requests(broker)
            if requests:
                report.sections.append((f"{name} requests", "\n".join(requests)))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Reset faults and clock of `wirebroker_session`; `wirebroker` is reset anyway."""
    arguments: dict[str, Any] = getattr(item, "funcargs", {})
    if "wirebroker_session" in arguments:
        broker: Broker = arguments["wirebroker_session"]
        broker.faults.clear()
        broker.clock.reset()


@pytest.fixture(scope="session")
def wirebroker_session() -> Iterator[Broker]:
    """A broker for all tests of a process, which keeps its data."""
    from wirebroker.testing.broker.broker import Broker  # noqa: PLC0415 - lazy

    with Broker() as broker:
        yield broker


@pytest.fixture(scope="session")
def _wirebroker_anew() -> Iterator[Callable[[Mapping[str, Setting]], Broker]]:
    """A function that resets the shared broker and returns it."""
    from wirebroker.testing.broker.broker import Broker  # noqa: PLC0415 - lazy

    broker = Broker()

    def reset(config: Mapping[str, Setting]) -> Broker:
        broker.reset(config=config)
        return broker

    yield reset
    broker.close()


@pytest.fixture
def wirebroker(
    request: pytest.FixtureRequest,
    _wirebroker_anew: Callable[[Mapping[str, Setting]], Broker],
) -> Broker:
    """An empty broker, with another address in each test."""
    from wirebroker.codecs.errors import KafkaError  # noqa: PLC0415 - lazy
    from wirebroker.config import ConfigError  # noqa: PLC0415 - lazy

    try:
        topics, config = _marker_settings(request.node)
        broker = _wirebroker_anew(config)
        if topics:
            broker.create_topics(topics)
    except (TypeError, ConfigError, KafkaError) as error:
        refusal = f"@pytest.mark.wirebroker: {error}"
    else:
        return broker
    pytest.fail(refusal, pytrace=False)


@pytest.fixture
def wirebroker_factory() -> Iterator[BrokerFactory]:
    """A function that starts brokers for one test, with Broker's arguments."""
    from wirebroker.testing.broker.broker import BrokerFactory  # noqa: PLC0415 - lazy

    factory = BrokerFactory()
    yield factory
    factory.close()


def _marker_settings(item: pytest.Item) -> tuple[dict[str, int], dict[str, Setting]]:
    """Return the topics and configs of a test's markers; the nearest marker overrides.

    Raises:
        TypeError: An argument is unknown or has a wrong type.
    """
    from wirebroker.testing.base.arguments import check_argument  # noqa: PLC0415 - lazy
    from wirebroker.testing.clients.contents import with_counts  # noqa: PLC0415 - lazy

    topics: dict[str, int] = {}
    config: dict[str, Setting] = {}
    for marker in reversed(list(item.iter_markers(_MARKER))):
        unknown = marker.kwargs.keys() - {"topics", "config"}
        if marker.args or unknown:
            raise TypeError(f"write @pytest.mark.{_USAGE.partition(':')[0]}")
        for name, value in marker.kwargs.items():
            if value is not None:
                check_argument("wirebroker", name, value)
        topics |= with_counts(marker.kwargs.get("topics") or {})
        config |= marker.kwargs.get("config") or {}
    return topics, config


def _last_requests(broker: Broker) -> list[str]:
    """Return a line per request; none if the broker does not respond."""
    try:
        return [str(request) for request in broker.requests(most=_REQUESTS)]
    except (RuntimeError, ConnectionError):
        return []


def _brokers_of(item: pytest.Item) -> Iterator[tuple[str, Broker]]:
    arguments: dict[str, Any] = getattr(item, "funcargs", {})
    for name in ("wirebroker", "wirebroker_session"):
        if name in arguments:
            yield name, arguments[name]
    if "wirebroker_factory" in arguments:
        factory: BrokerFactory = arguments["wirebroker_factory"]
        for number, broker in enumerate(factory.brokers, 1):
            yield f"wirebroker_factory, broker {number}", broker
