"""Messages that tests write and read, and the common interface of clients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

Start = int | Literal["earliest", "latest"]
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
WAIT_S = 30.0  # for operations that take milliseconds on an idle machine


@dataclass(slots=True, frozen=True)
class Message:
    """One record. Only read messages have `offset` and the timestamp's type."""

    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp_ms: int | None = None
    offset: int | None = None
    timestamp_type: Literal["create", "append"] | None = None

    @property
    def content(self) -> tuple[bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]:
        """The fields that must be read as they were written."""
        return self.key, self.value, self.headers


class Client(Protocol):
    """A stock client library or program, reduced to common features."""

    name: str

    def produce(
        self, bootstrap: str, topic: str, messages: Sequence[Message], *, codec: str = "none"
    ) -> None:
        """Write the messages to partition 0 with acks=all; return when all are acknowledged."""

    def consume(
        self, bootstrap: str, topic: str, count: int, *, start: Start = "earliest"
    ) -> list[Message]:
        """Read `count` messages from partition 0, without a consumer group."""
