"""Measured brokers: of a checkout, and Apache Kafka."""

from __future__ import annotations

import contextlib
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.brokers.brokers import ApacheKafka, Broker, Wirebroker

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# From kafka-server-start.sh and kafka-run-class.sh.
KAFKA_JVM = (
    "-Xmx1G",
    "-Xms1G",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
)
# Kafka's defaults; tests use shorter ones.
KAFKA_HEARTBEATS = {"broker.session.timeout.ms": "9000", "broker.heartbeat.interval.ms": "2000"}

# No retention checks during a run.
SETTINGS = {"log.retention.check.interval.ms": "3600000"}


class Checkout(Wirebroker):
    """The broker of a checkout (None is this one), with this interpreter and its packages."""

    def __init__(
        self,
        directory: Path,
        checkout: Path | None = None,
        settings: Mapping[str, str] = SETTINGS,
    ) -> None:
        super().__init__(directory, settings)
        self._checkout = checkout.absolute() if checkout else None

    def _command(self) -> list[str]:
        return of_checkout(super()._command(), self._checkout)


def apache_kafka(directory: Path, settings: Mapping[str, str] = SETTINGS) -> ApacheKafka:
    """Return Apache Kafka with the heap, garbage collector and heartbeats of its scripts."""
    return ApacheKafka(directory, {**KAFKA_HEARTBEATS, **settings}, java_options=KAFKA_JVM)


def of_checkout(command: list[str], checkout: Path | None) -> list[str]:
    # As after pip install: otherwise each start would compile edited files.
    prefix = ["env", "-u", "PYTHONDONTWRITEBYTECODE"]
    if checkout is not None:
        # `-m` searches the working directory first.
        prefix += ["-C", str(checkout)]
    return [*prefix, *command]


def version(checkout: Path | None) -> str:
    command = [sys.executable, "-m", "wirebroker", "--version"]
    done = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=True)
    return f"{done.stdout.strip()} on CPython {platform.python_version()}"


@contextlib.contextmanager
def side_by_side(
    checkout: Path | None, against: Path | None, plain: Path | None
) -> Iterator[tuple[Broker, Broker, Broker | None]]:
    """Run the brokers of `checkout`, `against` (None: Apache Kafka) and, if given, `plain`."""
    with tempfile.TemporaryDirectory(prefix="wirebroker-bench-") as name:
        directory = Path(name)
        brokers: list[Broker] = [
            Checkout(directory / "ours", checkout),
            apache_kafka(directory / "theirs")
            if against is None
            else Checkout(directory / "theirs", against),
        ]
        if plain is not None:
            brokers.append(Checkout(directory / "plain", plain))
        with contextlib.ExitStack() as stack:
            for broker in brokers:
                stack.callback(broker.stop)
                broker.start()
            yield brokers[0], brokers[1], brokers[2] if plain is not None else None
