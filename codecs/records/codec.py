"""The compression codecs, and their names in configs and flags.

Source: Kafka's CompressionType.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class Codec(IntEnum):
    """The lowest three bits of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


CODECS: Final = {codec.name.lower(): codec for codec in Codec}
