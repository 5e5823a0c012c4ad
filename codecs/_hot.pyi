from wirebroker.codecs.record_batch import BatchHeader

def checked_header(records: memoryview) -> BatchHeader | None: ...
def place(
    records: memoryview, header: BatchHeader, base_offset: int, leader_epoch: int
) -> BatchHeader: ...
def match(
    frame: memoryview, head: bytes, same: bytes, is_flexible: bool
) -> tuple[int, int, int, int] | None: ...
def fill(
    answer: bytes,
    numbers_at: int,
    correlation_id: int,
    base_offset: int,
    log_append_time_ms: int,
    log_start_offset: int,
) -> bytes: ...
