"""A new broker for each transcript, of either kind."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from tests.support.brokers.brokers import HOST, PROFILE, make_broker
from tests.support.brokers.servers import ThreadedServer
from tests.support.tools.ports import free_port
from tests.transcripts.driver import Driver
from wirebroker.config.sources.sources import load_config

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from tests.transcripts.script import Step


@contextlib.contextmanager
def fresh_driver(kind: str, directory: Path, steps: Sequence[Step]) -> Iterator[Driver]:
    words = [word for step in steps if step.command[0] == "settings" for word in step.command[1:]]
    settings = dict(word.split("=", 1) for word in words)
    broker = (
        _BrokerInThread(directory, settings)
        if kind == "wirebroker"
        else make_broker(kind, directory, settings)
    )
    broker.start()
    try:
        with contextlib.closing(Driver(HOST, broker.port, restart=broker.restart)) as driver:
            yield driver
    finally:
        broker.stop()


class _BrokerInThread:
    """A wirebroker in a thread of this process: a hundred processes take a minute to start."""

    def __init__(self, directory: Path, settings: Mapping[str, str]) -> None:
        self.port = free_port()
        self._config = load_config(
            file=None,
            environment=os.environ,  # the features of another release
            flags={**PROFILE, **settings},
            data_directory=str(directory / "data"),
            port=self.port,
        )
        self._running = contextlib.ExitStack()

    def start(self) -> None:
        self._running.enter_context(ThreadedServer(self._config))

    def stop(self) -> None:
        self._running.close()

    def restart(self) -> None:
        self.stop()
        self.start()
