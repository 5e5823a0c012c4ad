"""The orders of Java's hash maps and priority queues, on which Kafka's choices depend.

So two coordinators of one group, ours and Kafka's, make the same choice between equals.

    hash map         by bucket; within a bucket in the order of insertion, or the newest first
    priority queue   a binary heap, with Java's moves of equal elements

Kafka's timeline map of members has buckets too, with other bits of the hash.

Source: Java's HashMap and PriorityQueue; Kafka's BaseHashTable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from wirebroker.coordinator.groups.partitions import java_hash

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from wirebroker.base.clock import Steps

T = TypeVar("T")

_LEAST_BUCKETS: Final = 16
_LEAST_TIMELINE_BITS: Final = 1
# A millisecond, since each is hashed.
_KEYS_PER_STEP: Final = 200
_MASK: Final = 0xFFFFFFFF
_LONG_MASK: Final = (1 << 64) - 1
# 2^64 divided by the golden ratio, as a signed number.
_FIBONACCI: Final = -7_046_029_254_386_353_131


def java_order(text: str) -> bytes:
    """Return the sort key of a text in Java: its UTF-16 units."""
    return text.encode("utf-16-be", "surrogatepass")


def hash_order(keys: Iterable[str]) -> list[str]:
    """Return distinct keys in the order of a HashMap into which they were put one by one."""
    inserted = list(dict.fromkeys(keys))
    buckets = _LEAST_BUCKETS
    while len(inserted) > buckets * 3 // 4:
        buckets *= 2
    return sorted(inserted, key=lambda key: _bucket(key) & (buckets - 1))


def hash_order_in_steps(keys: Iterable[str]) -> Steps[list[str]]:
    """Return the order of `hash_order`, in steps."""
    inserted = list(dict.fromkeys(keys))
    buckets = _LEAST_BUCKETS
    while len(inserted) > buckets * 3 // 4:
        buckets *= 2
    return (yield from _sorted(inserted, lambda key: _bucket(key) & (buckets - 1)))


def computed_order(keys: Iterable[str], *, capacity: int) -> Steps[list[str]]:
    """Return distinct keys in the order of a HashMap that computeIfAbsent has filled, in steps.

    It puts a key in front of its bucket. A call enlarges a table that is too full, even if the key
    is already in it.

    Args:
        keys: Those of the calls, in order, with repetitions.
        capacity: That of the constructor.
    """
    inserted: dict[str, None] = {}
    buckets = 1 << max(capacity - 1, 0).bit_length()
    for count, key in enumerate(keys, 1):
        if len(inserted) > buckets * 3 // 4:
            buckets *= 2
        inserted[key] = None
        if count % _KEYS_PER_STEP == 0:
            yield
    newest_first = list(inserted)
    newest_first.reverse()
    return (yield from _sorted(newest_first, lambda key: _bucket(key) & (buckets - 1)))


def timeline_order(keys: Iterable[str]) -> Steps[list[str]]:
    """Return distinct keys in the order of a TimelineHashMap, in steps.

    Its values were replaced since they were put into it.
    """
    inserted = list(dict.fromkeys(keys))
    bits = _LEAST_TIMELINE_BITS
    while (len(inserted) + 1) * 3 > 4 << bits:
        bits += 1
    # Its iterator takes a bucket's newest element first; sorting keeps that order.
    inserted.reverse()
    return (yield from _sorted(inserted, lambda key: _timeline_bucket(key, bits)))


def _sorted(keys: Iterable[str], bucket: Callable[[str], int]) -> Steps[list[str]]:
    """Sort keys by bucket, in steps; a bucket keeps the keys' order."""
    by_bucket: dict[int, list[str]] = {}
    for count, key in enumerate(keys, 1):
        by_bucket.setdefault(bucket(key), []).append(key)
        if count % _KEYS_PER_STEP == 0:
            yield
    ordered: list[str] = []
    # Integers are sorted quickly: 10 ms for 100,000.
    for count, number in enumerate(sorted(by_bucket), 1):
        ordered += by_bucket[number]
        if count % _KEYS_PER_STEP == 0:
            yield
    return ordered


def _bucket(key: str) -> int:
    value = java_hash(key) & _MASK
    return value ^ (value >> 16)


def _timeline_bucket(key: str, bits: int) -> int:
    return ((java_hash(key) * _FIBONACCI) & _LONG_MASK) >> (64 - bits)


class JavaPriorityQueue(Generic[T]):
    """A queue whose least element comes first; among equal ones, the same as in Java.

    Elements are compared by their keys alone.
    """

    __slots__ = ("_heap",)

    def __init__(self, elements: Sequence[tuple[Any, T]] = ()) -> None:
        """Add elements, (key, value) each, one by one."""
        self._heap: list[tuple[Any, T]] = []
        for key, value in elements:
            self.add(key, value)

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, key: Any, value: T) -> None:
        """Add an element."""
        heap = self._heap
        position = len(heap)
        heap.append((key, value))
        while position > 0:
            parent = (position - 1) >> 1
            if key >= heap[parent][0]:
                break
            heap[position] = heap[parent]
            position = parent
        heap[position] = key, value

    def poll(self) -> T:
        """Remove and return the value of the first element.

        Raises:
            IndexError: There is none.
        """
        heap = self._heap
        last = heap.pop()
        if not heap:
            return last[1]
        first = heap[0]
        self._sift_down(last)
        return first[1]

    def _sift_down(self, element: tuple[Any, T]) -> None:
        """Put an element in the place of the first one, or lower."""
        heap, key = self._heap, element[0]
        count, position = len(heap), 0
        while position < count >> 1:
            child = 2 * position + 1
            right = child + 1
            if right < count and heap[child][0] > heap[right][0]:
                child = right
            if key <= heap[child][0]:
                break
            heap[position] = heap[child]
            position = child
        heap[position] = element
