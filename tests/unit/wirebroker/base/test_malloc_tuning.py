"""The release of memory for unpacking a batch, in a separate process."""

from __future__ import annotations

import subprocess
import sys

_GROWTH_KIB = """
from concurrent.futures import ThreadPoolExecutor
from wirebroker.codecs.records.codec import Codec
from wirebroker.codecs.records.compression import compress, decompress
from wirebroker.base.malloc_tuning import give_back_large_blocks

def resident_kib():
    with open("/proc/self/status") as status:
        return int(next(line for line in status if line.startswith("VmRSS")).split()[1])

assert give_back_large_blocks()
bomb = compress(Codec.GZIP, bytes(40 << 20))
before = resident_kib()
with ThreadPoolExecutor(4) as threads:
    for _ in threads.map(lambda _: len(decompress(Codec.GZIP, bomb, max_bytes=1 << 30)), range(8)):
        pass
    print(resident_kib() - before)
"""


def test_process_shrinks_again_after_large_batches_were_decompressed():
    result = subprocess.run(
        [sys.executable, "-c", _GROWTH_KIB], capture_output=True, text=True, check=True
    )
    assert int(result.stdout) < 20 << 10


_FAULTS = """
import os, resource
from wirebroker.codecs.records.codec import Codec
from wirebroker.codecs.records.compression import compress, unpack
from wirebroker.base.malloc_tuning import give_back_large_blocks

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

assert give_back_large_blocks()
packed = compress(Codec.LZ4, os.urandom(1024) * 1000)
for count in (10, 100):
    before = faults()
    for _ in range(count):
        for piece in unpack(Codec.LZ4, packed):
            del piece
print(faults() - before)
"""


def test_pages_are_reused_when_batches_are_decompressed_in_sequence():
    """Returning them to the system after each piece cost over 100 page faults per batch."""
    result = subprocess.run(
        [sys.executable, "-c", _FAULTS], capture_output=True, text=True, check=True
    )
    assert int(result.stdout) < 1_000
