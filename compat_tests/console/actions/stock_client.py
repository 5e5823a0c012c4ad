"""Stock clients, which prepare the resources of an action and check its effect.

kafka-python administers; confluent-kafka produces, reads and takes part in groups and transactions.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, Producer, TopicPartition
from kafka import KafkaAdminClient
from kafka import TopicPartition as AdminPartition
from kafka.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ConfigResource,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from kafka.errors import KafkaConnectionError
from kafka.protocol.admin.client_quotas import (
    AlterClientQuotasRequest,
    DescribeClientQuotasRequest,
)

from tests.support.tools.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

WAIT_S = 60
# Topics of actions have two partitions on broker 1, with these records in each.
PARTITIONS = 2
RECORDS = 5
_TIMEOUT_MS = 60_000
# DescribeClientQuotas: the name of the entity is exactly this one.
_EXACT = 0


class StockClient:
    """Clients of one cluster; close them at the end."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.admin = KafkaAdminClient(
            bootstrap_servers=bootstrap.split(","), request_timeout_ms=_TIMEOUT_MS
        )
        quiet = {"bootstrap.servers": bootstrap, "log_level": 0}
        self._producer = Producer(quiet)
        self._reader = Consumer(quiet | {"group.id": "none"})

    def close(self) -> None:
        self._reader.close()
        self.admin.close()

    # -- topics and records --------------------------------------------------------------------

    def create_topic(
        self,
        name: str,
        replicas: Mapping[int, Sequence[int]] | None = None,
        configs: Mapping[str, str] | None = None,
    ) -> None:
        """Create a topic with the replicas of each partition, by default two on broker 1."""
        assignments = replicas or {number: [1] for number in range(PARTITIONS)}
        new = {"assignments": dict(assignments), "configs": dict(configs or {})}
        self.admin.create_topics({name: new})
        eventually(lambda: len(self.partitions(name)) == len(assignments))

    def fill(self, topic: str) -> None:
        """Write records to each partition."""
        rows = [
            (partition, f"k{number}", f'{{"id": {number}}}')
            for partition in range(PARTITIONS)
            for number in range(RECORDS)
        ]
        for partition, key, value in rows:
            self._producer.produce(
                topic, value, key, partition, headers=[("trace", b"4bf92f3577b34da6")]
            )
        assert self._producer.flush(WAIT_S) == 0

    def write(self, topic: str, value: bytes, *, headers: list[tuple[str, bytes]]) -> None:
        headers_of_any: Any = headers
        self._producer.produce(topic, value, "customer-7", headers=headers_of_any)
        assert self._producer.flush(WAIT_S) == 0

    def first_partition(self, topic: str) -> dict[str, Any]:
        """Return partition 0 of a topic, which the broker may not know yet."""
        rows: list[dict[str, Any]] = []

        def is_known() -> bool:
            rows[:] = self.partitions(topic)
            return bool(rows)

        eventually(is_known, timeout_s=WAIT_S)
        return rows[0]

    def partitions(self, topic: str) -> list[dict[str, Any]]:
        """Return the partitions of a topic from its metadata; none if the topic does not exist.

        A broker may have been killed since the last request.
        """
        described: list[Any] = []

        def is_described() -> bool:
            with contextlib.suppress(KafkaConnectionError):
                described[:] = self.admin.describe_topics([topic])
            return bool(described)

        eventually(is_described, timeout_s=WAIT_S)
        (found,) = described
        rows: list[dict[str, Any]] = found["partitions"]
        return sorted(rows, key=lambda row: int(row["partition_index"]))

    def replicas(self, topic: str) -> list[list[int]]:
        return [list(row["replica_nodes"]) for row in self.partitions(topic)]

    def brokers(self) -> set[int]:
        """Return the ids of the brokers that run."""
        return set(self._reader.list_topics(timeout=WAIT_S).brokers)

    def offsets(self, topic: str, partition: int = 0) -> tuple[int, int]:
        """Return the start and the end of a partition."""
        place = TopicPartition(topic, partition)
        start, end = self._reader.get_watermark_offsets(place, timeout=WAIT_S)
        return start, end

    def count(self, topic: str) -> int:
        """Return the number of offsets of a topic."""
        rows = [self.offsets(topic, row["partition_index"]) for row in self.partitions(topic)]
        return sum(end - start for start, end in rows)

    def last_value(self, topic: str, partition: int) -> bytes | None:
        _, end = self.offsets(topic, partition)
        self._reader.assign([TopicPartition(topic, partition, end - 1)])
        message = self._reader.poll(WAIT_S)
        self._reader.unassign()
        assert message is not None
        value = message.value()
        assert not isinstance(value, str)
        return value

    # -- configs -------------------------------------------------------------------------------

    def config(self, kind: str, name: str, config: str) -> str | None:
        """Return the value of a config that is set for a resource, or None."""
        resource = ConfigResource(kind, name)
        found = self.admin.describe_configs([resource], config_filter="all")[kind][name]
        row = found.get(config)
        if row is None or not row["config_source"].startswith(_SET_SOURCES[kind]):
            return None
        value: str | None = row["value"]
        return value

    def reset_config(self, kind: str, name: str, config: str) -> None:
        self.admin.reset_configs([ConfigResource(kind, name, [config])], raise_on_unknown=False)
        eventually(lambda: self.config(kind, name, config) is None)

    # -- groups --------------------------------------------------------------------------------

    def commit(self, group: str, topic: str, offset: int) -> None:
        """Commit this offset of each partition, for a group without members."""
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": group})
        places = [TopicPartition(topic, number, offset) for number in range(PARTITIONS)]
        consumer.assign(places)
        consumer.commit(offsets=places, asynchronous=False)
        consumer.close()

    def committed(self, group: str) -> dict[int, int]:
        """Return the committed offsets of a group by partition."""
        found = self.admin.list_group_offsets(group)[group]
        return {place.partition: row.offset for place, row in found.items() if row.offset >= 0}

    def groups(self) -> set[str]:
        return {row["group_id"] for row in self.admin.list_groups()}

    def members(self, group: str) -> set[str]:
        rows = self.admin.describe_groups([group])[group]["members"]
        return {row["member_id"] for row in rows}

    @contextlib.contextmanager
    def member_of(self, group: str, topic: str) -> Iterator[str]:
        """Be the member of a classic group; yield the member's id."""
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": group})
        consumer.subscribe([topic])
        try:
            eventually(lambda: consumer.poll(0.1) is None and consumer.assignment())
            yield consumer.memberid()
        finally:
            consumer.close()

    # -- access --------------------------------------------------------------------------------

    def acls(self, principal: str) -> set[tuple[str, str, str]]:
        """Return the resource type, the name and the operation of each ACL of a principal."""
        everything = ResourcePatternFilter(ResourceType.ANY, None, ACLResourcePatternType.ANY)
        every = ACLFilter(principal, None, ACLOperation.ANY, ACLPermissionType.ANY, everything)
        found, _ = self.admin.describe_acls(every)
        return {
            (
                acl.resource_pattern.resource_type.name.lower(),
                acl.resource_pattern.resource_name,
                acl.operation.name.lower(),
            )
            for acl in found
        }

    def allow(
        self, principal: str, resource: str, name: str, operation: str, *, is_prefix: bool = False
    ) -> None:
        pattern = ACLResourcePatternType.PREFIXED if is_prefix else ACLResourcePatternType.LITERAL
        place = ResourcePattern(ResourceType[resource.upper()], name, pattern)
        allowed = ACL(
            principal, "*", ACLOperation[operation.upper()], ACLPermissionType.ALLOW, place
        )
        result = self.admin.create_acls([allowed])
        assert not result["failed"], result

    def add_user(
        self, name: str, password: str, mechanism: ScramMechanism = ScramMechanism.SCRAM_SHA_512
    ) -> None:
        new = UserScramCredentialUpsertion(name, mechanism, password, 4096)
        self.admin.alter_user_scram_credentials([new])
        eventually(lambda: self.mechanisms(name) == {mechanism.name})

    def mechanisms(self, name: str) -> set[str]:
        """Return by which SCRAM mechanisms a user can log in."""
        infos = self.admin.describe_user_scram_credentials()
        found = infos.get(name, {"credential_infos": []})
        return {ScramMechanism(row["mechanism"]).name for row in found["credential_infos"]}

    def quotas(self, user: str) -> dict[str, float]:
        """Return the quotas of a user."""
        request = DescribeClientQuotasRequest(components=[("user", _EXACT, user)], strict=True)
        response = self._answer(request)
        assert response.error_code == 0, response
        return {row.key: row.value for entry in response.entries or () for row in entry.values}

    def set_quota(self, user: str, key: str, value: float) -> None:
        change = ([("user", user)], [(key, value, False)])
        response = self._answer(AlterClientQuotasRequest(entries=[change], validate_only=False))
        assert [row.error_code for row in response.entries] == [0], response
        eventually(lambda: self.quotas(user) == {key: value})

    def _answer(self, request: Any) -> Any:
        """Send a request that the admin client has no method for."""
        return self.admin._manager.run(self.admin._manager.send, request)

    # -- transactions and moves ----------------------------------------------------------------

    def transaction(self, name: str) -> Any:
        """Return the state of a transactional id."""
        return self.admin.describe_transactions([name])[name]

    @contextlib.contextmanager
    def transactional_producer(self, name: str) -> Iterator[Producer]:
        producer = Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "transactional.id": name,
                "transaction.timeout.ms": 600_000,
                "log_level": 0,
            }
        )
        producer.init_transactions(WAIT_S)
        yield producer
        producer.purge()

    def open_start(self, topic: str) -> list[int]:
        """Return where open transactions of partition 0 begin."""
        place = AdminPartition(topic, 0)
        rows = self.admin.describe_producers([place])[place].active_producers
        starts = [row.current_transaction_start_offset for row in rows]
        return [start for start in starts if start >= 0]

    def reassign(self, topic: str, goals: Mapping[int, Sequence[int] | None]) -> None:
        """Start moves of partitions, or cancel those whose goal is None."""
        moves = {AdminPartition(topic, number): goal for number, goal in goals.items()}
        result = self.admin.alter_partition_reassignments(moves)
        assert not any(result.values()), result

    def is_moving(self, topic: str) -> bool:
        moving = self.admin.list_partition_reassignments()
        return topic in {place.topic for place in moving}

    def alter_config(self, kind: str, name: str, configs: Mapping[str, str]) -> None:
        resource = ConfigResource(kind, name, dict(configs))
        answer = self.admin.alter_configs([resource], raise_on_unknown=False)
        assert answer[kind][name] == "OK", answer


# Prefixes of the sources of config values that are set for one resource.
_SET_SOURCES = {
    "topic": "DYNAMIC_TOPIC",
    "broker": "DYNAMIC_BROKER",
    "broker_logger": "DYNAMIC_BROKER_LOGGER",
    "group": ("DYNAMIC_GROUP", "GROUP"),
    "client_metrics": ("DYNAMIC_CLIENT_METRICS", "CLIENT_METRICS"),
}
