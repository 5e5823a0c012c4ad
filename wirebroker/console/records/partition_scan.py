"""Decodes and filters the batches of one partition; it does no I/O and runs in a thread.

The steps of a scan are short, so that it can be stopped: each decodes some batches and returns the
records found in them. A batch is searched as bytes before its records are decoded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from wirebroker.client.records.consuming import AbortedFilter
from wirebroker.client.records.fetched_batches import fetched_batches
from wirebroker.codecs.errors import KafkaError, TooLargeError
from wirebroker.codecs.records.batch import batch_payload, payload_records
from wirebroker.codecs.records.codec import Codec
from wirebroker.codecs.records.control import control_type
from wirebroker.codecs.records.decompression_limits import too_large
from wirebroker.console.records.queries import FoundRecord

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wirebroker.client.topics.leaders import TopicPartition
    from wirebroker.codecs.records.batch import BatchHeader
    from wirebroker.codecs.records.record import Headers, Record
    from wirebroker.console.records.record_filter import RecordFilter

# Larger batches are skipped, with a note: a turn has the compressed and the decompressed batch in
# memory, and a record of it.
_MOST_BATCH_BYTES: Final = 16 << 20
# Larger batches are decompressed in a turn.
_SMALL_BATCH_BYTES: Final = 512 << 10
# Of one step: compressed bytes that are read, records that are found, bytes of these.
_STEP_BYTES: Final = 256 << 10
_STEP_RECORDS: Final = 100
_STEP_FOUND_BYTES: Final = 256 << 10
_MOST_NOTES: Final = 5
# Records with more headers cannot be read: each header takes a hundred bytes of memory.
_MOST_HEADERS: Final = 50_000


class _NeedsTurnError(Exception):
    """A batch is large."""


class ScanRules(NamedTuple):
    """Which records are found, and how much of each is kept.

    Attributes:
        record_filter: None for all.
        is_committed: Whether records of aborted transactions are skipped.
        is_control: Whether control records are found.
        most_bytes: Of a key, of a value, and of all headers together.
        most_headers: Of a record.
    """

    record_filter: RecordFilter | None
    is_committed: bool
    is_control: bool
    most_bytes: int
    most_headers: int


class PartitionScan:
    """A scan of one partition.

    Attributes:
        position: The next offset.
        until: The offset at which it ends; None for never.
        notes: Sentences on batches that were skipped.
        needs_turn: Whether `steps` stopped before a large batch. Call it again with
            `in_turn=True`, in a turn (`RecordConnections`).
    """

    # laws: begin <= position; is_done => position >= until

    __slots__ = (
        "_aborted",
        "_rules",
        "_unpacked_bytes",
        "begin",
        "needs_turn",
        "notes",
        "place",
        "position",
        "until",
    )

    def __init__(
        self, place: TopicPartition, position: int, until: int | None, rules: ScanRules
    ) -> None:
        self.place = place
        self.begin = position
        self.position = position
        self.until = until
        self.notes: list[str] = []
        self.needs_turn = False
        self._rules = rules
        self._aborted = AbortedFilter()
        # Of the batch that was read last, decompressed.
        self._unpacked_bytes = 0

    @property
    def is_done(self) -> bool:
        """Whether the end is reached."""
        return self.until is not None and self.position >= self.until

    def steps(self, row: Any, *, in_turn: bool = False) -> Iterator[list[FoundRecord]]:
        """Scan a row of a FetchResponse; each step returns the records that it found.

        Stops before the first large batch, or after it if `in_turn`. Call it again with the same
        row to continue.
        """
        self.needs_turn = False
        self._aborted.begin(row.aborted_transactions or ())
        most_bytes = _MOST_BATCH_BYTES if in_turn else _SMALL_BATCH_BYTES
        found: list[FoundRecord] = []
        scanned_bytes = found_bytes = 0
        try:
            for header, batch in fetched_batches(memoryview(row.records or b"")):
                # Also for batches that were scanned before: their markers end transactions.
                is_committed = self._aborted.lets_through(header, batch)
                if header.last_offset < self.position or self.is_done:
                    continue
                self._unpacked_bytes = header.size
                payload = self._payload(header, batch, most_bytes, is_committed=is_committed)
                for record in self._records(header, payload, is_committed=is_committed):
                    found.append(record)
                    found_bytes += kept_bytes(record)
                    if len(found) >= _STEP_RECORDS or found_bytes >= _STEP_FOUND_BYTES:
                        self.position = record.offset + 1
                        yield found
                        found, found_bytes = [], 0
                self._advance(header.last_offset + 1)
                if in_turn and self._unpacked_bytes > _SMALL_BATCH_BYTES:
                    break
                scanned_bytes += self._unpacked_bytes
                if scanned_bytes >= _STEP_BYTES:
                    yield found
                    found, scanned_bytes, found_bytes = [], 0, 0
        except _NeedsTurnError:
            self.needs_turn = True
        except KafkaError as error:  # where the next batch begins is unknown
            self._note(f"{self.place} cannot be read from offset {self.position:,} on: {error}")
            self.until = self.position
        yield found

    def skip_to(self, offset: int) -> None:
        """Continue at the nearest offset that exists; a scan never goes back."""
        if offset >= self.position or self.until is None:
            self.position = offset
            self._aborted = AbortedFilter()  # markers may have been skipped
        else:
            self.until = self.position

    def _advance(self, offset: int) -> None:
        self.position = offset if self.until is None else min(offset, self.until)

    def _note(self, sentence: str) -> None:
        if len(self.notes) < _MOST_NOTES:
            self.notes.append(sentence)

    def _payload(
        self, header: BatchHeader, batch: memoryview, most_bytes: int, *, is_committed: bool
    ) -> bytes:
        """Return a batch's decompressed records; none if none of them can be found.

        Raises:
            _NeedsTurnError: They exceed `most_bytes`, but can be read in a turn.
        """
        rules = self._rules
        if header.is_control:
            is_skipped = not rules.is_control or rules.record_filter is not None
        else:
            is_skipped = rules.is_committed and header.is_transactional and not is_committed
        if is_skipped:
            return b""
        try:
            if header.codec is Codec.NONE and header.size > most_bytes:
                raise too_large(most_bytes)
            payload = batch_payload(batch, header, max_bytes=most_bytes)
        except TooLargeError:
            if most_bytes < _MOST_BATCH_BYTES:
                raise _NeedsTurnError from None
            self._unpacked_bytes = most_bytes
            self._note(
                f"the batch at offset {header.base_offset:,} of {self.place} has more than"
                f" {_MOST_BATCH_BYTES >> 20} MiB and is not shown; `wirebroker consume` reads it"
            )
            return b""
        except KafkaError as error:
            self._note_unreadable(header, error)
            return b""
        self._unpacked_bytes = max(header.size, len(payload))
        if rules.record_filter is not None and not rules.record_filter.may_match(payload):
            return b""
        return payload

    def _records(
        self, header: BatchHeader, payload: bytes, *, is_committed: bool
    ) -> Iterator[FoundRecord]:
        if not payload:
            return
        rules = self._rules
        record_filter = rules.record_filter
        is_aborted = header.is_transactional and not header.is_control and not is_committed
        try:
            for record in payload_records(payload, header, most_headers=_MOST_HEADERS):
                is_wanted = record.offset >= self.position and (
                    self.until is None or record.offset < self.until
                )
                if is_wanted and (record_filter is None or record_filter.matches(record)):
                    yield _found(self.place, header, record, rules, is_aborted=is_aborted)
        except KafkaError as error:
            self._note_unreadable(header, error)

    def _note_unreadable(self, header: BatchHeader, error: KafkaError) -> None:
        self._note(
            f"the batch at offset {header.base_offset:,} of {self.place} cannot be read: {error}"
        )


def kept_bytes(record: FoundRecord) -> int:
    """Return the bytes that a record takes in memory, about."""
    headers = sum(len(name) + len(value or b"") for name, value in record.headers)
    return 500 + len(record.key or b"") + len(record.value or b"") + headers


def _found(
    place: TopicPartition,
    header: BatchHeader,
    record: Record,
    rules: ScanRules,
    *,
    is_aborted: bool,
) -> FoundRecord:
    key, value, most = record.key, record.value, rules.most_bytes
    key_length = -1 if key is None else len(key)
    value_length = -1 if value is None else len(value)
    headers = _cut_headers(record.headers, rules) if record.headers else ()
    is_cut = key_length > most or value_length > most or headers != record.headers
    return FoundRecord(
        place.topic,
        place.partition,
        record.offset,
        record.timestamp,
        "append" if header.uses_log_append_time else "create",
        key if key is None or key_length <= most else key[:most],
        value if value is None or value_length <= most else value[:most],
        key_length,
        value_length,
        headers,
        len(record.headers),
        header.producer_id,
        header.producer_epoch,
        header.is_transactional,
        _control_name(record) if header.is_control else None,
        is_aborted,
        header.leader_epoch,
        is_cut,
    )


def _cut_headers(headers: Headers, rules: ScanRules) -> Headers:
    kept: list[tuple[str, bytes | None]] = []
    left = rules.most_bytes
    for name, value in headers[: rules.most_headers]:
        left -= len(name) + len(value or b"")
        if left < 0:
            break
        kept.append((name, value))
    return headers if len(kept) == len(headers) else kept


def _control_name(record: Record) -> str:
    try:
        kind = control_type(record.key)
    except KafkaError:
        kind = None
    return "unknown" if kind is None else kind.name.lower()
