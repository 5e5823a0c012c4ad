"""The guarantees to clients, checked against all requests and responses of the broker.

Ownership: no partition has two owners in one generation, whose assignment never changes. A static
member is known by its instance, whose incarnations replace each other.

Committed offsets: a register per group and partition. An OffsetFetch returns the last acknowledged
commit, or a later one with an unknown result. A commit lowers the register only if it is an old
request that its client has given up.

Records: an offset that was acknowledged or read has the same value forever.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.simulation.clients.consumer_protocol import read_assignment
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.simulation.network.link import Exchange

_NOTHING = -1


class _Commit:
    """A commit that was received, and perhaps carried out."""

    __slots__ = ("offset",)

    def __init__(self, offset: int) -> None:
        self.offset = offset


class _Register:
    """A committed offset: the last certain one, and possible later ones."""

    __slots__ = ("certain", "uncertain", "version")

    def __init__(self) -> None:
        self.certain = _NOTHING
        self.uncertain: list[_Commit] = []
        self.version = 0

    def settle(self, offset: int, *, after: list[_Commit]) -> None:
        self.certain = offset
        self.uncertain = after
        self.version += 1


class Model:
    """All guarantees so far."""

    def __init__(self) -> None:
        self._owners: dict[tuple[str, int], dict[int, str]] = {}
        self._assignments: dict[tuple[str, int, str], tuple[int, ...]] = {}
        self._registers: dict[tuple[str, int], _Register] = {}
        self._values: dict[tuple[int, int], bytes] = {}
        # The offset below which all records are processed, and the processed offsets above.
        self._processed: dict[tuple[str, int], tuple[int, set[int]]] = {}
        self.counts: dict[str, int] = {}

    def count(self, name: str) -> None:
        self.counts[name] = self.counts.get(name, 0) + 1

    # -- records -----------------------------------------------------------------------------

    def holds(self, partition: int, offset: int, value: bytes) -> None:
        first_value = self._values.setdefault((partition, offset), value)
        assert first_value == value, (
            f"offset {offset} of {partition} held {first_value!r}, now {value!r}"
        )

    def processed(self, group: str, partition: int, offset: int) -> None:
        following, beyond = self._processed.get((group, partition), (0, set()))
        beyond.add(offset)
        while following in beyond:
            beyond.remove(following)
            following += 1
        self._processed[group, partition] = following, beyond

    def has_processed_all(self, group: str, partition: int, end_offset: int) -> bool:
        following, _ = self._processed.get((group, partition), (0, set()))
        register = self._registers.get((group, partition), _Register())
        committed = max(0, register.certain)
        return following >= end_offset and committed == end_offset and not register.uncertain

    # -- requests ----------------------------------------------------------------------------

    def served(self, exchange: Exchange) -> None:
        if exchange.key is ApiKey.OFFSET_COMMIT:
            exchange.note = {}
            for partition in _partitions(exchange.request):
                register = self._register(exchange, partition["partition_index"])
                commit = _Commit(partition["committed_offset"])
                register.uncertain.append(commit)
                exchange.note[partition["partition_index"]] = commit
        elif exchange.key is ApiKey.OFFSET_FETCH:
            exchange.note = {}
            for index in _fetched_partitions(exchange.request):
                register = self._register(exchange, index)
                exchange.note[index] = register.version, register.certain, [*register.uncertain]

    def answered(self, exchange: Exchange, answer: Any) -> None:
        match exchange.key:
            case ApiKey.OFFSET_COMMIT:
                self._committed(exchange, answer)
            case ApiKey.OFFSET_FETCH:
                self._fetched(exchange, answer)
            case ApiKey.SYNC_GROUP if answer.error_code == ErrorCode.NONE:
                self._assigned(exchange, answer)
            case _:
                pass

    def _committed(self, exchange: Exchange, answer: Any) -> None:
        for topic in answer.topics:
            for partition in topic.partitions:
                index = partition.partition_index
                register = self._register(exchange, index)
                commit = exchange.note[index]
                if commit not in register.uncertain:
                    continue  # a later one is certain
                position = register.uncertain.index(commit)
                if partition.error_code != ErrorCode.NONE:
                    register.uncertain.remove(commit)
                    continue
                self.count("commits")
                assert commit.offset >= register.certain or exchange.is_stale, (
                    f"{_group(exchange)}: the committed offset of {index} goes back from "
                    f"{register.certain} to {commit.offset}"
                )
                register.settle(commit.offset, after=register.uncertain[position + 1 :])

    def _fetched(self, exchange: Exchange, answer: Any) -> None:
        of_group = answer.groups[0] if exchange.version >= 8 else answer
        if of_group.error_code != ErrorCode.NONE:
            return
        for topic in of_group.topics:
            for partition in topic.partitions:
                if partition.error_code != ErrorCode.NONE:
                    continue
                index, offset = partition.partition_index, partition.committed_offset
                version, certain, uncertain = exchange.note[index]
                allowed = [certain, *(commit.offset for commit in uncertain)]
                assert offset in allowed, (
                    f"{_group(exchange)}: the committed offset of {index} is {offset}, "
                    f"one of {allowed} was committed"
                )
                register = self._register(exchange, index)
                if register.version == version:
                    after = [commit for commit in register.uncertain if commit not in uncertain]
                    register.settle(offset, after=after)

    def _assigned(self, exchange: Exchange, answer: Any) -> None:
        request = exchange.request
        group, generation = request["group_id"], request["generation_id"]
        owner = request.get("group_instance_id") or request["member_id"]
        assignment = read_assignment(answer.assignment)
        first_assignment = self._assignments.setdefault((group, generation, owner), assignment)
        assert first_assignment == assignment, (
            f"{group}: {owner} owned {first_assignment} in generation {generation}, "
            f"now {assignment}"
        )
        owners = self._owners.setdefault((group, generation), {})
        for partition in assignment:
            other = owners.setdefault(partition, owner)
            assert other == owner, (
                f"{group}: {partition} is owned by {other} and {owner} in generation {generation}"
            )
        self.count("assignments")

    def _register(self, exchange: Exchange, partition: int) -> _Register:
        return self._registers.setdefault((_group(exchange), partition), _Register())


def _group(exchange: Exchange) -> str:
    request = exchange.request
    group: str = request["groups"][0]["group_id"] if "groups" in request else request["group_id"]
    return group


def _partitions(request: Any) -> Iterator[Any]:
    for topic in request["topics"]:
        yield from topic["partitions"]


def _fetched_partitions(request: Any) -> Iterator[int]:
    topics = request["groups"][0]["topics"] if "groups" in request else request["topics"]
    for topic in topics:
        yield from topic["partition_indexes"]
