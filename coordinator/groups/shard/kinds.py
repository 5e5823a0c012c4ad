"""The kinds of groups other than classic ones, each imported when its first record is replayed.

Most brokers serve no share or streams groups, and their modules take a fifth of a broker's start.
A kind's folder has a module `kind` with the functions that a shard calls.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from wirebroker.coordinator.groups.group import GroupType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from wirebroker.base.clock import Steps
    from wirebroker.codecs.group_records import GroupRecordKey, GroupRecordKind
    from wirebroker.coordinator.groups.serving_shard import ServingShard
    from wirebroker.coordinator.outcome import Moment, Outcome

_GROUPS: Final = "wirebroker.coordinator.groups"
# In the order in which shards begin to serve them.
_FOLDERS: Final = {
    GroupType.CONSUMER: f"{_GROUPS}.consumer",
    GroupType.STREAMS: f"{_GROUPS}.streams",
    GroupType.SHARE: f"{_GROUPS}.share",
}
_TYPES: Final = {folder: group_type for group_type, folder in _FOLDERS.items()}

_loaded: Final[dict[GroupType, GroupKind]] = {}


class GroupKind(Protocol):
    """A module `kind`.

    Attributes:
        ON_TIMER: The handlers of its timers.
    """

    ON_TIMER: Mapping[type[Any], Callable[[Any, Any, Moment], Outcome]]

    def replay(
        self, shard: ServingShard, key: GroupRecordKey, value: bytes | None, known: Any = None
    ) -> None:
        """Apply a record; `known` is its decoded value, if it is known."""
        ...

    def decoded(self, kind: GroupRecordKind, value: bytes) -> Any:
        """Decode the value of a record, for `replay`."""
        ...

    def start_timers(self, shard: ServingShard, now: Moment) -> Steps[None]:
        """Start the timers of the members of this kind's groups after a load."""
        ...


def kind_of(group_type: GroupType) -> GroupKind:
    """Return a kind, importing it if necessary."""
    kind = _loaded.get(group_type)
    if kind is None:
        module = importlib.import_module(f"{_FOLDERS[group_type]}.kind")
        kind = _loaded[group_type] = cast("GroupKind", module)
    return kind


def kind_of_record(record: GroupRecordKind) -> GroupKind:
    """Return the kind whose groups have a kind of record."""
    return kind_of(GroupType(record.name.partition("_")[0].lower()))


def kind_of_timer(event: object) -> GroupKind:
    """Return the kind whose folder defines a timer."""
    return kind_of(_TYPES[type(event).__module__.rpartition(".")[0]])


def is_loaded(group_type: GroupType) -> bool:
    """Return whether there may be groups of a kind."""
    return group_type in _loaded


def is_any_loaded() -> bool:
    """Return whether there may be groups of any of these kinds."""
    return bool(_loaded)


def loaded_kinds() -> Iterator[GroupKind]:
    """Yield the kinds with replayed records."""
    for group_type in _FOLDERS:
        if group_type in _loaded:
            yield _loaded[group_type]
