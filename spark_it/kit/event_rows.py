"""Events for tests of windows: a time, a key and a price."""

from __future__ import annotations

import datetime
import json
from typing import TYPE_CHECKING, Any

from compat_tests.clients import confluent
from compat_tests.clients.message import WAIT_S
from spark_it.kit import records

if TYPE_CHECKING:
    from collections.abc import Sequence

WINDOW_MS = 60_000
START_MS = records.START_MS // WINDOW_MS * WINDOW_MS


def write(bootstrap: str, topic: str, rows: Sequence[tuple[str | None, Any]]) -> None:
    """Write records of keys and values: None, bytes, or content for JSON."""
    producer = confluent.make_producer(bootstrap)
    for key, value in rows:
        is_text = value is None or isinstance(value, bytes)
        text = value if is_text else json.dumps(value).encode()
        producer.produce(topic, text, None if key is None else key.encode(), partition=0)
    assert producer.flush(WAIT_S) == 0


def event(at_ms: int, user: str, cents: int) -> tuple[None, dict[str, Any]]:
    """Return the key and value of an event at a time after START_MS."""
    timestamp = datetime.datetime.fromtimestamp((START_MS + at_ms) / 1000, datetime.UTC)
    return None, {"at": timestamp.isoformat(), "who": user, "price": f"{cents / 100:.2f}"}
