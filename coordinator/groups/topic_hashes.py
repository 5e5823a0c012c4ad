"""Hashes of topics, kept as long as the topics do not change.

Source: Kafka's GroupMetadataManager.topicHashCache.
"""

from __future__ import annotations

from collections import deque
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeAlias

from wirebroker.coordinator.groups.metadata_hash import group_hash, topic_hash

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from wirebroker.base.clock import Steps
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage, TopicImage

Names: TypeAlias = "set[str] | frozenset[str]"

# Maximum number of names of missing topics to remember.
_MOST_MISSING: Final = 50_000
# Number of metadata changes to remember, and the most topics of such a change.
_MOST_CHANGES: Final = 32
_MOST_CHANGED: Final = 1_000


class TopicHashes:
    """The hashes of topics that groups subscribe to, by name.

    Attributes:
        version: Rises with each change of the metadata.
    """

    __slots__ = ("_changes", "_hashes", "_image", "_missing", "version")

    def __init__(self, image: ClusterImage) -> None:
        self._image = image
        self._hashes: dict[str, int] = {}
        # Names of topics that do not exist, so that they are not looked up again.
        self._missing: set[str] = set()
        self.version = 0
        # The changed topics of the last versions.
        self._changes: deque[frozenset[str]] = deque(maxlen=_MOST_CHANGES)

    def follow(self, image: ClusterImage, changed: Iterable[str]) -> None:
        """Use new metadata; `changed` are topics that were created, changed or deleted."""
        self._image = image
        names = frozenset(changed)
        self.version += 1
        if len(names) <= _MOST_CHANGED:
            self._changes.append(names)
        else:
            self._changes.clear()
        for name in names:
            self._hashes.pop(name, None)
            self._missing.discard(name)

    def has_changed_since(self, version: int, names: Names) -> bool:
        """Return whether any of these topics may have changed since a version."""
        count = self.version - version
        if count > len(self._changes):
            return True
        recent = islice(reversed(self._changes), count)
        return not all(map(names.isdisjoint, recent))

    def unknown(self, names: Names) -> Names:
        """Return the names whose topics `of_group` would have to look up."""
        return names.difference(self._hashes).difference(self._missing)

    def add(self, names: Names) -> Steps[None]:
        """Look up topics in steps, before `of_group` needs them."""
        for name in self.unknown(names):
            self._add(name)
            yield

    def of_group(self, names: Names, sorted_names: Sequence[str] = ()) -> int:
        """Return the hash of the existing topics among those that a group subscribes to.

        `sorted_names` are the same ones, if they are sorted already, which saves time.
        """
        for name in self.unknown(names):
            self._add(name)
        hashes = self._hashes
        return group_hash({name: hashes[name] for name in sorted_names or names if name in hashes})

    def _add(self, name: str) -> None:
        image = self._image
        topic = image.topics.get(name)
        if topic is not None:
            self._hashes[name] = topic_hash(topic.topic_id, name, _racks(topic, image))
            return
        if len(self._missing) >= _MOST_MISSING:
            self._missing.clear()
        self._missing.add(name)


def _racks(topic: TopicImage, image: ClusterImage) -> list[list[str]]:
    """Return the racks of each partition's replicas."""
    return [
        [
            broker.rack
            for broker in map(image.brokers.get, topic.partitions[index].replicas)
            if broker is not None and broker.rack is not None
        ]
        for index in range(len(topic.partitions))
    ]
