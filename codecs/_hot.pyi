from wirebroker.codecs.primitives import Buffer
from wirebroker.codecs.records.batch import BatchHeader
from wirebroker.codecs.records.columns import TakenColumns

class RecordWalker:
    max_timestamp: int
    refused: list[tuple[int, int | None]]
    refused_count: int
    is_time_refused: bool

    def __init__(
        self,
        count: int,
        base_timestamp: int,
        earliest: int = ...,
        latest: int = ...,
        needs_key: bool = False,
        most_bytes: int = ...,
    ) -> None: ...
    @property
    def fault(self) -> str | None: ...
    def feed(self, piece: Buffer) -> bool: ...

def checked_header(records: memoryview, is_walked: bool) -> BatchHeader | None: ...
def place(
    records: memoryview, header: BatchHeader, base_offset: int, leader_epoch: int
) -> BatchHeader: ...
def match(
    frame: memoryview, head: bytes, same: bytes, is_flexible: bool
) -> tuple[int, list[tuple[int, memoryview, int]]] | None: ...

class RecordColumns:
    row_count: int
    byte_count: int

    def __init__(self, *, keys: bool, values: bool, headers: bool) -> None: ...
    def add(
        self,
        records: Buffer,
        *,
        count: int,
        base_offset: int,
        base_timestamp: int,
        append_time: int | None,
        base_sequence: int,
        first_offset: int,
        end_offset: int,
    ) -> int: ...
    def take(self) -> TakenColumns: ...
