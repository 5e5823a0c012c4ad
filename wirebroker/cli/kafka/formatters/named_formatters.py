"""Formatters by the names of Kafka classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.cli.kafka.formatters.default_formatter import RecordPrinter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeAlias

    from wirebroker.client.topics.leaders import TopicPartition
    from wirebroker.codecs.records.record import Record

    # Formats a record, given the type of its timestamp.
    Formatter: TypeAlias = Callable[[TopicPartition, Record, str], bytes]

_PACKAGE: Final = "org.apache.kafka.tools.consumer."
DEFAULT_FORMATTER: Final = f"{_PACKAGE}DefaultMessageFormatter"
# LoggingMessageFormatter also logs records, at a level that Kafka's scripts do not show.
_DEFAULTS: Final = (
    DEFAULT_FORMATTER,
    "kafka.tools.DefaultMessageFormatter",
    f"{_PACKAGE}LoggingMessageFormatter",
)
_NO_OP: Final = f"{_PACKAGE}NoOpMessageFormatter"
_OFFSETS: Final = f"{_PACKAGE}OffsetsMessageFormatter"
_GROUPS: Final = f"{_PACKAGE}GroupMetadataMessageFormatter"
_TRANSACTIONS: Final = f"{_PACKAGE}TransactionLogMessageFormatter"
FORMATTERS: Final = (*_DEFAULTS, _NO_OP, _OFFSETS, _GROUPS, _TRANSACTIONS)


def formatter_of(name: str, properties: Mapping[str, str]) -> Formatter:
    """Return the formatter of FORMATTERS with these properties."""
    if name in _DEFAULTS:
        return RecordPrinter(properties).line_of
    if name == _NO_OP:
        return lambda _topic_partition, _record, _timestamp_type: b""
    from wirebroker.cli.kafka.formatters import internal_records  # noqa: PLC0415

    rows = {
        _OFFSETS: internal_records.OFFSETS,
        _GROUPS: internal_records.GROUPS,
        _TRANSACTIONS: internal_records.TRANSACTIONS,
    }
    return rows[name].line_of
