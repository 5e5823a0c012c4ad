"""A map from each key to its last offset, in a memory block of bounded size.

    slot := 16 bytes of hash of the key, offset + 1 (0: the slot is empty)         24 bytes

The map uses open addressing; log.cleaner.dedupe.buffer.size bounds the block. (A dict would take
180 bytes per key.) The number of slots is prime, so that every step width reaches every slot.

If two keys had the same hash, the older one's record would be lost. By chance this happens once in
10^25 maps of five million keys; a secret for each map keeps clients from provoking it (Kafka's MD5
does not).

Source: Kafka's SkimpyOffsetMap.
"""

from __future__ import annotations

from hashlib import blake2b
from struct import Struct
from typing import Final

SLOT_BYTES: Final = 24
# Fewer make no progress.
MIN_SLOTS: Final = 2

_HASH: Final = Struct("=QQ")
_MOST_STEP: Final = 1 << 16


class OffsetMap:
    """Keys and the last offset of each.

    Attributes:
        latest_offset: The last offset read, with or without a key.
    """

    __slots__ = ("_count", "_secret", "_slots", "_words", "latest_offset", "most_keys")

    # _count <= most_keys < _slots, so each search ends.

    def __init__(
        self, memory_bytes: int, *, load_factor: float, secret: bytes, key_count: int | None = None
    ) -> None:
        """Create an empty map of at most `memory_bytes`, or as large as `key_count` keys need.

        `load_factor` is the share of slots to use, `secret` has 16 bytes.
        """
        slots = max(MIN_SLOTS, memory_bytes // SLOT_BYTES)
        if key_count is not None:
            slots = min(slots, int(key_count / load_factor) + MIN_SLOTS)
        self._slots = _prime_at_or_below(slots)
        self.most_keys = max(1, min(int(slots * load_factor), self._slots - 1))
        block = memoryview(bytearray(self._slots * SLOT_BYTES))
        self._words = block.cast("Q")
        self._secret = secret
        self._count = 0
        self.latest_offset = -1

    def __len__(self) -> int:
        return self._count

    def put(self, key: bytes, offset: int) -> bool:
        """Set a key's last offset; return False if the map is full.

        A full map refuses known keys too, as in Kafka, so that it covers the log up to one point.
        """
        if self._count >= self.most_keys:
            return False
        first, second = _HASH.unpack(blake2b(key, digest_size=16, key=self._secret).digest())
        words, slots = self._words, self._slots
        slot: int = first % slots
        step = 0
        while True:
            word = slot * 3
            offset_plus_one: int = words[word + 2]
            if offset_plus_one == 0:
                words[word], words[word + 1] = first, second
                self._count += 1
                break
            if words[word] == first and words[word + 1] == second:
                break
            step = step or _step(second, slots)
            slot = (slot + step) % slots
        words[word + 2] = offset + 1
        self.latest_offset = offset
        return True

    def get(self, key: bytes) -> int:
        """Return the key's last offset; -1 if it is unknown."""
        first, second = _HASH.unpack(blake2b(key, digest_size=16, key=self._secret).digest())
        words, slots = self._words, self._slots
        slot: int = first % slots
        step = 0
        while True:
            word = slot * 3
            offset_plus_one: int = words[word + 2]
            if offset_plus_one == 0 or (words[word] == first and words[word + 1] == second):
                return offset_plus_one - 1
            step = step or _step(second, slots)
            slot = (slot + step) % slots


def _step(second: int, slots: int) -> int:
    return 1 + second % min(_MOST_STEP, slots - 1)


def _prime_at_or_below(number: int) -> int:
    while any(number % divisor == 0 for divisor in range(2, int(number**0.5) + 1)):
        number -= 1
    return number
