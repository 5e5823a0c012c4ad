"""The two brokers, and a run that sends each step to Apache Kafka and then to wirebroker.

One pair serves any number of consecutive runs: each run has its own connections, its own prefix of
names and its own names for ids.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

from compat_tests.lockstep.kind import Range
from compat_tests.support.kafka_with_receiver import KafkaWithReceiver
from tests.support.brokers import java_start
from tests.support.brokers.brokers import HOST, Broker, Wirebroker
from tests.support.protocol.raw_client import BlockingClient
from tests.transcripts.driver import Driver
from tests.transcripts.printing import Names
from tests.transcripts.script import ScriptError
from wirebroker.codecs.api_keys import API_VERSIONS, ApiKey

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path
    from typing import Any, Self

    from tests.transcripts.script import Step

# During a run, nothing happens by the clock or in the background.
SETTINGS = {
    "auto.create.topics.enable": "false",
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
    "group.min.session.timeout.ms": "10",
    "group.consumer.session.timeout.ms": "3000000",
    "group.consumer.max.session.timeout.ms": "3000000",
    "group.consumer.assignment.interval.ms": "0",
    "group.share.session.timeout.ms": "3000000",
    "group.share.max.session.timeout.ms": "3000000",
    "group.share.assignment.interval.ms": "0",
    "group.share.record.lock.duration.ms": "3000000",
    "group.share.max.record.lock.duration.ms": "3600000",
    "share.coordinator.state.topic.num.partitions": "2",
    "group.streams.session.timeout.ms": "3000000",
    "group.streams.max.session.timeout.ms": "3000000",
    "group.streams.assignment.interval.ms": "0",
    "group.streams.initial.rebalance.delay.ms": "0",
    "telemetry.max.bytes": "100000",
    "log.retention.ms": "-1",
    "log.cleaner.enable": "false",
    "max.incremental.fetch.session.cache.slots": "100000",
    "offset.metadata.max.bytes": "20",
}
# Times this close to the run's start come from the broker's clock; restart steps take a while.
_NEAR_MS = 3_600_000


class Answers(NamedTuple):
    """Both brokers' responses to one step, as printed lines."""

    apache: list[str]
    wirebroker: list[str]


class Pair:
    def __init__(self, directory: Path) -> None:
        java_options = java_start.options()  # it is started often and has little to do
        self.apache: Broker = KafkaWithReceiver(
            directory / "apache", SETTINGS, java_options=java_options
        )
        self.wirebroker: Broker = Wirebroker(
            directory / "wirebroker", {**SETTINGS, "wirebroker.client.metrics": "true"}
        )
        self.versions: dict[ApiKey, Range] = {}
        self._runs = 0

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start both and determine the API versions that both advertise."""
        self.each(lambda broker: broker.start())
        kafka_versions, wirebroker_versions = (
            _advertised(broker) for broker in (self.apache, self.wirebroker)
        )
        self.versions = {
            key: Range(
                max(kafka_versions[key].first, supported.first),
                min(kafka_versions[key].last, supported.last),
            )
            for key, supported in wirebroker_versions.items()
            if key in kafka_versions
        }

    def stop(self) -> None:
        """Stop both, even if one of them fails to stop."""
        self.each(lambda broker: broker.stop())

    def each(self, action: Callable[[Broker], object]) -> None:
        with ThreadPoolExecutor(2) as pool:
            done = [pool.submit(action, broker) for broker in (self.apache, self.wirebroker)]
        for future in done:
            future.result()

    def new_prefix(self) -> str:
        self._runs += 1
        return f"r{self._runs}-"


class Run:
    """Both drivers over a series of steps.

    Args:
        pair: The running brokers.
        timeout_s: Timeout of each response.
    """

    def __init__(self, pair: Pair, *, timeout_s: float = 30.0) -> None:
        self._pair = pair
        now_ms = time.time_ns() // 1_000_000
        self._drivers = [
            Driver(HOST, broker.port, timeout_s=timeout_s)
            for broker in (pair.apache, pair.wirebroker)
        ]
        for driver in self._drivers:
            driver.names = StableNames(now_ms=now_ms)

    def close(self) -> None:
        for driver in self._drivers:
            driver.close()

    def ask(self, step: Step) -> Answers:
        if step.command[0] in ("restart", "kill"):
            return self._interrupt(is_clean=step.command[0] == "restart")
        apache, wirebroker = (_answer(driver, step) for driver in self._drivers)
        return Answers(apache, wirebroker)

    def expect_names(self, names: Iterable[str]) -> None:
        """Set the names of the next step's new ids (see StableNames)."""
        for driver in self._drivers:
            assert isinstance(driver.names, StableNames)
            driver.names.expected = list(names)

    def known_names(self) -> set[str]:
        return set(self._drivers[0].names.values)

    def _interrupt(self, *, is_clean: bool) -> Answers:
        self.close()

        def act(broker: Broker) -> None:
            if not is_clean:
                broker.kill9()
            broker.restart()

        self._pair.each(act)
        return Answers(["done"], ["done"])


class StableNames(Names):
    """Names that do not change when earlier steps are left out.

    Attributes:
        expected: Names of a step's new ids, in order.
    """

    def __init__(self, *, now_ms: int) -> None:
        super().__init__(now_ms=now_ms, near_ms=_NEAR_MS)
        self.expected: list[str] = []

    def new_name(self, letter: str) -> str:
        """Return the first expected name with this letter, or else a new one."""
        for name in self.expected:
            if name[0] == letter and name not in self.values:
                return name
        return super().new_name(letter)


def _answer(driver: Driver, step: Step) -> list[str]:
    try:
        return driver.answer(step)
    except ScriptError as error:
        return [f"fails: {error}"]


def _advertised(broker: Broker) -> dict[ApiKey, Range]:
    client = BlockingClient((HOST, broker.port))
    try:
        answer: Any = client.ask(ApiKey.API_VERSIONS, 0, {})
    finally:
        client.close()
    return {
        ApiKey(api.api_key): Range(api.min_version, api.max_version)
        for api in answer.api_keys
        if api.api_key in API_VERSIONS
    }
