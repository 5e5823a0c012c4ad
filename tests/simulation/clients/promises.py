"""The guarantees of transactions to read_committed readers and to groups.

Atomicity: all of a transaction is visible, in every partition, or nothing. Nothing is visible
without a requested commit. What a reader has seen stays.

Offsets: a group's committed offsets only rise, and each was in a transaction whose commit was
requested. So those of a fenced member never count, since it aborts.

A value names its source: group / partition / offset / number of the transaction.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_NOTHING = -1


class Source(NamedTuple):
    """A record of the source as a group copies it."""

    group: str
    partition: int
    offset: int


class Promises:
    def __init__(self) -> None:
        self._sent: list[list[bytes]] = []
        self._is_commit: dict[int, bool] = {}
        # By group and partition: offsets that may be committed, and the last committed one.
        self._offsets: dict[tuple[str, int], set[int]] = {}
        self._committed: dict[tuple[str, int], int] = {}

    def begun(self, sources: Iterable[Source]) -> list[bytes]:
        """Note what a transaction copies, and into which target partitions; return the values."""
        number = len(self._sent)
        values = [f"{'/'.join(map(str, source))}/{number}".encode() for source in sources]
        self._sent.append(values)
        return values

    def ended(
        self, values: Sequence[bytes], group: str, offsets: Mapping[int, int], *, is_commit: bool
    ) -> None:
        number = _number_of(values[0])
        assert self._sent[number] == list(values)
        self._is_commit[number] = is_commit
        if is_commit:
            for partition, offset in offsets.items():
                self._offsets.setdefault((group, partition), {_NOTHING}).add(offset)

    def fetched(self, group: str, partition: int, offset: int) -> None:
        allowed = self._offsets.get((group, partition), {_NOTHING})
        assert offset in allowed, (
            f"{group}: {offset} of {partition} is committed, which no client requested"
        )
        before = self._committed.get((group, partition), _NOTHING)
        assert offset >= before, (
            f"{group}: the committed offset of {partition} goes back from {before} to {offset}"
        )
        self._committed[group, partition] = offset

    def check_seen(self, values: Sequence[bytes]) -> None:
        """Check what a read_committed reader sees of one partition at any time."""
        for value in values:
            assert self._is_commit.get(_number_of(value)), f"{value!r} was never to be committed"

    def check_all(self, targets: Sequence[Sequence[bytes]], sources: Iterable[Source]) -> int:
        """Check all partitions of the target at the end; return the number of expected records.

        Args:
            targets: The values in each partition.
            sources: The values that each must contain once.
        """
        expected = Counter(sources)
        for index, values in enumerate(targets):
            self.check_seen(values)
            actual = Counter(map(_source_of, values))
            lost, duplicates = expected - actual, actual - expected
            assert not lost, f"{len(lost)} records are lost in {index}: {list(lost)[:3]}"
            assert not duplicates, (
                f"{len(duplicates)} records are there twice in {index}: {list(duplicates)[:3]}"
            )
            parts: dict[int, list[bytes]] = {}
            for value in values:
                parts.setdefault(_number_of(value), []).append(value)
            for number, part in parts.items():
                assert part == self._sent[number], f"of {self._sent[number]} in {index} only {part}"
        return expected.total()


def _number_of(value: bytes) -> int:
    return int(value.rpartition(b"/")[2])


def _source_of(value: bytes) -> Source:
    group, partition, offset, _ = value.decode().split("/")
    return Source(group, int(partition), int(offset))
