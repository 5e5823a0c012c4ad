"""Steps about share sessions (KIP-932): ShareFetch and ShareAcknowledge, used and misused.

The members of two groups acquire records, acknowledge all or some of them, and acknowledge others'.
The groups have share state and configs, but no members: a broker does not ask for them in these
requests. In the end the share state is compared.

Locks do not expire during a run. Share partitions are loaded one at a time, because a response
contains those that are loaded. One member of each group keeps its session: wirebroker unloads the
share partitions of a group without sessions, Apache Kafka also waits for a connection to end
(docs/compatibility.md). Topics are not deleted: a session that outlives its topic is documented,
too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from compat_tests.lockstep.group_kinds.share_sessions import (
    ACCEPT,
    FINAL_EPOCH,
    GAP,
    LOADING_MS,
    REJECT,
    RELEASE,
    RENEW,
    Batch,
    Place,
    ShareGroup,
    ShareRequests,
    ShareSession,
    acknowledged,
)
from compat_tests.lockstep.record_sets import sound
from compat_tests.lockstep.steps import command
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import Callable

    from compat_tests.lockstep.kind import Moves
    from compat_tests.lockstep.steps import Answer

_GROUP = 32
_FIRST_RENEWING = 2
_UNKNOWN_SERVER_ERROR = -1
_CONFIGS: dict[str, tuple[str, ...]] = {
    "share.isolation.level": ("read_committed", "read_uncommitted"),
    "share.delivery.count.limit": ("2", "3", "5"),
    "share.partition.max.record.locks": ("100", "200", "2000"),
}


class ShareFetches(ShareRequests):
    name = "share-fetches"
    keys = frozenset(
        {
            ApiKey.SHARE_FETCH,
            ApiKey.SHARE_ACKNOWLEDGE,
            ApiKey.INITIALIZE_SHARE_GROUP_STATE,
            ApiKey.READ_SHARE_GROUP_STATE,
            ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
        }
    )

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.groups = [
            ShareGroup(
                f"{self.prefix}{name}",
                [ShareSession(f"m{number}", f"{name}{number}") for number in range(3)],
                ShareSession("keeper", f"{name}-keeper"),
            )
            for name in ("early", "late")
        ]
        # The state that a ShareFetch stores with its acknowledgements has wirebroker's start offset
        # after the fetch, Apache Kafka's before it. They differ if records were deleted.
        self.deletes_records = self.maybe(0.3)

    def beginning(self) -> Moves:
        for partitions in (2, 1):
            yield from self.create(partitions)
            yield from self.produce()
        yield command(["coordinator"])
        yield command(["share-coordinator", self.topics[0].name])
        for group, start in zip(self.groups, (0, -1), strict=True):
            topics = [
                {
                    "topic_id": topic.topic_id,
                    "partitions": [
                        {"partition": index, "state_epoch": 1, "start_offset": start}
                        for index in topic.partitions
                    ],
                }
                for topic in self.topics
            ]
            request = {"group_id": group.group_id, "topics": topics}
            yield from self.ask(ApiKey.INITIALIZE_SHARE_GROUP_STATE, request)
            yield from self._load(group)

    def moves(self) -> list[tuple[int, Callable[[], Moves]]]:
        return [
            (18, self.produce),
            (30, self.fetch),
            (20, self.acknowledge),
            (8, self.wrong_acknowledgement),
            (8, self.misuse),
            (3, self.wrong_fields),
            (4, self.close),
            (3 if self.deletes_records else 0, self.delete_records),
            (3, self.describe_offsets),
            (2, self.change_config),
            (1, self.read_states),
            (1, self.unserved_version),
        ]

    def ending(self) -> Moves:
        yield from self.read_states()
        for group in self.groups:
            yield from self._describe_offsets(group, version=1)
        yield from self.survey()

    def _load(self, group: ShareGroup) -> Moves:
        keeper = group.keeper
        for place in self._all_places():
            forgotten = [*keeper.held]
            fields = self._fetch_fields(group, keeper, [place], {}, forgotten)
            fields |= {"max_wait_ms": LOADING_MS, "min_bytes": 1}
            yield from self._send_fetch(keeper, fields, forgotten, {})
            for held, ranges in keeper.acquired.items():
                batches = [acknowledged(first, last, RELEASE) for first, last in ranges]
                fields = self._acknowledge_fields(group, keeper, {held: batches})
                answer = yield from self._send(ApiKey.SHARE_ACKNOWLEDGE, keeper, fields)
                self._learn(keeper, answer)
            keeper.acquired.clear()

    # -- records -----------------------------------------------------------------------------

    def produce(self) -> Moves:
        topic = self.any_topic()
        index = self.random.choice(topic.partitions)
        request = {
            "acks": -1,
            "timeout_ms": 30_000,
            "topic_data": [
                {
                    **topic.both,
                    "partition_data": [{"index": index, "records": sound(self.random).records}],
                }
            ],
        }
        answer = yield from self.ask(
            ApiKey.PRODUCE, request, version=self.version(ApiKey.PRODUCE, 3)
        )
        self.learn_ends(answer, [topic])

    def delete_records(self) -> Moves:
        topic = self.any_topic()
        index = self.random.choice(topic.partitions)
        offset = self.random.choice((-1, topic.ends[index] // 2, topic.ends[index] - 1))
        partition = {"partition_index": index, "offset": offset}
        request = {
            "topics": [{"name": topic.name, "partitions": [partition]}],
            "timeout_ms": 30_000,
        }
        yield from self.ask(ApiKey.DELETE_RECORDS, request)

    # -- sessions ----------------------------------------------------------------------------

    def fetch(self) -> Moves:
        """Open a session or use it, perhaps with acknowledgements and other partitions."""
        group, session = self._any_session()
        is_used = session.epoch and not self.deletes_records and self.maybe(0.4)
        # Whether the same request gets released records again is a race in Apache Kafka.
        batches = self._batches(session, releases=False) if is_used else {}
        added = self._places(2) if not session.epoch or self.maybe(0.3) else []
        forgotten = self.some(sorted(session.held), 0, 1) if self.maybe(0.15) else []
        fields = self._fetch_fields(group, session, added, batches, forgotten)
        if self._renews(batches) and self.maybe(0.8):
            fields["is_renew_ack"] = True
            if self.maybe(0.8):
                zeros = ("max_wait_ms", "min_bytes", "max_bytes", "max_records")
                fields.update(dict.fromkeys(zeros, 0))
        yield from self._send_fetch(session, fields, forgotten, batches)

    def acknowledge(self) -> Moves:
        group, session = self._any_session()
        batches = self._batches(session)
        fields = self._acknowledge_fields(group, session, batches)
        fields["is_renew_ack"] = self._renews(batches)
        answer = yield from self._send(ApiKey.SHARE_ACKNOWLEDGE, session, fields)
        self._learn(session, answer)
        self._learn_acknowledged(session, batches, answer)

    def close(self) -> Moves:
        """End a session with its last acknowledgements, by either request.

        They are of all its records: Apache Kafka releases the rest after the response.
        """
        group, session = self._any_session()
        session.epoch = FINAL_EPOCH
        batches = {
            place: [self._batch(*acquired, [ACCEPT, RELEASE, GAP]) for acquired in sorted(ranges)]
            for place, ranges in session.acquired.items()
            if ranges
        }
        if self.maybe(0.5):
            fields = self._acknowledge_fields(group, session, batches)
            yield from self._send(ApiKey.SHARE_ACKNOWLEDGE, session, fields)
        else:
            fields = self._fetch_fields(group, session, [], batches)
            if self.maybe(0.1):
                named: dict[Place, list[Batch]] = {place: [] for place in self._places(1)}
                fields["topics"] = self._by_topic({**named, **batches})
            yield from self._send(ApiKey.SHARE_FETCH, session, fields)
        session.end()

    # -- misuse ------------------------------------------------------------------------------

    def wrong_acknowledgement(self) -> Moves:
        """Acknowledge records of another member, records never acquired, or invalid ranges."""
        group, session = self._any_session()
        name, index = place = self.random.choice(self._all_places())
        topic = next(topic for topic in self.topics if topic.name == name)
        end = topic.ends[index]
        wrong: list[Batch] = self.random.choice(
            (
                [acknowledged(end + 5, end + 6, ACCEPT)],
                [acknowledged(0, end + 3, RELEASE)],
                [acknowledged(3, 1, ACCEPT)],
                [acknowledged(-1, 0, ACCEPT)],
                [acknowledged(0, 1, ACCEPT, REJECT, RELEASE)],
                [acknowledged(0, 0)],
                [acknowledged(0, 0, self.random.choice((-1, 5, 127)))],
                [acknowledged(0, 2, ACCEPT), acknowledged(1, 3, RELEASE)],
                [acknowledged(4, 5, ACCEPT), acknowledged(0, 1, ACCEPT)],
                [acknowledged(0, 2**62, ACCEPT)],
                [acknowledged(2**63 - 1, 2**63 - 1, ACCEPT)],
            )
        )
        others = [other for other in group.sessions if other is not session]
        foreign = self.random.choice(others).acquired.get(place)
        if foreign and self.maybe(0.6):
            first, last = self.random.choice(foreign)
            wrong = [acknowledged(first, last, ACCEPT)]
        if self.maybe(0.1):
            place = self.random.choice(((name, 99), (f"{self.prefix}nowhere", 0)))
        fields = self._acknowledge_fields(group, session, {place: wrong})
        key = ApiKey.SHARE_ACKNOWLEDGE
        # Such a range may make Apache Kafka's code fail (agreed.py), and then it fetches nothing.
        may_fail = wrong[0]["first_offset"] < wrong[0]["last_offset"]
        if self.maybe(0.3) and not may_fail:
            key = ApiKey.SHARE_FETCH
            fields = self._fetch_fields(group, session, [], {place: wrong})
        answer = yield from self._send(key, session, fields)
        self._learn(session, answer)
        self._learn_fetched(session, answer)
        self._learn_acknowledged(session, {place: wrong}, answer)

    def misuse(self) -> Moves:
        """Send a wrong epoch, an unknown member, or another group's member."""
        group, session = self._any_session()
        other = self.random.choice([listed for listed in self.groups if listed is not group])
        batches = self._batches(session)
        fields = self._acknowledge_fields(group, session, batches)
        key = ApiKey.SHARE_ACKNOWLEDGE
        if self.maybe(0.5):
            key = ApiKey.SHARE_FETCH
            batches = {} if self.deletes_records else self._batches(session, releases=False)
            fields = self._fetch_fields(group, session, self._places(1), batches)
        match self.random.randrange(4):
            case 0:
                steps = self.random.choice((-1, 1, 5))
                fields["share_session_epoch"] = max(1, session.epoch + steps)
                if fields["share_session_epoch"] == session.epoch:
                    return
            case 1:
                fields["member_id"] = "nobody"
                fields["share_session_epoch"] = self.random.choice((1, 7, FINAL_EPOCH))
            case 2:
                if any(listed.member_id == "stranger" for listed in other.sessions):
                    return
                fields["group_id"] = f"{self.prefix}unknown"
                fields["share_session_epoch"] = self.random.choice((1, FINAL_EPOCH))
            case _:
                fields["share_session_epoch"] = self.random.choice((-2, -(2**31), 2**31 - 1))
        answer = yield from self._send(key, session, fields)
        self._learn_acknowledged(session, batches, answer)

    def wrong_fields(self) -> Moves:
        group, session = self._any_session()
        fields = self._fetch_fields(group, session, self._places(1), {})
        wrong: dict[str, Any] = self.random.choice(
            (
                {"group_id": None},
                {"member_id": ""},
                {"member_id": None},
                {"max_records": 0},
                {"max_records": -1},
                {"share_acquire_mode": 7},
                {"is_renew_ack": True},
            )
        )
        answer = yield from self._send(ApiKey.SHARE_FETCH, session, {**fields, **wrong})
        if fields["group_id"] == {**fields, **wrong}["group_id"]:
            self._learn(session, answer)
            self._learn_fetched(session, answer)

    # -- administration ----------------------------------------------------------------------

    def describe_offsets(self) -> Moves:
        yield from self._describe_offsets(self.random.choice(self.groups))

    def change_config(self) -> Moves:
        group = self.random.choice(self.groups)
        name = self.random.choice([*_CONFIGS])
        value = self.random.choice(_CONFIGS[name])
        change = {"name": name, "config_operation": 0, "value": value}
        resource = {
            "resource_type": _GROUP,
            "resource_name": group.group_id,
            "configs": [change],
        }
        request = {"resources": [resource], "validate_only": False}
        answer = yield from self.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, request)
        if answer.is_good:
            yield command(["wait-group-config", group.group_id, name, value])
            yield from self.until_applied(self.any_topic())

    def read_states(self) -> Moves:
        """Read the stored states; an old leader epoch would be fenced."""
        for group in self.groups:
            topics = [
                {
                    "topic_id": topic.topic_id,
                    "partitions": [
                        {"partition": index, "leader_epoch": 0} for index in topic.partitions
                    ],
                }
                for topic in self.topics
            ]
            request = {"group_id": group.group_id, "topics": topics}
            yield from self.ask(ApiKey.READ_SHARE_GROUP_STATE, request)

    # -- parts -------------------------------------------------------------------------------

    def _send(self, key: ApiKey, session: ShareSession, fields: dict[str, Any]) -> Any:
        lowest = _FIRST_RENEWING if fields["is_renew_ack"] else 0
        version = self.version(key, lowest)
        answer = yield from self.ask(key, fields, version=version, to=session.connection)
        return answer

    def _send_fetch(
        self,
        session: ShareSession,
        fields: dict[str, Any],
        forgotten: list[Place],
        batches: dict[Place, list[Batch]],
    ) -> Moves:
        answer = yield from self._send(ApiKey.SHARE_FETCH, session, fields)
        if answer.number("error_code") == 0:
            session.held.difference_update({*forgotten} - batches.keys())
        self._learn(session, answer)
        self._learn_acknowledged(session, batches, answer)
        self._learn_fetched(session, answer)

    def _learn(self, session: ShareSession, answer: Answer) -> None:
        if answer.is_closed:
            session.end()
        elif answer.number("error_code") in (0, _UNKNOWN_SERVER_ERROR):
            session.epoch += 1

    def _batches(self, session: ShareSession, *, releases: bool = True) -> dict[Place, list[Batch]]:
        """Acknowledge some of the acquired records, in parts."""
        kinds = [ACCEPT, ACCEPT, REJECT, GAP, RENEW, *([RELEASE] * 3 if releases else [])]
        batches: dict[Place, list[Batch]] = {}
        for place in self.some([*session.acquired], 0, 2):
            for acquired in sorted(session.acquired[place])[:3]:
                first, last = acquired
                split = self.random.randint(first, last)
                batches.setdefault(place, []).append(self._batch(first, split, kinds))
                if split < last and self.maybe(0.5):
                    batches[place].append(self._batch(split + 1, last, kinds))
        return batches

    def _batch(self, first: int, last: int, kinds: list[int]) -> Batch:
        if self.maybe(0.3):
            without_renewal = [kind for kind in kinds if kind != RENEW]
            types = [self.random.choice(without_renewal) for _ in range(first, last + 1)]
            return acknowledged(first, last, *types)
        return acknowledged(first, last, self.random.choice(kinds))

    def _renews(self, batches: dict[Place, list[Batch]]) -> bool:
        return any(
            RENEW in batch["acknowledge_types"] for listed in batches.values() for batch in listed
        )

    def _any_session(self) -> tuple[ShareGroup, ShareSession]:
        group = self.random.choice(self.groups)
        return group, self.random.choice(group.sessions)

    def _all_places(self) -> list[Place]:
        return [(topic.name, index) for topic in self.topics for index in topic.partitions]

    def _places(self, maximum: int) -> list[Place]:
        places = self.some(self._all_places(), maximum=maximum)
        if self.maybe(0.04):
            places.append(self.random.choice(((self.any_topic().name, 50), ("nowhere", 0))))
        return places
