"""Three to five nodes that serve share groups (KIP-932), under faults.

    weather, deaths    as in replica_world.py; leaders of the data, of the share state, of the
                       groups and of the dead letters move
    members            fetch, acknowledge, renew, are too late, and disappear (share_consumers.py)
    records            plain, idempotent and transactional ones
    laws               of grants and confirmations at any time (share_deliveries.py), of the stored
                       state (share_state_log.py), and of the fate of each record
                       (share_outcomes.py)

Group `s0` reads uncommitted records; `s1` reads committed ones, and has dead letters.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from tests.simulation.cluster.replica_clients import IdempotentWriter
from tests.simulation.cluster.service_world import ServiceWorld
from tests.simulation.cluster.share_consumers import ShareConsumer
from tests.simulation.cluster.share_deliveries import Attempt, Epochs, Owner, ShareDeliveries
from tests.simulation.cluster.share_outcomes import Outcomes
from tests.simulation.cluster.share_writers import TransactionWriter
from tests.simulation.cluster.sharing_member import SharingMember
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.metadata_records import RecordType, metadata_record
from wirebroker.coordinator.controller.image.cluster_image import ResourceType, config_record
from wirebroker.coordinator.groups.partitions import (
    CONSUMER_OFFSETS,
    SHARE_GROUP_STATE,
    partition_for,
)
from wirebroker.coordinator.share_state.state import SharePartitionKey

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping

    from wirebroker.request.session import Session

GROUPS: Final = ("s0", "s1")
READ_COMMITTED: Final = "s1"
DEAD_LETTERS: Final = "dlq.t"
PARTITIONS: Final = 2
LIMIT: Final = 3
_VERSION: Final = 2
_TOPIC_ID: Final = b"t" * 16
_LONGEST_REST_S: Final = 180.0


class ShareRequest(NamedTuple):
    """A ShareFetch or ShareAcknowledge.

    Attributes:
        key: The kind of request.
        body: Its fields.
        acknowledged: Its acknowledgement types by partition and offset.
        sent_s: The time at which it was sent.
    """

    key: ApiKey
    body: Mapping[str, Any]
    acknowledged: Mapping[int, Mapping[int, int]]
    sent_s: float


class ShareWorld(ServiceWorld):
    """One schedule.

    Attributes:
        deliveries: The granted and confirmed records.
        visible: Values of transactions whose commit was requested.
        aborted: Values of the other ones.
        nodes: All runs of nodes.
        reads: The number of checks of grants against the persisted state.
    """

    topic = "t"
    further_topics = (SHARE_GROUP_STATE, CONSUMER_OFFSETS, DEAD_LETTERS)
    member_kind = SharingMember
    storm_s = 12.0
    settings: Mapping[str, str] = {
        "group.share.min.session.timeout.ms": "1000",
        "group.share.session.timeout.ms": "3000",
        "group.share.min.heartbeat.interval.ms": "100",
        "group.share.heartbeat.interval.ms": "500",
        "group.share.assignment.interval.ms": "0",
        "group.share.initialize.retry.interval.ms": "5000",
        "group.share.min.record.lock.duration.ms": "1000",
        "group.share.record.lock.duration.ms": "2000",
        "group.share.delivery.count.limit": str(LIMIT),
        # Clocks of nodes are wrong by a day, and clients must be able to write to all of them.
        "log.message.timestamp.after.max.ms": str(1 << 40),
        "share.coordinator.snapshot.update.records.per.snapshot": "10",
    }

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.deliveries = ShareDeliveries(lock_s=2.0, limit=LIMIT)
        self.visible: set[bytes] = set()
        self.aborted: set[bytes] = set()
        self.reads = 0
        self._fetching: Counter[Owner] = Counter()
        self._number = 0
        self.nodes: list[SharingMember] = []
        self._transactions = [TransactionWriter(self, index) for index in range(PARTITIONS)]
        self.consumers = [
            ShareConsumer(self, group, number)
            for group in GROUPS
            for number in range(self.random.randint(1, 3))
        ]

    def totals(self) -> Counter[str]:
        deliveries = self.deliveries
        own = {
            "granted": deliveries.granted,
            "confirmed": deliveries.confirmed,
            "renewed": deliveries.renewed,
            "refused after the lock": deliveries.refused_late,
            "compared with the persisted state": self.reads,
        }
        return super().totals() + Counter(own)

    def next_number(self) -> int:
        self._number += 1
        return self._number

    # -- the schedule ------------------------------------------------------------------------------

    def _create_topics(self) -> None:
        group = {
            "share.isolation.level": "read_committed",
            "errors.deadletterqueue.topic.name": DEAD_LETTERS,
        }
        earliest = {"share.auto.offset.reset": "earliest"}
        topic = {"errors.deadletterqueue.group.enable": "true"}
        configs = [
            (ResourceType.GROUP, "s0", earliest),
            (ResourceType.GROUP, "s1", {**earliest, **group}),
            (ResourceType.TOPIC, DEAD_LETTERS, topic),
        ]
        self.cluster.write(
            metadata_record(RecordType.FEATURE_LEVEL, name="share.version", feature_level=2),
            *(
                config_record(kind, resource, name, value)
                for kind, resource, values in configs
                for name, value in values.items()
            ),
        )
        for number, name in enumerate(self.further_topics):
            self.cluster.create_topic(
                *self.assignments(), name=name, topic_id=bytes([1 + number]) * 16
            )
        super()._create_topics()

    def _clients(self) -> list[Coroutine[Any, Any, None]]:
        writers = [IdempotentWriter(self, index) for index in range(PARTITIONS)]
        return [
            *(writer.run() for writer in writers),
            *(writer.run() for writer in self._transactions),
            *(consumer.run() for consumer in self.consumers),
        ]

    # -- clients -----------------------------------------------------------------------------------

    def sharing_member(self, node_id: int) -> SharingMember | None:
        """Return a live node, or None."""
        return cast("SharingMember | None", self.cluster.members.get(node_id))

    def failed_dead_letters(self) -> int:
        """Return how many records all nodes reported as archived without a dead letter."""
        return sum(node.metrics.failed_dead_letters for node in self.nodes)

    def transaction_ended(self, values: list[bytes], *, is_commit: bool) -> None:
        (self.visible if is_commit else self.aborted).update(values)

    def check_visible(self, group: str, value: bytes | None) -> None:
        """Check a record that a member gets."""
        if group == READ_COMMITTED and value is not None and b"transaction" in value:
            assert value in self.visible, f"{value!r} is not committed"

    def disconnect(self, node: SharingMember, session: Session, member_id: str) -> None:
        """Close a connection, as its node will notice."""
        process = self.processes.get(node.node_id)
        if process is not None and self.cluster.members.get(node.node_id) is node:
            process.call_later(self.delay_s(), self._end_session, node, session, member_id)

    def _end_session(self, node: SharingMember, session: Session, member_id: str) -> None:
        session.end()
        self.deliveries.session_ended(Owner(node, member_id))

    def new_request(
        self, key: ApiKey, body: Mapping[str, Any], acknowledged: Mapping[int, Mapping[int, int]]
    ) -> ShareRequest:
        """Return a request that is sent now."""
        return ShareRequest(key, body, acknowledged, self.loop.time())

    async def serve(self, node: SharingMember, session: Session, request: ShareRequest) -> Any:
        """Serve a request in a node's process; check the response when it is about to leave."""
        key, body = request.key, request.body
        group, owner = body["group_id"], Owner(node, body["member_id"])
        requested_s = self.loop.time()
        before = {index: node.leader_epoch(index) for index in range(PARTITIONS)}
        attempts: dict[int, Attempt] = {}
        for index, types in request.acknowledged.items():
            share = SharePartitionKey(group, _TOPIC_ID, index)
            start_offset = node.start_offset(share)
            attempts[index] = self.deliveries.attempt(
                share,
                owner,
                types,
                start_offset=start_offset,
                sent_s=request.sent_s,
                now_s=requested_s,
                is_fetching=self._fetching[owner] > 0,
            )
        self._fetching[owner] += key is ApiKey.SHARE_FETCH
        answer = await node.ask(key, _VERSION, body, session)
        self._fetching[owner] -= key is ApiKey.SHARE_FETCH
        is_final = body["share_session_epoch"] < 0
        if is_final and not answer.error_code:
            self.deliveries.session_ended(owner)
        for topic in answer.responses:
            for result in topic.partitions:
                index = result.partition_index
                epochs = Epochs(before[index], node.leader_epoch(index))
                share = SharePartitionKey(group, _TOPIC_ID, index)
                is_fetch = key is ApiKey.SHARE_FETCH
                error = result.acknowledge_error_code if is_fetch else result.error_code
                if index in attempts:
                    self._judge(attempts[index], error, node.start_offset(share), epochs)
                if is_fetch:
                    self._note_grants(
                        None if session.has_ended else owner,
                        share,
                        result,
                        epochs=epochs,
                        requested_s=requested_s,
                    )
        return answer

    def _judge(self, attempt: Attempt, error: int, start_offset: int, epochs: Epochs) -> None:
        self.answers[f"acknowledged {ErrorCode(error).name}"] += 1
        if error:
            self.deliveries.refused(attempt)
        else:
            now_s = self.loop.time()
            self.deliveries.confirm(attempt, epochs=epochs, start_offset=start_offset, now_s=now_s)

    def _note_grants(
        self,
        owner: Owner | None,
        share: SharePartitionKey,
        result: Any,
        *,
        epochs: Epochs,
        requested_s: float,
    ) -> None:
        """Note the acquired records of a response; without an owner, its connection has ended."""
        acquired = [
            (records.first_offset, records.last_offset, records.delivery_count)
            for records in result.acquired_records
        ]
        if owner is None:
            self.deliveries.unsent(share, acquired)
            return
        state, now_s = self.state(share.partition), self.loop.time()
        is_current = epochs.first == epochs.last == state.leader_epoch
        # Later, the locks may have expired before the response leaves.
        is_locked = now_s < requested_s + self.deliveries.lock_s
        if acquired and is_current and is_locked:
            self._check_persisted(share, acquired)
        self.deliveries.grant(
            share, owner, acquired, epochs=epochs, requested_s=requested_s, now_s=now_s
        )

    def _check_persisted(
        self, share: SharePartitionKey, acquired: list[tuple[int, int, int]]
    ) -> None:
        index = partition_for(str(share), PARTITIONS)
        node = self.cluster.members.get(self.state(index, SHARE_GROUP_STATE).leader)
        if isinstance(node, SharingMember):
            state = node.persisted(share)
            if state is not None:
                self.reads += 1
                self.deliveries.check_persisted(share, acquired, state)

    # -- the end -----------------------------------------------------------------------------------

    async def _calm(self) -> None:
        self.end_faults()
        async with asyncio.timeout(_LONGEST_REST_S):
            await asyncio.gather(*(writer.finish() for writer in self._transactions))
        await super()._calm()
        deadline = self.loop.time() + _LONGEST_REST_S
        while not self._is_done():
            assert self.loop.time() < deadline, f"records remain: {self._remaining()}"
            await asyncio.gather(*(consumer.take_turn() for consumer in self.consumers))

    def _remaining(self) -> dict[str, tuple[int, int]]:
        """Return the start offset and the end of the log of each unfinished share partition."""
        remaining: dict[str, tuple[int, int]] = {}
        for group in GROUPS:
            for index in range(PARTITIONS):
                share = SharePartitionKey(group, _TOPIC_ID, index)
                node = self.cluster.members[self.state(index).leader]
                assert isinstance(node, SharingMember)
                start, end = node.start_offset(share), node.partition("t", index).log.high_watermark
                if start < end:
                    remaining[str(share)] = start, end
        return remaining

    def _is_done(self) -> bool:
        return not self._remaining()

    def _check(self) -> None:
        super()._check()
        Outcomes(self).check()

    def _check_records(self, index: int, values: dict[int, bytes | None]) -> None:
        for (partition_index, offset), value in self.acknowledged.items():
            if partition_index == index:
                assert values.get(offset) == value, f"offset {offset} is lost"
