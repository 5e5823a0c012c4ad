"""A broker whose event loop's turns are counted or measured."""

from __future__ import annotations

import contextlib
import functools
import os
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.brokers.servers import ThreadedServer, config_of, memory_directory
from tests.support.harness.turn_work import TurnWork
from tests.support.protocol.raw_client import BlockingClient, answer_of, request_frame
from tests.transcripts.raw_records import record
from wirebroker.base.gc_tuning import GarbagePolicy, collect_frozen
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support.harness.request_sizes import RequestSizes


# All for RequestSizes.of.
# Most calls in one turn. A slice of 5 ms (clock.Slices) makes a third of them, because a counted
# call takes over 0.15 us. Code that does not yield makes ten or more for each of 10,000 items.
MOST_CALLS = 100_000
# The most records that one request may write, including the topic's own.
MOST_PARTITIONS = 9_999
MANY_TOPICS = 1_000
MANY_BATCHES = 2_000
# As many minimal records as a 1 MiB batch holds: 150 ms to parse in Python.
MOST_RECORDS = 100_000
# Ten thousand partitions take longer on a busy machine.
PATIENCE_S = 120.0
# The longest turn of each test in milliseconds of CPU and wall time, with --measure-holds.
measured: dict[str, tuple[float, float]] = {}


@pytest.fixture(autouse=True, scope="module")
def is_measured(request):
    """Return whether turns are measured; if so, print their lengths at the end."""
    if request.config.getoption("--measure-holds"):
        yield True
        writer = request.config.get_terminal_writer()
        writer.line("\n the longest turn: ms of CPU, ms by the wall")
        for name, (cpu_ms, wall_ms) in measured.items():
            writer.line(f"{cpu_ms:6.1f} {wall_ms:6.1f}  {name}")
        return
    yield False


class WatchedBroker:
    """A broker in a thread, with one client."""

    def __init__(self, server: ThreadedServer, sizes: RequestSizes, *, is_measured: bool) -> None:
        self.server = server
        self.sizes = sizes
        self.client = BlockingClient(server.address, timeout_s=300)
        self._work = None if is_measured else TurnWork(server.watch)

    @property
    def partitions(self) -> range:
        """All partitions of the largest topic."""
        return range(self.sizes.of(MOST_PARTITIONS))

    @property
    def few_partitions(self) -> range:
        """As many partitions as a large Produce has."""
        return range(self.sizes.of(MANY_BATCHES))

    def assert_short(self, work: Callable[[], Any]) -> None:
        if self._work is None:
            self._measure(work)
            return
        self.server.call(self._work.begin())
        work()
        self.server.call(self._work.end())
        largest, most = self._work.largest, self.sizes.of(MOST_CALLS)
        assert 0 < largest < most, f"a turn of {largest} calls, more than {most}"

    def _measure(self, work: Callable[[], Any]) -> None:
        histograms = (self.server.watch.cpu_holds_ms, self.server.watch.holds_ms)

        async def reset() -> None:
            for histogram in histograms:
                histogram.reset()

        self.server.call(reset())
        work()
        name = os.environ["PYTEST_CURRENT_TEST"].rpartition("::")[2].removesuffix(" (call)")
        cpu_ms, wall_ms = measured.get(name, (0.0, 0.0))
        measured[name] = (
            max(cpu_ms, histograms[0].largest),
            max(wall_ms, histograms[1].largest),
        )

    def ask(self, key: ApiKey, version: int, request: dict[str, Any]) -> Any:
        """Send the request as `assert_short` does and return the last response, decoded."""
        frame = request_frame(key, version, request)
        answers: list[bytes] = []
        self.assert_short(lambda: answers.append(self.client.exchange(frame)))
        return answer_of(key, version, answers[-1])

    def create(self, topics: list[dict[str, Any]]) -> None:
        frame = request_frame(ApiKey.CREATE_TOPICS, 7, {"topics": topics, "timeout_ms": 60_000})
        answers: list[bytes] = []
        self.assert_short(lambda: answers.append(self.client.exchange(frame)))
        answer = answer_of(ApiKey.CREATE_TOPICS, 7, answers[0])
        assert [topic.error_code for topic in answer.topics] == [0] * len(topics)

    def delete(self, names: list[str]) -> None:
        topics = [{"name": name} for name in names]
        request = {"topics": topics, "timeout_ms": 60_000}
        frame = request_frame(ApiKey.DELETE_TOPICS, 6, request)
        answers: list[bytes] = []
        self.assert_short(lambda: answers.append(self.client.exchange(frame)))
        answer = answer_of(ApiKey.DELETE_TOPICS, 6, answers[0])
        assert [topic.error_code for topic in answer.responses] == [0] * len(names)


def new_topic(name: str, partitions: int, **configs: str) -> dict[str, Any]:
    settings = [{"name": key.replace("_", "."), "value": value} for key, value in configs.items()]
    return {
        "name": name,
        "num_partitions": partitions,
        "replication_factor": 1,
        "configs": settings,
    }


@pytest.fixture(autouse=True, scope="module")
def garbage():
    """Use the broker's garbage collection policy once for the whole process.

    Ending it unfreezes all objects, and the next full collection walks the 10,999 partitions.
    """
    with GarbagePolicy() as policy:
        yield policy
    collect_frozen()


@contextlib.contextmanager
def watched_broker(
    directory,
    garbage: GarbagePolicy,
    sizes: RequestSizes,
    *,
    is_measured: bool,
    settings: dict[str, str] | None = None,
) -> Iterator[WatchedBroker]:
    with (
        sizes.limits(),
        memory_directory(directory) as data,
        ThreadedServer(config_of(data, settings=settings), PATIENCE_S) as server,
    ):
        garbage.keep_all()
        watched = WatchedBroker(server, sizes, is_measured=is_measured)
        yield watched
        watched.client.close()
    # Otherwise a turn of a later test collects the stopped broker, most of which is frozen.
    collect_frozen()


def nightly(*values: Any) -> list[Any]:
    """Return parameters of further variants."""
    return [pytest.param(value, marks=pytest.mark.nightly) for value in values]


@functools.cache
def smallest_records(count: int) -> list[bytes]:
    return [record(None, key=None, offset=index) for index in range(count)]
