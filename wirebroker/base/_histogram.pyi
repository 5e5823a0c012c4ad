def count_request(times: memoryview, began_s: float, sizes: memoryview, size: int, /) -> int: ...
def count_slow(
    totals: memoryview,
    phases: memoryview,
    sizes: memoryview,
    size: int,
    received_s: float,
    began_s: float,
    returned_s: float,
    now_s: float,
    /,
) -> int: ...
def count_sent(
    totals: memoryview, phases: memoryview, total_us: int, send_us: int, was_slow: bool, /
) -> None: ...
