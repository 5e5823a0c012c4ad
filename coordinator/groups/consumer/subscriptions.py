"""The topics of a consumer group: by name, and by regular expressions that are resolved.

Source: Kafka's ConsumerGroup.subscribedTopicNames, SubscriptionCount, ResolvedRegularExpression.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from wirebroker.coordinator.groups.consumer.consumer_member import ConsumerMember

NO_TOPICS: frozenset[str] = frozenset()


class ResolvedRegex(NamedTuple):
    """The topics that match a regular expression.

    Attributes:
        version: Offset of the metadata that was searched.
        timestamp_ms: Wall time of the search.
    """

    topics: frozenset[str]
    version: int
    timestamp_ms: int


class Subscriptions:
    """The subscriptions of all members of a group.

    Attributes:
        resolved: The topics of the members' regular expressions, as far as known.
    """

    __slots__ = ("_names", "_regexes", "resolved")

    # Numbers of members by topic name and by regular expression.

    def __init__(self) -> None:
        self._names: Counter[str] = Counter()
        self._regexes: Counter[str] = Counter()
        self.resolved: dict[str, ResolvedRegex] = {}

    @property
    def regexes(self) -> Mapping[str, int]:
        """Number of members by regular expression."""
        return self._regexes

    def replace(self, old: ConsumerMember | None, new: ConsumerMember | None) -> None:
        """Note that a member has changed, joined or left."""
        if old is not None and new is not None and _is_same(old, new):
            return
        if old is not None:
            _subtract(self._names, self._regexes, old)
        if new is not None:
            _add(self._names, self._regexes, new)

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
    ) -> set[str]:
        """Return all topics after a change of members, or with newly resolved expressions."""
        names, regexes = Counter(self._names), Counter(self._regexes)
        for member in without:
            _subtract(names, regexes, member)
        for member in including:
            _add(names, regexes, member)
        topics = set(names)
        known = self.resolved if resolved is None else {**self.resolved, **resolved}
        for regex in regexes:
            if regex in known:
                topics |= known[regex].topics
        return topics

    def topics_of(self, member: ConsumerMember) -> frozenset[str]:
        """Return the topics that a member subscribes to."""
        if not member.topic_regex:
            return member.topic_names
        resolved = self.resolved.get(member.topic_regex)
        topics = NO_TOPICS if resolved is None else resolved.topics
        return member.topic_names | topics if member.topic_names else topics

    def check(self, members: Iterable[ConsumerMember]) -> None:
        """Assert that the numbers are those of the members."""
        names: Counter[str] = Counter()
        regexes: Counter[str] = Counter()
        for member in members:
            _add(names, regexes, member)
        assert self._names == names, "topics are counted"
        assert self._regexes == regexes, "regular expressions are counted"


def _is_same(old: ConsumerMember, new: ConsumerMember) -> bool:
    return old.topic_names is new.topic_names and old.topic_regex == new.topic_regex


def _add(names: Counter[str], regexes: Counter[str], member: ConsumerMember) -> None:
    names.update(member.topic_names)
    if member.topic_regex:
        regexes[member.topic_regex] += 1


def _subtract(names: Counter[str], regexes: Counter[str], member: ConsumerMember) -> None:
    for name in member.topic_names:
        _decrease(names, name)
    if member.topic_regex:
        _decrease(regexes, member.topic_regex)


def _decrease(counts: Counter[str], key: str) -> None:
    counts[key] -= 1
    if not counts[key]:
        del counts[key]
