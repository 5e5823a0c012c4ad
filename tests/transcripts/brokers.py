"""A new broker for each transcript, of either kind."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from tests.support.brokers.brokers import HOST, make_broker
from tests.transcripts.driver import Driver

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tests.transcripts.script import Step


@contextlib.contextmanager
def fresh_driver(kind: str, directory: Path, steps: Sequence[Step]) -> Iterator[Driver]:
    settings = [
        word for step in steps if step.command[0] == "settings" for word in step.command[1:]
    ]
    broker = make_broker(kind, directory, dict(word.split("=", 1) for word in settings))
    broker.start()
    try:
        with contextlib.closing(Driver(HOST, broker.port, restart=broker.restart)) as driver:
            yield driver
    finally:
        broker.stop()
