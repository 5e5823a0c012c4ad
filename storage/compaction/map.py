"""The last offset of each key: what compaction knows of a log, in a bounded piece of memory.

    slot := 16 bytes of hash of the key, offset + 1 (0: the slot is empty)         24 bytes

Open addressing over one block, of at most what log.cleaner.dedupe.buffer.size says. (A dict would
take 180 bytes a key.) The number of slots is prime, so that every step width reaches every slot.

Two keys with one hash would be one key, and the older one's record would be lost. By chance that
happens once in 10^25 maps of five million keys; and it cannot be arranged, because the hash is
keyed with a secret that is new for each map (Kafka's MD5 is not).

Source: Kafka's SkimpyOffsetMap.
"""

from __future__ import annotations

from hashlib import blake2b
from struct import Struct
from typing import Final

SLOT_BYTES: Final = 24
# Below it nothing could be cleaned.
MIN_SLOTS: Final = 2

_HASH: Final = Struct("=QQ")
# Widths of a step differ between keys that begin at the same slot.
_MOST_STEP: Final = 1 << 16


class OffsetMap:
    """Keys and the last offset of each.

    Attributes:
        latest_offset: The last offset that is taken into account, with or without a key.
        most_keys: How many keys it takes; beyond, `put` refuses.
    """

    __slots__ = ("_count", "_secret", "_slots", "_words", "latest_offset", "most_keys")

    # Always: _count <= most_keys, which is below _slots, so that a search ends.

    def __init__(
        self, memory_bytes: int, *, load_factor: float, secret: bytes, key_count: int | None = None
    ) -> None:
        """Make an empty map.

        Args:
            memory_bytes: What it may take.
            load_factor: Up to which share of its slots are used.
            secret: 16 bytes that nobody else knows.
            key_count: More keys will not come: it takes no more memory than they need.
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
        """Note that the key's last record so far is at `offset`; False if the map is full.

        A full map refuses known keys too, as Kafka's does: the offsets that it knows are those up
        to one place in the log.
        """
        if self._count >= self.most_keys:
            return False
        first, second = _HASH.unpack(blake2b(key, digest_size=16, key=self._secret).digest())
        words, slots = self._words, self._slots
        slot: int = first % slots
        step = 0
        while True:
            word = slot * 3
            known: int = words[word + 2]
            if known == 0:
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
        """Return the key's last offset; -1 if the map does not know it."""
        first, second = _HASH.unpack(blake2b(key, digest_size=16, key=self._secret).digest())
        words, slots = self._words, self._slots
        slot: int = first % slots
        step = 0
        while True:
            word = slot * 3
            known: int = words[word + 2]
            if known == 0 or (words[word] == first and words[word + 1] == second):
                return known - 1
            step = step or _step(second, slots)
            slot = (slot + step) % slots


def _step(second: int, slots: int) -> int:
    return 1 + second % min(_MOST_STEP, slots - 1)


def _prime_at_or_below(number: int) -> int:
    while any(number % divisor == 0 for divisor in range(2, int(number**0.5) + 1)):
        number -= 1
    return number
