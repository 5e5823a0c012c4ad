"""Formatters by the names of Kafka classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from wirebroker.cli.kafka.formatters.deserializers import deserializer_of
from wirebroker.cli.kafka.plumbing.properties import is_true

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.client.topics.leaders import TopicPartition
    from wirebroker.codecs.records.record import Record


class Formatter(Protocol):
    """Formats a record, given the type of its timestamp and how often it was delivered."""

    def __call__(
        self,
        topic_partition: TopicPartition,
        record: Record,
        timestamp_type: str,
        delivery_count: int | None = None,
    ) -> bytes:
        """Return the text of the record."""
        ...


_PACKAGE: Final = "org.apache.kafka.tools.consumer."
DEFAULT_FORMATTER: Final = f"{_PACKAGE}DefaultMessageFormatter"
# LoggingMessageFormatter also logs records, which Kafka's scripts do not show.
_DEFAULTS: Final = (
    DEFAULT_FORMATTER,
    "kafka.tools.DefaultMessageFormatter",
    f"{_PACKAGE}LoggingMessageFormatter",
)
_NO_OP: Final = f"{_PACKAGE}NoOpMessageFormatter"
_OFFSETS: Final = f"{_PACKAGE}OffsetsMessageFormatter"
_GROUPS: Final = f"{_PACKAGE}GroupMetadataMessageFormatter"
_TRANSACTIONS: Final = f"{_PACKAGE}TransactionLogMessageFormatter"
_SHARE_GROUPS: Final = f"{_PACKAGE}ShareGroupMessageFormatter"
_SHARE_STATES: Final = f"{_PACKAGE}group.share.ShareGroupStateMessageFormatter"
FORMATTERS: Final = (
    *_DEFAULTS,
    _NO_OP,
    _OFFSETS,
    _GROUPS,
    _TRANSACTIONS,
    _SHARE_GROUPS,
    _SHARE_STATES,
)


def formatter_of(name: str, properties: Mapping[str, str]) -> Formatter:
    """Return the formatter with these properties."""
    if name in _DEFAULTS:
        return RecordPrinter(properties).line_of
    if name == _NO_OP:
        return _no_line
    from wirebroker.cli.kafka.formatters import internal_records  # noqa: PLC0415

    rows = {
        _OFFSETS: internal_records.OFFSETS,
        _GROUPS: internal_records.GROUPS,
        _TRANSACTIONS: internal_records.TRANSACTIONS,
        _SHARE_GROUPS: internal_records.SHARE_GROUPS,
        _SHARE_STATES: internal_records.SHARE_STATES,
    }
    return rows[name].line_of


def _no_line(
    topic_partition: TopicPartition,
    record: Record,
    timestamp_type: str,
    delivery_count: int | None = None,
) -> bytes:
    del topic_partition, record, timestamp_type, delivery_count
    return b""


# Kafka's DefaultMessageFormatter: a record as a line whose parts properties select

# Kafka prints this for an unknown delivery count, and for the epoch even if it knows it.
_UNKNOWN: Final = b"NOT_PRESENT"


class RecordPrinter:
    """Formats like the default formatter."""

    __slots__ = ("_line_end", "_of_header", "_of_key", "_of_value", "_properties", "_separator")

    def __init__(self, properties: Mapping[str, str]) -> None:
        """Take the properties; unknown ones have no effect."""
        self._properties = properties
        null = properties.get("null.literal", "null").encode()
        self._separator = properties.get("key.separator", "\t").encode()
        self._line_end = properties.get("line.separator", "\n").encode()
        self._of_key = deserializer_of(properties.get("key.deserializer"), null)
        self._of_value = deserializer_of(properties.get("value.deserializer"), null)
        self._of_header = deserializer_of(properties.get("headers.deserializer"), null)

    def line_of(
        self,
        topic_partition: TopicPartition,
        record: Record,
        timestamp_type: str,
        delivery_count: int | None = None,
    ) -> bytes:
        """Return a record's line.

        Raises:
            ClientError: A deserializer rejects its bytes.
        """
        properties = self._properties
        pieces: list[bytes] = []
        if is_true(properties, "print.timestamp"):
            pieces.append(f"{timestamp_type}:{record.timestamp}".encode())
        if is_true(properties, "print.partition"):
            pieces.append(b"Partition:%d" % topic_partition.partition)
        if is_true(properties, "print.offset"):
            pieces.append(b"Offset:%d" % record.offset)
        if is_true(properties, "print.delivery"):
            count = _UNKNOWN if delivery_count is None else b"%d" % delivery_count
            pieces.append(b"Delivery:" + count)
        if is_true(properties, "print.epoch"):
            pieces.append(b"Epoch:" + _UNKNOWN)
        if is_true(properties, "print.headers"):
            pieces.append(self._headers(record))
        if is_true(properties, "print.key"):
            pieces.append(self._of_key(record.key))
        if is_true(properties, "print.value", otherwise=True):
            pieces.append(self._of_value(record.value))
        return self._separator.join(pieces) + self._line_end if pieces else b""

    def _headers(self, record: Record) -> bytes:
        separator = self._properties.get("headers.separator", ",").encode()
        rows = [
            name.encode("utf-8", "surrogateescape") + b":" + self._of_header(value)
            for name, value in record.headers
        ]
        return separator.join(rows) or b"NO_HEADERS"
