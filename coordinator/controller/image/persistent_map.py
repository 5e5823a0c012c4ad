"""An immutable map whose successors share unchanged parts.

    small (up to SMALL entries)   a dict, copied as a whole
    large                         _buckets   dicts of some 32 entries each, chosen by the key's hash
                                  _order     the keys in insertion order, in chunks of 64

The successor of a large map copies only the changed buckets and chunks, and the two lists of them:
3 us for one change in 10,000 entries, compared with 40 us for a dict.

Iteration is in insertion order, so that simulations are repeatable; a changed entry keeps its
position.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final, TypeVar

from wirebroker.base.clock import in_one_go

if TYPE_CHECKING:
    from wirebroker.base.clock import Steps

Key = TypeVar("Key")
Value = TypeVar("Value")

# A copy of a dict of this size takes 0.4 us.
SMALL = 64
_CHUNK = 64
# Average entries of new buckets; at four times that, buckets are rebuilt.
_BUCKET = 32
# Entries between two yields: 1 ms.
_STEP = 1024


class _Deleted:
    """The mark of a removed entry."""

    __slots__ = ()


_DELETED: Final = _Deleted()


class PersistentMap(Mapping[Key, Value]):
    """A large map; made by `MapEdit.finish`."""

    __slots__ = ("_buckets", "_end", "_length", "_mask", "_order")

    def __init__(self, size: int) -> None:
        count = 1
        while count * _BUCKET < size:
            count *= 2
        # _mask + 1 buckets, a power of two. Each entry has its position in _order.
        self._buckets: list[dict[Key, tuple[int, Value]]] = [{} for _ in range(count)]
        self._mask = count - 1
        self._order: list[list[Key | _Deleted]] = []
        self._length = 0
        # Length of _order, including removed entries.
        self._end = 0

    def fill(self, entries: Mapping[Key, Value]) -> Steps[None]:
        """Fill an empty map, in order."""
        buckets, mask = self._buckets, self._mask
        for position, (key, value) in enumerate(entries.items()):
            buckets[hash(key) & mask][key] = (position, value)
            if position % _STEP == _STEP - 1:
                yield
        keys: list[Key | _Deleted] = list(entries)
        self._order = [keys[start : start + _CHUNK] for start in range(0, len(keys), _CHUNK)]
        self._length = self._end = len(keys)

    def __getitem__(self, key: Key) -> Value:
        return self._buckets[hash(key) & self._mask][key][1]

    def get(self, key: Key, default: Value | None = None) -> Value | None:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return a value; faster than catching KeyError."""
        entry = self._buckets[hash(key) & self._mask].get(key)
        return default if entry is None else entry[1]

    def __contains__(self, key: object) -> bool:
        return key in self._buckets[hash(key) & self._mask]

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Key]:
        for chunk in self._order:
            for key in chunk:
                if not isinstance(key, _Deleted):
                    yield key

    def updated(self, changes: Mapping[Key, Value | _Deleted]) -> Steps[PersistentMap[Key, Value]]:
        """Return the map after these changes."""
        after: PersistentMap[Key, Value] = PersistentMap(0)
        after._mask = self._mask
        after._buckets = list(self._buckets)
        after._order = list(self._order)
        after._length, after._end = self._length, self._end
        copied: set[int] = set()
        for count, (key, value) in enumerate(changes.items(), 1):
            at = hash(key) & self._mask
            if at not in copied:
                copied.add(at)
                after._buckets[at] = dict(after._buckets[at])
            after._change(key, value, self._order)
            if count % _STEP == 0:
                yield
        is_crowded = after._length > 4 * _BUCKET * (after._mask + 1)
        is_sparse = after._end > 2 * after._length + _CHUNK
        if is_crowded or is_sparse:
            anew: PersistentMap[Key, Value] = PersistentMap(after._length)
            yield from anew.fill(after)
            return anew
        return after

    def _change(
        self, key: Key, value: Value | _Deleted, shared: list[list[Key | _Deleted]]
    ) -> None:
        """Change an entry of a new map without changing chunks in `shared`."""
        bucket = self._buckets[hash(key) & self._mask]
        before = bucket.get(key)
        if isinstance(value, _Deleted):
            if before is not None:
                del bucket[key]
                position = before[0]
                self._own_chunk(position // _CHUNK, shared)[position % _CHUNK] = value
                self._length -= 1
        elif before is not None:
            bucket[key] = (before[0], value)
        else:
            bucket[key] = (self._end, value)
            if self._end % _CHUNK == 0:
                self._order.append([])
            self._own_chunk(self._end // _CHUNK, shared).append(key)
            self._end += 1
            self._length += 1

    def _own_chunk(self, number: int, shared: list[list[Key | _Deleted]]) -> list[Key | _Deleted]:
        chunk = self._order[number]
        if number < len(shared) and chunk is shared[number]:
            chunk = self._order[number] = list(chunk)
        return chunk

    def check(self) -> None:
        """Assert the invariants."""
        assert len(self._buckets) == self._mask + 1
        assert sum(map(len, self._buckets)) == self._length == sum(1 for _ in self)
        assert sum(map(len, self._order)) == self._end
        for key in self:
            position, _ = self._buckets[hash(key) & self._mask][key]
            assert self._order[position // _CHUNK][position % _CHUNK] is key


class MapEdit(Mapping[Key, Value]):
    """An editable map; its base does not change."""

    __slots__ = ("_base", "_changes", "_small")

    def __init__(self, base: Mapping[Key, Value]) -> None:
        # Either a copied dict, or a large map with changes.
        self._base = base if isinstance(base, PersistentMap) else None
        self._small: dict[Key, Value] = {} if self._base is not None else dict(base)
        self._changes: dict[Key, Value | _Deleted] = {}

    def __getitem__(self, key: Key) -> Value:
        value = self.get(key)
        if value is None:
            raise KeyError(key)
        return value

    def get(self, key: Key, default: Value | None = None) -> Value | None:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return the current value."""
        if self._base is None:
            return self._small.get(key, default)
        value = self._changes.get(key)
        if value is None:
            return self._base.get(key, default)
        return default if isinstance(value, _Deleted) else value

    def __contains__(self, key: object) -> bool:
        return self.get(key) is not None  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

    def __iter__(self) -> Iterator[Key]:
        if self._base is None:
            return iter(self._small)
        return iter(in_one_go(self._base.updated(self._changes)))

    def __len__(self) -> int:
        if self._base is None:
            return len(self._small)
        return len(in_one_go(self._base.updated(self._changes)))

    def __setitem__(self, key: Key, value: Value) -> None:
        """Set a value other than None."""
        if self._base is None:
            self._small[key] = value
        else:
            self._changes[key] = value

    def discard(self, key: Key) -> None:
        """Remove a key, if present."""
        if self._base is None:
            self._small.pop(key, None)
        elif key in self._base:
            self._changes[key] = _DELETED
        else:
            self._changes.pop(key, None)

    def finish(self) -> Steps[Mapping[Key, Value]]:
        """Return the map; the edit must not be used afterwards."""
        if self._base is None:
            if len(self._small) <= SMALL:
                return self._small
            large: PersistentMap[Key, Value] = PersistentMap(len(self._small))
            yield from large.fill(self._small)
            return large
        if not self._changes:
            return self._base
        return (yield from self._base.updated(self._changes))


def finished(
    edit: MapEdit[Key, Value] | None, base: Mapping[Key, Value]
) -> Steps[Mapping[Key, Value]]:
    """Finish an edit in steps; return `base` if there is none."""
    if edit is None:
        return base
    return (yield from edit.finish())
