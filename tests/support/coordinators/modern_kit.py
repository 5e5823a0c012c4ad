"""The common part of the kits of consumer, share and streams groups.

Topics that change, and long work beside the shard, which is carried out on demand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.support.coordinators.group_kit import Groups
from tests.support.coordinators.kit import image_of, topic
from wirebroker.base.clock import in_one_go
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.group_records import (
    GroupMemberKey,
    RegularExpressionKey,
    WholeGroupKey,
    decode_record_key,
    decode_record_value,
)
from wirebroker.codecs.metadata_records import RecordType, metadata_record
from wirebroker.coordinator.groups.shard.admin import delete_groups

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from wirebroker.codecs.coordinator_records import CoordinatorRecord


class ModernGroups(Groups):
    """A shard with topics, whose effects are carried out on demand.

    Attributes:
        kind: The beginning of the names of its record kinds, which `since` leaves out.
        running: Long work that has begun; each step of it may append.
    """

    kind: str

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.running: list[Iterator[None]] = []

    def code(self, answer: Mapping[str, Any]) -> ErrorCode:
        return ErrorCode(answer.get("error_code", 0))

    def since(self, mark: int) -> list[tuple[Any, ...]]:
        """Return the records that were appended after the log had `mark` records.

        Each is its kind, its member or expression, and its fields; None for a tombstone.
        """
        return [shown(record, self.kind) for record in self.log[mark:]]

    def delete(self, group_id: str = "g") -> ErrorCode:
        """Delete an empty group; return the error."""
        token = self.token()
        self.carry_out(delete_groups(self.shard, [group_id], token))
        (result,) = self.answers[token]["results"]
        return self.code(result)

    # -- topics ------------------------------------------------------------------------------

    def change(self, *records: Any, new: bool = False) -> None:
        """Apply metadata; `new` says whether topics are created."""
        before = self.shard.image
        image = image_of(*records, base=before)
        touched = {getattr(record.body, "topic_id", None) for record in records}
        changed = [
            topic.name
            for known in (before, image)
            for topic in known.topics.values()
            if topic.topic_id in touched
        ]
        self.shard.apply_metadata(image, has_new_topics=new, changed=changed)

    def create_topic(self, name: str, number: int, partitions: int = 1) -> None:
        self.change(*topic(name, number, partitions=partitions), new=True)

    def grow_topic(self, name: str, partitions: int) -> None:
        number = self.shard.image.topics[name].topic_id[-1]
        known = len(self.shard.image.topics[name].partitions)
        self.change(*topic(name, number, partitions=partitions)[1 + known :])

    def delete_topic(self, name: str) -> None:
        topic_id = self.shard.image.topics[name].topic_id
        self.change(metadata_record(RecordType.REMOVE_TOPIC, topic_id=topic_id))

    # -- long work ---------------------------------------------------------------------------

    def work(self) -> None:
        """Carry out all effects, and those that follow."""
        while self.effects or self.running:
            self.work_a_step()

    def work_a_step(self, number: int = 0) -> None:
        """Begin the waiting effects, then take one step of a running work."""
        begun = [self.begin(effect) for effect in self.effects]
        self.running += [work for work in begun if work is not None]
        self.effects.clear()
        if self.running:
            work = self.running[number % len(self.running)]
            if next(work, True):
                self.running.remove(work)

    def begin(self, effect: Any) -> Iterator[None] | None:
        """Return the steps of an effect, or do it and return None."""
        raise NotImplementedError

    def assign(self, background: Any, run_job: Any, effect: Any) -> Iterator[None]:
        """Compute a target assignment and write it in portions, as GroupEffects does.

        Args:
            background: The module of the kind of group.
            run_job: Its computation.
            effect: The effect.
        """
        job = background.begin(self.shard, effect)
        if job is None:
            return
        assignment = in_one_go(run_job(job))
        for records in in_one_go(background.changes(job, assignment)):
            yield
            self.run(background.install, job=job, records=records)
        yield
        self.run(background.finish, job=job)
        background.abandon(self.shard, job)

    def run(self, operation: Any, *arguments: Any, **fields: Any) -> None:
        """Run an operation without a client."""
        self.carry_out(operation(self.shard, *arguments, self.token(), self.moment, **fields))


def shown(record: CoordinatorRecord, kind: str) -> tuple[Any, ...]:
    key = decode_record_key(record.key)
    if not isinstance(key, WholeGroupKey | GroupMemberKey | RegularExpressionKey):
        return (type(key).__name__, None if record.value is None else {})
    value = None if record.value is None else _plain(decode_record_value(key.kind, record.value))
    name = key.kind.name.removeprefix(kind)
    if isinstance(key, GroupMemberKey):
        return name, key.member_id, value
    if isinstance(key, RegularExpressionKey):
        return name, key.regular_expression, value
    return name, value


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(element) for element in value]
    fields = getattr(value, "__dict__", None) or {
        name: getattr(value, name) for name in getattr(value, "__slots__", ())
    }
    return {name: _plain(field) for name, field in fields.items()} if fields else value
