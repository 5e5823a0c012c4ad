"""Steps about administration: valid and invalid changes of topics, partitions and configs.

Other steps describe the cluster. A topic here is a name with settings and has few records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from compat_tests.lockstep.group_kinds.group_configs import GroupConfigs
from compat_tests.lockstep.record_sets import sound
from compat_tests.lockstep.steps import command
from compat_tests.lockstep.topics import NO_ID, UNKNOWN_ID, Topic
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import Callable

    from compat_tests.lockstep.kind import Moves

_MOST_TOPICS = 6
_TOPIC = 2
_SET, _DELETE, _APPEND, _SUBTRACT = range(4)
_VALUES: dict[str, tuple[str | None, ...]] = {
    "retention.ms": ("-1", "1000000000000", "-2", "x", ""),
    "retention.bytes": ("-1", "1073741824", "9223372036854775808"),
    "cleanup.policy": ("compact", "delete", "delete,compact", "", "nonsense"),
    "compression.type": ("gzip", "producer", "lzma"),
    "max.message.bytes": ("1000", "0", "-1", " 2000 "),
    "segment.bytes": ("1048576", "13", "2147483648"),
    "segment.ms": ("1000000000000", "0"),
    "min.insync.replicas": ("1", "0", "2"),
    "message.timestamp.type": ("LogAppendTime", "CreateTime", "logappendtime"),
    "min.cleanable.dirty.ratio": ("0.5", "1.5", "x"),
    "preallocate": ("false", "maybe"),
    "unclean.leader.election.enable": ("true", "TRUE", "no"),
    "no.such.config": ("1",),
}


class Admin(GroupConfigs):
    name = "admin"
    keys = frozenset(
        {
            ApiKey.CREATE_TOPICS,
            ApiKey.DELETE_TOPICS,
            ApiKey.CREATE_PARTITIONS,
            ApiKey.INCREMENTAL_ALTER_CONFIGS,
            ApiKey.ALTER_CONFIGS,
            ApiKey.DESCRIBE_CONFIGS,
            ApiKey.METADATA,
            ApiKey.DESCRIBE_TOPIC_PARTITIONS,
            ApiKey.DESCRIBE_CLUSTER,
            ApiKey.DESCRIBE_LOG_DIRS,
            ApiKey.ALTER_REPLICA_LOG_DIRS,
            ApiKey.ELECT_LEADERS,
            ApiKey.ALTER_PARTITION_REASSIGNMENTS,
            ApiKey.LIST_PARTITION_REASSIGNMENTS,
            ApiKey.LIST_CONFIG_RESOURCES,
            ApiKey.API_VERSIONS,
            ApiKey.DESCRIBE_QUORUM,
            ApiKey.UPDATE_FEATURES,
            ApiKey.UNREGISTER_BROKER,
            ApiKey.UNREGISTER_CONTROLLER,
        }
    )

    def beginning(self) -> Moves:
        yield from self.create(2)
        yield from self.create(1, {"retention.ms": "86400000"})

    def moves(self) -> list[tuple[int, Callable[[], Moves]]]:
        return [
            (14, self.create_topics),
            (6, self.delete_topics),
            (8, self.create_partitions),
            (16, self.alter_configs),
            (8 if ApiKey.ALTER_CONFIGS in self.versions else 0, self.replace_configs),
            (10, self.describe_configs),
            (7, self.alter_group_configs),
            (3 if ApiKey.ALTER_CONFIGS in self.versions else 0, self.replace_group_configs),
            (4, self.describe_group_configs),
            (12, self.metadata),
            (8, self.describe_topic_partitions),
            (4, self.describe_cluster),
            (9, self.log_directories),
            (5, self.elect),
            (6, self.reassign),
            (3, self.list_resources),
            (3, self.versions_of_apis),
            (4, self.describe_quorum),
            (3, self.try_feature),
            (2, self.unregister),
            (1 if ApiKey.UNREGISTER_CONTROLLER in self.versions else 0, self.unregister_controller),
            (2, self.produce),
            (2, self.unserved_version),
            (1, lambda: self.recreate(self.any_topic())),
        ]

    def ending(self) -> Moves:
        yield from self.survey()
        for topic in self.topics:
            resource = {"resource_type": _TOPIC, "resource_name": topic.name}
            request = {"resources": [{**resource, "configuration_keys": None}]}
            yield from self.ask(
                ApiKey.DESCRIBE_CONFIGS, {**request, "include_synonyms": True}, version=4
            )

    # -- topics ------------------------------------------------------------------------------

    def create_topics(self) -> Moves:
        if len(self.topics) >= _MOST_TOPICS:
            yield from self.delete(self.any_topic())
            return
        new_topics = [self._new_topic() for _ in range(self.random.choice((1, 1, 2)))]
        if self.maybe(0.05):
            new_topics.append(new_topics[0])
        is_trial = self.maybe(0.2)
        request = {"topics": new_topics, "timeout_ms": 30_000, "validate_only": is_trial}
        answer = yield from self.ask(ApiKey.CREATE_TOPICS, request)
        for topic in new_topics:
            name = topic["name"]
            if is_trial or answer.get(f"topics[{name}].error_code") != "0 NONE":
                continue
            requested_count = topic["num_partitions"] if topic["num_partitions"] > 0 else 1
            count = len(topic["assignments"]) or requested_count
            topic_state = Topic(name, NO_ID, [0] * count)
            self.topics.append(topic_state)
            yield from self.settle_topic(topic_state)

    def delete_topics(self) -> Moves:
        deleted = self.some(self.topics, 0, 1) if len(self.topics) > 1 else []
        version = self.version(ApiKey.DELETE_TOPICS)
        requested: list[dict[str, Any]] = [
            {"name": None, "topic_id": topic.topic_id}
            if self.maybe(0.5)
            else {"name": topic.name, "topic_id": NO_ID}
            for topic in deleted
        ]
        names = [topic.name for topic in deleted]
        if self.maybe(0.4):
            requested.append({"name": f"{self.prefix}nowhere", "topic_id": NO_ID})
            names.append(f"{self.prefix}nowhere")
        if self.maybe(0.2):
            requested.append({"name": None, "topic_id": UNKNOWN_ID})
        # Apache Kafka responds to several kinds of invalid ids in the order of a hash table.
        if self.maybe(0.1) and len(requested) == 1:
            requested.append(requested[0])
            names.append(names[0] if names else "")
        request = {"topics": requested, "topic_names": names, "timeout_ms": 30_000}
        answer = yield from self.ask(ApiKey.DELETE_TOPICS, request, version=version)
        for topic in deleted:
            if answer.get(f"responses[{topic.name}].error_code") == "0 NONE":
                self.topics.remove(topic)
                yield command(["wait", topic.name, "0"])

    def create_partitions(self) -> Moves:
        """Set a higher, lower or unchanged partition count, with a valid or invalid assignment."""
        topic = self.strange_topic() if self.maybe(0.1) else self.any_topic()
        count = len(topic.ends) + self.random.choice((1, 1, 2, 0, -1, -len(topic.ends)))
        added = max(0, count - len(topic.ends))
        assignments: list[dict[str, Any]] | None = None
        if self.maybe(0.3):
            brokers = self.random.choice(([1], [1], [1, 1], [], [7], [1, 2]))
            number = added + self.random.choice((0, 0, 1))
            assignments = [{"broker_ids": brokers}] * number
        is_trial = self.maybe(0.2)
        new_partitions = {"name": topic.name, "count": count, "assignments": assignments}
        topics_field = [new_partitions, new_partitions] if self.maybe(0.05) else [new_partitions]
        request = {"topics": topics_field, "timeout_ms": 30_000, "validate_only": is_trial}
        answer = yield from self.ask(ApiKey.CREATE_PARTITIONS, request)
        if answer.is_good and not is_trial:
            topic.ends += [0] * added
            yield command(["wait", topic.name, str(count)])

    def produce(self) -> Moves:
        """Produce some records, so that a topic has a size."""
        topic = self.any_topic()
        data = [{"index": 0, "records": sound(self.random, codec="none").records}]
        request = {
            "acks": -1,
            "timeout_ms": 30_000,
            "topic_data": [{**topic.both, "partition_data": data}],
        }
        version = self.version(ApiKey.PRODUCE, 3)
        answer = yield from self.ask(ApiKey.PRODUCE, request, version=version)
        self.learn_ends(answer, [topic])

    # -- configs -----------------------------------------------------------------------------

    def alter_configs(self) -> Moves:
        topic = self.strange_topic() if self.maybe(0.08) else self.any_topic()
        changes = [
            {
                "name": name,
                "config_operation": self.random.choice((_SET, _SET, _SET, _DELETE))
                if name != "cleanup.policy"
                else self.random.randrange(4),
                "value": self.random.choice(_VALUES[name]),
            }
            for name in self.some([*_VALUES], maximum=2)
        ]
        if self.maybe(0.05):
            changes.append(changes[0])
        if self.maybe(0.05):
            changes[0]["config_operation"] = self.random.choice((_APPEND, _SUBTRACT, 4))
        if self.maybe(0.05):
            changes[0]["value"] = None
        for change in changes:
            if change["config_operation"] == _DELETE:
                change["value"] = None
        resource = {"resource_type": _TOPIC, "resource_name": topic.name, "configs": changes}
        resources = [resource, resource] if self.maybe(0.04) else [resource]
        is_trial = self.maybe(0.2)
        request = {"resources": resources, "validate_only": is_trial}
        answer = yield from self.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, request)
        if answer.is_good and not is_trial:
            yield from self.until_applied(topic)

    def replace_configs(self) -> Moves:
        topic = self.strange_topic() if self.maybe(0.08) else self.any_topic()
        configs = [
            {"name": name, "value": self.random.choice(_VALUES[name])}
            for name in self.some([*_VALUES], 0, 2)
        ]
        if self.maybe(0.05) and configs:
            configs.append(configs[0])
        resource = {"resource_type": _TOPIC, "resource_name": topic.name, "configs": configs}
        is_trial = self.maybe(0.2)
        request = {"resources": [resource], "validate_only": is_trial}
        answer = yield from self.ask(ApiKey.ALTER_CONFIGS, request)
        if answer.is_good and not is_trial:
            yield from self.until_applied(topic)

    def describe_configs(self) -> Moves:
        keys: list[str] | None = self.some([*_VALUES], 0, 4)
        if self.maybe(0.2):
            keys = None
        topics = [self.any_topic()]
        if self.maybe(0.15):
            topics.append(self.strange_topic())
        resources: list[dict[str, Any]] = [
            {"resource_type": _TOPIC, "resource_name": topic.name, "configuration_keys": keys}
            for topic in topics
        ]
        if self.maybe(0.05):
            wrong = {"resource_type": 99, "resource_name": "x", "configuration_keys": None}
            resources.append(wrong)
        request = {"resources": resources, "include_synonyms": self.maybe(0.5)}
        yield from self.ask(ApiKey.DESCRIBE_CONFIGS, request)

    def list_resources(self) -> Moves:
        """List resources with configs, which do not include topics."""
        request = {"resource_types": self.random.choice(([16], [32], [4], [16, 32], [99]))}
        yield from self.ask(ApiKey.LIST_CONFIG_RESOURCES, request)

    # -- the cluster -------------------------------------------------------------------------

    def metadata(self) -> Moves:
        version = self.version(ApiKey.METADATA)
        topics = self.some(self.topics, maximum=3)
        if self.maybe(0.15):
            topics.append(self.strange_topic())
        names: list[dict[str, Any]] = [{"name": topic.name, "topic_id": NO_ID} for topic in topics]
        if version >= 12 and self.maybe(0.4):
            names = [{"name": None, "topic_id": topic.topic_id} for topic in topics]
        if self.maybe(0.05):
            names.append({"name": self.random.choice(("", "a/b", "..")), "topic_id": NO_ID})
        request = {
            "topics": names,
            "allow_auto_topic_creation": self.maybe(0.5),
            "include_cluster_authorized_operations": self.maybe(0.3),
            "include_topic_authorized_operations": self.maybe(0.3),
        }
        yield from self.ask(ApiKey.METADATA, request, version=version)

    def describe_topic_partitions(self) -> Moves:
        topics = self.some(self.topics, maximum=3)
        if self.maybe(0.1):
            topics.append(self.strange_topic())
        cursor = None
        if self.maybe(0.4):
            chosen = self.random.choice(topics)
            index = self.random.choice((0, 1, 5, -1) if self.maybe(0.2) else (0, 1))
            cursor = {"topic_name": chosen.name, "partition_index": index}
        request = {
            "topics": [{"name": topic.name} for topic in topics],
            "response_partition_limit": self.random.choice((2000, 1, 2, 0, -1)),
            "cursor": cursor,
        }
        yield from self.ask(ApiKey.DESCRIBE_TOPIC_PARTITIONS, request)

    def describe_cluster(self) -> Moves:
        request = {
            "include_cluster_authorized_operations": self.maybe(0.5),
            "endpoint_type": self.random.choice((1, 1, 3)),
            "include_fenced_brokers": self.maybe(0.3),
        }
        yield from self.ask(ApiKey.DESCRIBE_CLUSTER, request)

    def log_directories(self) -> Moves:
        topics = self.some(self.topics, maximum=2)
        if self.maybe(0.2):
            topics.append(self.strange_topic())
        partitions = [{"topic": topic.name, "partitions": topic.partitions} for topic in topics]
        if self.maybe(0.7):
            yield from self.ask(ApiKey.DESCRIBE_LOG_DIRS, {"topics": partitions})
            return
        named = [{"name": topic.name, "partitions": topic.partitions} for topic in topics]
        request = {"dirs": [{"path": "/nowhere", "topics": named}]}
        yield from self.ask(ApiKey.ALTER_REPLICA_LOG_DIRS, request)

    def elect(self) -> Moves:
        topic = self.strange_topic() if self.maybe(0.2) else self.any_topic()
        partitions = self.some([*topic.partitions, 9])
        request = {
            "election_type": self.random.choice((0, 1, 2) if self.maybe(0.1) else (0, 1)),
            "topic_partitions": [{"topic": topic.name, "partitions": partitions}],
            "timeout_ms": 30_000,
        }
        yield from self.ask(ApiKey.ELECT_LEADERS, request)

    def reassign(self) -> Moves:
        topic = self.strange_topic() if self.maybe(0.2) else self.any_topic()
        indexes = self.some([*topic.partitions, 9], maximum=2)
        if self.maybe(0.4):
            listed = [{"name": topic.name, "partition_indexes": indexes}]
            request = {"timeout_ms": 30_000, "topics": self.random.choice((listed, None))}
            yield from self.ask(ApiKey.LIST_PARTITION_REASSIGNMENTS, request)
            return
        replicas = self.random.choice((None, [1], [1], [], [1, 1], [7], [1, 7], [-1]))
        partitions = [{"partition_index": index, "replicas": replicas} for index in indexes]
        request = {
            "timeout_ms": 30_000,
            "allow_replication_factor_change": self.maybe(0.5),
            "topics": [{"name": topic.name, "partitions": partitions}],
        }
        yield from self.ask(ApiKey.ALTER_PARTITION_REASSIGNMENTS, request)

    def versions_of_apis(self) -> Moves:
        """Send ApiVersions with valid and invalid client names."""
        name = self.random.choice(("client", "", "-client", "a b"))
        request = {"client_software_name": name, "client_software_version": "1.0"}
        yield from self.ask(ApiKey.API_VERSIONS, request)

    def describe_quorum(self) -> Moves:
        name = "another" if self.maybe(0.1) else "__cluster_metadata"
        partitions = [{"partition_index": 1 if self.maybe(0.1) else 0}]
        topic = {"topic_name": name, "partitions": partitions}
        yield from self.ask(ApiKey.DESCRIBE_QUORUM, {"topics": [topic]})

    def try_feature(self) -> Moves:
        """Validate another level of a feature."""
        update = {
            "feature": self.random.choice(("metadata.version", "transaction.version", "unknown")),
            "max_version_level": self.random.choice((0, 1, 2, 7, 1000)),
            "upgrade_type": self.random.choice((1, 2, 3, 0)),
            "allow_downgrade": self.maybe(0.5),
        }
        request = {"timeout_ms": 30_000, "feature_updates": [update], "validate_only": True}
        version = self.version(ApiKey.UPDATE_FEATURES, 1)
        yield from self.ask(ApiKey.UPDATE_FEATURES, request, version=version)

    def unregister(self) -> Moves:
        request = {"broker_id": self.random.choice((-1, 0, 7, 2**31 - 1))}
        yield from self.ask(ApiKey.UNREGISTER_BROKER, request)

    def unregister_controller(self) -> Moves:
        request = {"controller_id": self.random.choice((-1, 1, 7, 2**31 - 1))}
        yield from self.ask(ApiKey.UNREGISTER_CONTROLLER, request)

    # -- parts -------------------------------------------------------------------------------

    def _new_topic(self) -> dict[str, Any]:
        self._names += 1
        name = f"{self.prefix}t{self._names}"
        if self.maybe(0.06):
            name = self.random.choice(("", "a b", "..", "x" * 250, self.any_topic().name))
        count = self.random.choice((1, 1, 2, 3, -1))
        replicas = self.random.choice((1, 1, 1, 1, -1))
        if self.maybe(0.1):
            count, replicas = self.random.choice(((0, 1), (-2, 1), (1, 0), (1, 2), (1, -2)))
        assignments: list[dict[str, Any]] = []
        if self.maybe(0.15):
            count, replicas = -1, -1
            indexes = self.random.choice(((0,), (0, 1), (1,), (0, 2), (0, 0)))
            brokers = self.random.choice(([1], [1], [1], [7], [], [1, 1]))
            assignments = [{"partition_index": n, "broker_ids": brokers} for n in indexes]
        configs = [
            {"name": key, "value": self.random.choice(_VALUES[key])}
            for key in self.some([*_VALUES], 0, 1 if self.maybe(0.5) else 0)
        ]
        return {
            "name": name,
            "num_partitions": count,
            "replication_factor": replicas,
            "assignments": assignments,
            "configs": configs,
        }
