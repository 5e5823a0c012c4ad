"""The topics of a consumer group: by name, and by regular expressions that are resolved.

Source: Kafka's ConsumerGroup.subscribedTopicNames, SubscriptionCount, ResolvedRegularExpression.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.coordinator.groups.assignors.in_steps import sorted_in_steps

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from wirebroker.base.clock import Steps
    from wirebroker.coordinator.groups.consumer.consumer_member import ConsumerMember
    from wirebroker.coordinator.groups.topic_hashes import Names, TopicHashes

NO_TOPICS: frozenset[str] = frozenset()
# Of a string object, its slots in a set and in the counts.
BYTES_PER_NAME: Final = 64
_NO_SET: Final = (NO_TOPICS, 0)
# Up to this number, topics are sorted each time: 0.5 ms.
_FEW: Final = 2_000


class ResolvedRegex(NamedTuple):
    """The topics that match a regular expression.

    Attributes:
        version: Offset of the metadata that was searched.
        timestamp_ms: Wall time of the search.
    """

    topics: frozenset[str]
    version: int
    timestamp_ms: int


class _Hashed(NamedTuple):
    """The hash of a group's topics, and the version of the topic hashes that it is made of."""

    topics: frozenset[str]
    version: int
    value: int


class Subscriptions:
    """The subscriptions of all members of a group.

    Members of a group usually subscribe to the same topics. Each set of names is stored and counted
    once, so a member among many costs little.

    Attributes:
        resolved: The topics of the members' regular expressions, as far as known.
    """

    __slots__ = (
        "_all_names",
        "_hashed",
        "_in_order",
        "_names",
        "_regexes",
        "_sets",
        "names_bytes",
        "resolved",
    )

    # _sets: each set of names with itself and its number of members. _names: the number of these
    # sets by topic name. _regexes: the number of members by regular expression. Soft, which means
    # caches: _all_names, the keys of _names; _in_order, the result of the last sort of many topics;
    # _hashed.

    def __init__(self) -> None:
        self._names: Counter[str] = Counter()
        self._sets: dict[frozenset[str], tuple[frozenset[str], int]] = {}
        self._regexes: Counter[str] = Counter()
        self._in_order: Sequence[str] = ()
        self._all_names: frozenset[str] | None = None
        self._hashed: _Hashed | None = None
        self.names_bytes = 0
        self.resolved: dict[str, ResolvedRegex] = {}

    @property
    def regexes(self) -> Mapping[str, int]:
        """Number of members by regular expression."""
        return self._regexes

    @property
    def topic_count(self) -> int:
        """Number of topics; one may count several times."""
        return len(self._names) + sum(len(found.topics) for found in self.resolved.values())

    def bytes_only_of(self, member: ConsumerMember) -> int:
        """Return the bytes of a member's names of topics; 0 if others subscribe to the same."""
        known, count = self._sets.get(member.topic_names, _NO_SET)
        return size_of_names(known) if count == 1 else 0

    def has(self, names: frozenset[str]) -> bool:
        """Return whether a member subscribes to exactly these topics by name."""
        return names in self._sets

    def shared(self, names: frozenset[str]) -> frozenset[str]:
        """Return the stored set that is equal to `names`, or `names`."""
        known = self._sets.get(names)
        return names if known is None else known[0]

    def replace(self, old: ConsumerMember | None, new: ConsumerMember | None) -> None:
        """Note that a member has changed, joined or left."""
        old_names = NO_TOPICS if old is None else old.topic_names
        new_names = NO_TOPICS if new is None else new.topic_names
        if old_names is not new_names:
            # First the new ones, so that equal ones are not removed in between.
            self._add(new_names)
            self._remove(old_names)
        old_regex = "" if old is None else old.topic_regex
        new_regex = "" if new is None else new.topic_regex
        if old_regex != new_regex:
            _count_regex(self._regexes, new_regex, 1)
            _count_regex(self._regexes, old_regex, -1)

    def _add(self, names: frozenset[str]) -> None:
        if not names:
            return
        known, count = self._sets.get(names, (names, 0))
        self._sets[known] = known, count + 1
        if not count:
            self._all_names = None
            self._names.update(known)
            self.names_bytes += size_of_names(known)

    def _remove(self, names: frozenset[str]) -> None:
        if not names:
            return
        known, count = self._sets[names]
        if count > 1:
            self._sets[known] = known, count - 1
            return
        del self._sets[known]
        self._all_names = None
        self.names_bytes -= size_of_names(known)
        counts = self._names
        for name in known:
            if counts[name] == 1:
                del counts[name]
            else:
                counts[name] -= 1

    def contains(self, topic: str) -> bool:
        """Return whether a member subscribes to a topic."""
        return topic in self._names or any(
            topic in regex.topics for regex in self.resolved.values()
        )

    def topics(
        self,
        *,
        without: Iterable[ConsumerMember] = (),
        including: Iterable[ConsumerMember] = (),
        resolved: Mapping[str, ResolvedRegex] | None = None,
    ) -> Names:
        """Return all topics after a change of members, or with newly resolved expressions.

        The result is the same object while members only subscribe to the same names.
        """
        regexes = Counter(self._regexes)
        joining = tuple(including)
        leaving: Counter[frozenset[str]] = Counter()
        for member in without:
            leaving[member.topic_names] += 1
            _count_regex(regexes, member.topic_regex, -1)
        for member in joining:
            leaving[member.topic_names] -= 1
            _count_regex(regexes, member.topic_regex, 1)
        gone = [names for names, count in leaving.items() if 0 < count == self._count(names)]
        if not gone and not regexes and all(self._has_all(member) for member in joining):
            if self._all_names is None:
                self._all_names = frozenset(self._names)
            return self._all_names
        topics = set(self._names)
        topics -= self._only_in(gone)
        for member in joining:
            topics |= member.topic_names
        known = self.resolved if resolved is None else {**self.resolved, **resolved}
        for regex in regexes:
            if regex in known:
                topics |= known[regex].topics
        return topics

    def _has_all(self, member: ConsumerMember) -> bool:
        return not member.topic_names or member.topic_names in self._sets

    def hash_of(self, topics: Names, hashes: TopicHashes, added: Sequence[str] = ()) -> int:
        """Return the hash of topics of the group; see `in_order` for `added`."""
        if self._is_hashed(topics, hashes):
            assert self._hashed is not None
            return self._hashed.value
        value = hashes.of_group(topics, self.in_order(topics, added))
        if isinstance(topics, frozenset):
            self._hashed = _Hashed(topics, hashes.version, value)
        return value

    def is_hashed(self, hashes: TopicHashes) -> bool:
        """Return whether `hash_of` knows the hash of all topics."""
        return self._hashed is not None and self._is_hashed(self.topics(), hashes)

    def _is_hashed(self, topics: Names, hashes: TopicHashes) -> bool:
        hashed = self._hashed
        if hashed is None or hashed.topics is not topics:
            return False
        if hashes.has_changed_since(hashed.version, topics):
            return False
        if hashed.version != hashes.version:
            self._hashed = hashed._replace(version=hashes.version)
        return True

    def in_order(self, topics: Names, added: Sequence[str] = ()) -> Sequence[str]:
        """Sort topics of the group, quickly if most of them were sorted before.

        `added` is a sorted part of the topics, which may contain all new ones.
        """
        if len(topics) == len(added) and topics.issuperset(added):
            ordered = added
        else:
            known = [name for name in self._in_order if name in topics]
            missing = topics.difference(known)
            new = [name for name in added if name in missing]
            ordered = [*known, *(new if len(new) == len(missing) else sorted(missing))]
            # Python's sort merges two sorted runs in linear time.
            ordered.sort()
        self._in_order = ordered if len(ordered) > _FEW else ()
        return ordered

    def sort_in_steps(self) -> Steps[None]:
        """Sort all topics, before `in_order` needs them."""
        topics = self.topics()
        if len(self._in_order) != len(topics) or not topics.issuperset(self._in_order):
            yield
            self._in_order = yield from sorted_in_steps(topics, str)

    @property
    def needs_sorting(self) -> bool:
        """Whether `in_order` would sort many topics."""
        return self.topic_count > _FEW + 2 * len(self._in_order)

    def _count(self, names: frozenset[str]) -> int:
        """Return the number of members that subscribe to exactly these topics by name."""
        return self._sets.get(names, _NO_SET)[1]

    def _only_in(self, sets: Iterable[frozenset[str]]) -> set[str]:
        """Return the names that are in no other set of the group."""
        counts: Counter[str] = Counter()
        for names in sets:
            counts.update(names)
        return {name for name, count in counts.items() if self._names[name] == count}

    def topics_of(self, member: ConsumerMember) -> frozenset[str]:
        """Return the topics that a member subscribes to."""
        return topics_of(member, self.resolved)

    def check(self, members: Iterable[ConsumerMember]) -> None:
        """Assert that the numbers are those of the members."""
        sets: Counter[frozenset[str]] = Counter()
        regexes: Counter[str] = Counter()
        for member in members:
            if member.topic_names:
                sets[member.topic_names] += 1
            _count_regex(regexes, member.topic_regex, 1)
        names: Counter[str] = Counter()
        for names_of_one in sets:
            names.update(names_of_one)
        assert dict(self._sets.values()) == sets, "sets of topics are counted"
        assert self._names == names, "topics are counted"
        assert self.names_bytes == sum(map(size_of_names, sets)), "the size of names is known"
        assert self._regexes == regexes, "regular expressions are counted"


def topics_of(member: ConsumerMember, resolved: Mapping[str, ResolvedRegex]) -> frozenset[str]:
    """Return the topics that a member subscribes to, with the topics of regular expressions."""
    if not member.topic_regex:
        return member.topic_names
    found = resolved.get(member.topic_regex)
    topics = NO_TOPICS if found is None else found.topics
    return member.topic_names | topics if member.topic_names else topics


def size_of_names(names: Collection[str]) -> int:
    """Return the bytes that a set of names takes, about."""
    return sum(map(len, names)) + BYTES_PER_NAME * len(names)


def _count_regex(counts: Counter[str], regex: str, difference: int) -> None:
    if not regex:
        return
    counts[regex] += difference
    if not counts[regex]:
        del counts[regex]
