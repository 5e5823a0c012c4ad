"""Steps about groups of every kind at once: classic, consumer, share and streams.

Each group has members of its kind. Requests of all kinds go to all of them, so that a broker has to
refuse those of another kind; one member id joins several groups. Regular expressions of consumer
groups are expensive or invalid. Empty groups are deleted, and become groups of another kind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from compat_tests.lockstep.group_kinds.consumer_members import ASSIGNOR
from compat_tests.lockstep.group_kinds.group_configs import GroupConfigs
from compat_tests.lockstep.group_kinds.streams_members import TASK_KINDS
from compat_tests.lockstep.steps import call, command
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import Callable

    from compat_tests.lockstep.kind import Moves

_TIMEOUT_MS: Final = 3_000_000
_LEAVE: Final = -1
# The range assignor sorts members by id: these come before all that brokers generate.
_IDS: Final = ("!1", "!2")
_STREAMS_TASKS: Final[dict[str, list[Any]]] = {kind: [] for kind in TASK_KINDS}
_DESCRIBING: Final = (
    ApiKey.CONSUMER_GROUP_DESCRIBE,
    ApiKey.SHARE_GROUP_DESCRIBE,
    ApiKey.STREAMS_GROUP_DESCRIBE,
)
_HEARTBEATS: Final = {
    "consumer": ApiKey.CONSUMER_GROUP_HEARTBEAT,
    "share": ApiKey.SHARE_GROUP_HEARTBEAT,
    "streams": ApiKey.STREAMS_GROUP_HEARTBEAT,
}
# Valid, invalid, and expensive for engines that backtrack. None matches a topic: the topics of a
# regular expression are searched at most every ten seconds.
_PATTERNS: Final = (
    "(a+)+b",
    "(a|aa)*c",
    "([a-z]+)*x{50}",
    "x*" * 200 + "y",
    "(",
    "[",
    "a**",
    "*",
    "x{2,1}",
    "(?P<n>x",
    "(?=x)y",
    "(x)\\1y",
    "\\",
    "\\pZ",
    "[[:nothing:]]",
    "é+z",
)


class AllGroups(GroupConfigs):
    name = "all-groups"
    keys = frozenset(
        {
            ApiKey.CONSUMER_GROUP_HEARTBEAT,
            ApiKey.SHARE_GROUP_HEARTBEAT,
            ApiKey.STREAMS_GROUP_HEARTBEAT,
            *_DESCRIBING,
            ApiKey.DESCRIBE_GROUPS,
            ApiKey.LIST_GROUPS,
            ApiKey.DELETE_GROUPS,
            ApiKey.OFFSET_COMMIT,
            ApiKey.OFFSET_FETCH,
            ApiKey.OFFSET_DELETE,
            ApiKey.TXN_OFFSET_COMMIT,
            ApiKey.INCREMENTAL_ALTER_CONFIGS,
            ApiKey.DESCRIBE_CONFIGS,
            ApiKey.LIST_CONFIG_RESOURCES,
        }
    )

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.kinds = ("classic", "consumer", "share", "streams")
        # Members' epochs by group and member id.
        self.members: dict[tuple[str, str], int] = {}
        self._made = 0

    def beginning(self) -> Moves:
        yield from self.create(1)
        yield command(["coordinator"])
        yield command(["share-coordinator", self.topics[0].name])
        yield command(["transactions"])
        yield from self._join_classic(self._id_of("classic"))
        for kind in _HEARTBEATS:
            yield from self._join(kind, self._id_of(kind), _IDS[0])

    def moves(self) -> list[tuple[int, Callable[[], Moves]]]:
        return [
            (12, self.join),
            (10, self.beat),
            (8, self.leave),
            (4, self.join_classic),
            (6, self.migrate),
            (6, self.join_by_pattern),
            (8, self.commit),
            (6, self.fetch),
            (5, self.delete_offsets),
            (4, self.commit_in_transaction),
            (10, self.describe),
            (6, self.list_groups),
            (6, self.delete_groups),
            (5, self.classic_requests),
            (4, self.alter_group_configs),
            (2, self.replace_group_configs),
            (4, self.describe_group_configs),
            (3, self.list_resources),
            (1, self.unserved_version),
        ]

    def ending(self) -> Moves:
        ids = [self._id_of(kind) for kind in self.kinds]
        for key in _DESCRIBING:
            yield from self.ask(key, {"group_ids": ids})
        yield from self.ask(ApiKey.DESCRIBE_GROUPS, {"groups": ids}, version=6)
        for group_id in ids:
            yield command(["group-records", group_id])

    # -- members -----------------------------------------------------------------------------

    def join(self) -> Moves:
        """Join a group of the same kind or another with an id that other groups may know."""
        kind = self.random.choice([*_HEARTBEATS])
        group_id = self._id_of(kind if self.maybe(0.6) else self.random.choice(self.kinds))
        yield from self._join(kind, group_id, self.random.choice(_IDS))

    def beat(self) -> Moves:
        """Send a member's heartbeat, perhaps to another group or by another kind's request."""
        if not self.members:
            return
        group_id, member_id = self.random.choice([*self.members])
        epoch = self.members[group_id, member_id]
        kind = self._kind_of(group_id)
        if self.maybe(0.3):
            kind = self.random.choice([*_HEARTBEATS])
        if self.maybe(0.2):
            group_id = self._id_of(self.random.choice(self.kinds))
        yield from self._beat(kind, group_id, member_id, epoch)

    def leave(self) -> Moves:
        if not self.members:
            return
        group_id, member_id = self.random.choice([*self.members])
        kind = self._kind_of(group_id)
        if self.maybe(0.2):
            kind = self.random.choice([*_HEARTBEATS])
        yield from self._beat(kind, group_id, member_id, _LEAVE)

    def join_classic(self) -> Moves:
        yield from self._join_classic(self._id_of(self.random.choice(self.kinds)))

    def migrate(self) -> Moves:
        """Let a classic consumer join a consumer group or a classic one, and consumers after it.

        It is the last of the members, and the only one with an id that the broker made up.
        """
        group_id = self._id_of(self.random.choice(("consumer", "consumer", "classic", "share")))
        topic = self.topics[0].name
        fields: dict[str, Any] = {
            "group_id": group_id,
            "session_timeout_ms": 300_000,
            "rebalance_timeout_ms": 300_000,
            "member_id": "",
            "protocol_type": "consumer",
            "protocols": [{"name": "range", "metadata": call("subscription", topic)}],
        }
        answer = yield from self.ask(ApiKey.JOIN_GROUP, fields, version=3)
        member_id = answer.name("member_id", "M")
        if not answer.is_good or member_id is None:
            return
        identity = {
            "group_id": group_id,
            "member_id": member_id,
            "generation_id": answer.number("generation_id"),
        }
        assigned = {"member_id": member_id, "assignment": b"any"}
        yield from self.ask(ApiKey.SYNC_GROUP, {**identity, "assignments": [assigned]}, version=3)
        for _ in range(self.random.randrange(3)):
            yield from self._among(group_id, identity)
        left = {"group_id": group_id, "member_id": member_id}
        yield from self.ask(ApiKey.LEAVE_GROUP, left, version=2)

    def _among(self, group_id: str, identity: dict[str, Any]) -> Moves:
        """Send a request of the classic member, or of a consumer that joins or leaves its group."""
        match self.random.randrange(4):
            case 0:
                yield from self.ask(ApiKey.HEARTBEAT, identity, version=3)
            case 1:
                yield from self._join("consumer", group_id, self.random.choice(_IDS))
                yield from self.ask(ApiKey.HEARTBEAT, identity, version=3)
            case 2:
                yield from self.beat()
            case _:
                yield from self.describe()

    def join_by_pattern(self) -> Moves:
        """Join a new consumer group with an expensive or invalid regular expression."""
        self._made += 1
        group_id = f"{self.prefix}pattern{self._made}"
        fields = {
            **self._joining("consumer", group_id, "m"),
            "subscribed_topic_names": self.random.choice((None, [])),
            "subscribed_topic_regex": f"{self.prefix}no{self.random.choice(_PATTERNS)}",
        }
        answer = yield from self.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, fields, version=1)
        if answer.is_good:
            yield from self._beat("consumer", group_id, "m", _LEAVE)
        yield from self.ask(ApiKey.DELETE_GROUPS, {"groups_names": [group_id]})

    # -- offsets -----------------------------------------------------------------------------

    def commit(self) -> Moves:
        group_id, member_id, epoch = self._somebody()
        partition = {"partition_index": 0, "committed_offset": self.random.choice((0, 5))}
        request = {
            "group_id": group_id,
            "generation_id_or_member_epoch": epoch,
            "member_id": member_id,
            "topics": [{**self.any_topic().both, "partitions": [partition]}],
        }
        version = self.version(ApiKey.OFFSET_COMMIT, 7)
        yield from self.ask(ApiKey.OFFSET_COMMIT, request, version=version)

    def commit_in_transaction(self) -> Moves:
        """Commit for a member within a transaction that does not exist, or never will."""
        group_id, member_id, epoch = self._somebody()
        partition = {"partition_index": 0, "committed_offset": 5, "committed_metadata": ""}
        request = {
            "transactional_id": f"{self.prefix}none",
            "group_id": group_id,
            "producer_id": 999_999,
            "producer_epoch": 0,
            "generation_id_or_member_epoch": epoch,
            "member_id": member_id,
            "topics": [{**self.any_topic().both, "partitions": [partition]}],
        }
        version = self.version(ApiKey.TXN_OFFSET_COMMIT, 5)
        yield from self.ask(ApiKey.TXN_OFFSET_COMMIT, request, version=version)

    def fetch(self) -> Moves:
        group_id, member_id, epoch = self._somebody()
        requested: dict[str, Any] = {"group_id": group_id, "topics": None}
        # Apache Kafka fails for an epoch without a member id (docs/compatibility.md).
        if member_id and self.maybe(0.5):
            requested |= {"member_id": member_id, "member_epoch": epoch}
        version = self.version(ApiKey.OFFSET_FETCH, 9)
        yield from self.ask(ApiKey.OFFSET_FETCH, {"groups": [requested]}, version=version)

    def delete_offsets(self) -> Moves:
        topic = {"name": self.any_topic().name, "partitions": [{"partition_index": 0}]}
        group_id = self._id_of(self.random.choice(self.kinds))
        yield from self.ask(ApiKey.OFFSET_DELETE, {"group_id": group_id, "topics": [topic]})

    # -- administration ----------------------------------------------------------------------

    def describe(self) -> Moves:
        ids = self.some([self._id_of(kind) for kind in self.kinds], 1, 4)
        if self.maybe(0.2):
            ids.append(f"{self.prefix}unknown")
        if self.maybe(0.3):
            request = {"groups": ids, "include_authorized_operations": self.maybe(0.3)}
            yield from self.ask(ApiKey.DESCRIBE_GROUPS, request)
            return
        request = {"group_ids": ids, "include_authorized_operations": self.maybe(0.3)}
        yield from self.ask(self.random.choice(_DESCRIBING), request)

    def list_groups(self) -> Moves:
        states = ["Stable", "Empty", "NotReady", "reconciling", "Assigning", "Dead", "Nonsense"]
        types = ["classic", "Consumer", "share", "STREAMS", "unknown", "nonsense"]
        request = {
            "states_filter": self.some(states, 0, 3),
            "types_filter": self.some(types, 0, 3),
        }
        yield from self.ask(ApiKey.LIST_GROUPS, request)

    def delete_groups(self) -> Moves:
        ids = self.some([self._id_of(kind) for kind in self.kinds], 1, 2)
        if self.maybe(0.2):
            ids.append(self.random.choice((f"{self.prefix}unknown", "")))
        yield from self.ask(ApiKey.DELETE_GROUPS, {"groups_names": ids})

    def classic_requests(self) -> Moves:
        """Send requests of classic members to groups of all kinds."""
        group_id, member_id, epoch = self._somebody()
        identity = {"group_id": group_id, "member_id": member_id, "generation_id": epoch}
        match self.random.randrange(3):
            case 0:
                yield from self.ask(ApiKey.HEARTBEAT, identity)
            case 1:
                version = self.version(ApiKey.SYNC_GROUP, 5)
                yield from self.ask(
                    ApiKey.SYNC_GROUP, {**identity, "assignments": []}, version=version
                )
            case _:
                left = {"member_id": "nobody", "group_instance_id": None}
                request = {"group_id": group_id, "member_id": "nobody", "members": [left]}
                yield from self.ask(ApiKey.LEAVE_GROUP, request)

    def list_resources(self) -> Moves:
        types = self.random.choice(([], [32], [16, 32], [2], [4], [8], [99, 32]))
        yield from self.ask(ApiKey.LIST_CONFIG_RESOURCES, {"resource_types": types})

    # -- parts -------------------------------------------------------------------------------

    def _join(self, kind: str, group_id: str, member_id: str) -> Moves:
        fields = self._joining(kind, group_id, member_id)
        answer = yield from self.ask(_HEARTBEATS[kind], fields)
        if answer.is_good:
            self.members[group_id, member_id] = answer.number("member_epoch")
            if kind == "share":
                yield command(["wait-share-state", group_id, "1"])

    def _joining(self, kind: str, group_id: str, member_id: str) -> dict[str, Any]:
        topic = self.topics[0].name
        fields: dict[str, Any] = {
            "group_id": group_id,
            "member_id": member_id,
            "member_epoch": 0,
        }
        if kind == "consumer":
            fields |= {
                "rebalance_timeout_ms": _TIMEOUT_MS,
                "subscribed_topic_names": [topic],
                "server_assignor": ASSIGNOR,
                "topic_partitions": [],
            }
        elif kind == "share":
            fields["subscribed_topic_names"] = [topic]
        else:
            fields |= {
                "rebalance_timeout_ms": _TIMEOUT_MS,
                "topology": call("topology", call("subtopology", "0", topic)),
                "process_id": "p",
                "client_tags": [],
                "endpoint_information_epoch": -1,
                **_STREAMS_TASKS,
            }
        return fields

    def _beat(self, kind: str, group_id: str, member_id: str, epoch: int) -> Moves:
        fields: dict[str, Any] = {
            "group_id": group_id,
            "member_id": member_id,
            "member_epoch": epoch,
        }
        if kind == "streams":
            fields["endpoint_information_epoch"] = -1
        answer = yield from self.ask(_HEARTBEATS[kind], fields)
        if not answer.is_good:
            return
        if epoch == _LEAVE:
            self.members.pop((group_id, member_id), None)
        else:
            self.members[group_id, member_id] = answer.number("member_epoch")

    def _join_classic(self, group_id: str) -> Moves:
        """Join and leave as the only classic member, with its own simple protocol."""
        self._made += 1
        fields = {
            "group_id": group_id,
            "session_timeout_ms": 300_000,
            "rebalance_timeout_ms": 300_000,
            "member_id": "",
            "protocol_type": "connect",
            "protocols": [{"name": "simple", "metadata": b""}],
        }
        answer = yield from self.ask(ApiKey.JOIN_GROUP, fields, version=3)
        member_id = answer.name("member_id", "M")
        if not answer.is_good or member_id is None:
            return
        if self.maybe(0.3):
            yield from self.describe()
        left: dict[str, Any] = {"group_id": group_id, "member_id": member_id}
        yield from self.ask(ApiKey.LEAVE_GROUP, left, version=2)

    # -- choices -----------------------------------------------------------------------------

    def _id_of(self, kind: str) -> str:
        return f"{self.prefix}{kind}"

    def _kind_of(self, group_id: str) -> str:
        kind = group_id.removeprefix(self.prefix)
        return kind if kind in _HEARTBEATS else self.random.choice([*_HEARTBEATS])

    def _somebody(self) -> tuple[str, str, int]:
        """Return a member with its epoch, one with a wrong epoch, or a client without a group."""
        group_id = self._id_of(self.random.choice(self.kinds))
        ids = [member_id for of, member_id in self.members if of == group_id]
        if not ids or self.maybe(0.2):
            return group_id, self.random.choice(("", "nobody")), self.random.choice((-1, 0, 3))
        member_id = self.random.choice(ids)
        wrong = self.random.choice((0, 0, 0, -1, 1))
        return group_id, member_id, self.members[group_id, member_id] + wrong
