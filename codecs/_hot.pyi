from wirebroker.codecs.primitives import Buffer
from wirebroker.codecs.records.batch import BatchHeader

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
