"""Records that Apache Kafka 4.4.0 wrote to its internal topics, and what its tool prints of them.

    __consumer_offsets
    key 000300…
    value 000000…                   `-` for a tombstone
    dump key: {…} payload: {…}      by kafka-dump-log with the topic's decoder

Written by `python -m compat_tests.cli.record_groups`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

PATH: Final = Path(__file__).with_name("internal_records.txt")


class Recorded(NamedTuple):
    """One record."""

    topic: str
    key: bytes
    value: bytes | None
    dump: str

    def __str__(self) -> str:
        state = "tombstone" if self.value is None else "record"
        return f"{self.topic.strip('_')}-{int.from_bytes(self.key[:2])}-{state}"


def text_of(records: Iterable[Recorded]) -> str:
    return "\n".join(
        f"{record.topic}\nkey {record.key.hex()}\n"
        f"value {'-' if record.value is None else record.value.hex()}\ndump {record.dump}\n"
        for record in records
    )


def recorded_records() -> list[Recorded]:
    """Return all records, in the order of their logs."""
    return [_record(block) for block in PATH.read_text(encoding="utf-8").split("\n\n")]


def _record(block: str) -> Recorded:
    topic, key, value, dump = block.strip().split("\n")
    data = value.removeprefix("value ")
    return Recorded(
        topic,
        bytes.fromhex(key.removeprefix("key ")),
        None if data == "-" else bytes.fromhex(data),
        dump.removeprefix("dump "),
    )
