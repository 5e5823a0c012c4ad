"""The Python blocks of docs/delivery.md."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from wirebroker.dedup import message_id

PAGE = Path(__file__).parents[4] / "docs" / "delivery.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def names_of(word: str) -> dict[str, Any]:
    """Execute the block that contains a word; return its names."""
    (block,) = [text for text in BLOCKS if word in text]
    names: dict[str, Any] = {}
    exec(compile(block, str(PAGE), "exec"), names)
    return names


def record(value: bytes, *headers: tuple[str, bytes]) -> Any:
    """Return a message of confluent-kafka: its fields are methods."""
    fields = {
        "topic": "orders",
        "partition": 0,
        "offset": 7,
        "key": b"k",
        "value": value,
        "headers": list(headers),
        "timestamp": (1, 1_800_000_000_000),
    }
    methods = {name: lambda value=value: value for name, value in fields.items()}
    return SimpleNamespace(**methods, error=lambda: None)


def test_every_block_is_run_here():
    assert len(BLOCKS) == 2


def test_a_failed_record_is_sent_to_be_retried():
    handle = names_of("def handle")["handle"]
    sent: list[dict[str, Any]] = []
    producer = SimpleNamespace(produce=lambda **arguments: sent.append(arguments))

    def process(message: Any) -> None:
        if message.value() == b"bad":
            raise ValueError("no price")

    for value in (b"good", b"bad"):
        handle(record(value), producer, process)
    (again,) = sent
    assert (again["topic"], again["value"]) == ("retry", b"bad")
    assert dict(again["headers"])["retry-topic"] == b"orders.retry.billing"


def test_a_repeated_message_is_inserted_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = names_of("def consume")
    for value, identity in ((b"a", "m1"), (b"b", "m2"), (b"a", "m1")):
        names["consume"](record(value, message_id(identity)))
    connection = names["store"].connection
    assert connection.execute("SELECT text FROM orders").fetchall() == [(b"a",), (b"b",)]
    connection.close()
