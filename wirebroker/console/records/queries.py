"""Queries for records of topics: pages and searches, with their results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.codecs.records.record import Headers

MOST_ON_PAGE: Final = 500
MOST_HITS: Final = 1000
# Of a record in a list, which shows their beginning; the page of one record shows more.
SHOWN_BYTES: Final = 512
SHOWN_HEADERS: Final = 0

STARTS: Final = ("start", "offset", "time", "end")
PLACES: Final = ("any", "key", "value", "header")


class ReadQuery(NamedTuple):
    """A page of records.

    Attributes:
        partitions: None for all.
        start: start, offset, time, or end for the newest records.
        time_ms: For `time`: the first records at or after it.
        until_ms: Each partition ends before its first record with a later timestamp.
        limit: 1 to 500 records.
        max_value_bytes: Longer keys, values and header values are cut.
        max_headers: Further headers are omitted.
        is_committed: Whether to omit records of open and aborted transactions.
        is_control: Whether to show control records.
        positions: `next` of the page before, for the one after it with the same `start`.
    """

    topic: str
    partitions: tuple[int, ...] | None = None
    start: str = "end"
    offset: int = 0
    time_ms: int = 0
    until_ms: int | None = None
    limit: int = 50
    max_value_bytes: int = SHOWN_BYTES
    max_headers: int = SHOWN_HEADERS
    is_committed: bool = False
    is_control: bool = True
    positions: Mapping[int, int] | None = None


class FoundRecord(NamedTuple):
    """A record.

    Attributes:
        timestamp_type: create or append.
        key_length, value_length: Before cutting; -1 for null.
        header_count: With those that are omitted.
        control: commit, abort or another type of control record; None for data.
        is_aborted: Whether its transaction was aborted, as far as it is known.
        is_cut: Whether key, value or headers are incomplete.
    """

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    timestamp_type: str
    key: bytes | None
    value: bytes | None
    key_length: int
    value_length: int
    headers: Headers
    header_count: int
    producer_id: int
    producer_epoch: int
    is_transactional: bool
    control: str | None
    is_aborted: bool
    leader_epoch: int
    is_cut: bool


class RecordPage(NamedTuple):
    """A page of records.

    Attributes:
        records: From `end` the newest first, else in the order of timestamps; the records of one
            partition are always in the order of their offsets.
        next: Where the following page starts, by partition; empty at the end.
        notes: Sentences on records that cannot be shown.
    """

    records: tuple[FoundRecord, ...]
    next: Mapping[int, int]
    notes: tuple[str, ...] = ()


class SearchQuery(NamedTuple):
    """A search over a topic; all filters that are not empty must hold.

    Attributes:
        partitions: None for all.
        start: start, offset or time.
        until_ms: The first record after this time ends the search of a partition.
        text: UTF-8 text in what `where` names: any, key, value or header.
        header_name, header_value: A header with this name, and this text in its value.
        jsonpath: See `json_path`.
        limit: 1 to 1,000 records.
    """

    topic: str
    partitions: tuple[int, ...] | None = None
    start: str = "start"
    offset: int = 0
    time_ms: int = 0
    until_ms: int | None = None
    text: str = ""
    where: str = "any"
    header_name: str = ""
    header_value: str = ""
    jsonpath: str = ""
    is_case_sensitive: bool = True
    limit: int = 100
    is_committed: bool = False

    def check(self) -> None:
        """Raise ValueError, with a sentence, if the search cannot be made."""
        from wirebroker.console.records.json_path import parse_json_path  # noqa: PLC0415

        if self.start not in STARTS[:3]:
            raise ValueError(f"a search starts at start, offset or time, not at {self.start!r}")
        if self.where not in PLACES:
            raise ValueError(f"text is searched in any, key, value or header, not {self.where!r}")
        if not 1 <= self.limit <= MOST_HITS:
            raise ValueError(f"a search finds 1 to {MOST_HITS} records, not {self.limit}")
        if self.jsonpath:
            parse_json_path(self.jsonpath)


class SearchProgress(NamedTuple):
    """The progress of a search.

    Attributes:
        scanned, total: Offsets; there are fewer records in compacted topics.
        bytes: As fetched, compressed.
        notes: Sentences on records that could not be searched.
    """

    scanned: int
    total: int
    bytes: int
    hits: int
    elapsed_s: float
    records_per_s: float
    is_done: bool
    notes: tuple[str, ...] = ()
