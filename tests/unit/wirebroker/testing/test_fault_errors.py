"""Injected errors as librdkafka and kafka-python report them: one call per API key."""

from __future__ import annotations

import contextlib
import gc
import warnings
from typing import TYPE_CHECKING, Any, Final

import confluent_kafka
import kafka
import kafka.errors
import pytest
from confluent_kafka import (
    ConsumerGroupTopicPartitions,
    ElectionType,
    KafkaException,
    TopicPartition,
)
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourcePatternType,
    ResourceType,
    ScramMechanism,
    UserScramCredentialDeletion,
)

from wirebroker.codecs.errors import ErrorCode
from wirebroker.testing import Broker

if TYPE_CHECKING:
    from collections.abc import Callable

TOPIC: Final = TopicPartition("orders", 0, 0)
ERRORS: Final = [
    ErrorCode.POLICY_VIOLATION,
    pytest.param(ErrorCode.TOPIC_AUTHORIZATION_FAILED, marks=pytest.mark.nightly),
]


@pytest.fixture(scope="module")
def shared():
    with Broker() as broker:
        broker.create_topic("orders")
        broker.produce("orders", "a book")
        yield broker


@pytest.fixture
def broker(shared):
    yield shared
    shared.faults.clear()


# -- librdkafka --


def reported_delivery(broker):
    failures: list[Any] = []
    producer = confluent_kafka.Producer(broker.client_config("confluent"))
    producer.produce("orders", b"one", on_delivery=lambda error, _: failures.append(error))
    producer.flush(30)
    return failures[0].code()


@contextlib.contextmanager
def consumer(broker, **settings):
    config = {"group.id": "billing", "auto.offset.reset": "earliest"} | settings
    client = confluent_kafka.Consumer(broker.client_config("confluent") | config)
    yield client
    client.close()


def polled(client):
    while True:
        message = client.poll(10)
        if message is not None:
            error = message.error()
            assert error is not None, "the consumer has got a record"
            return error.code()


def reported_fetch(broker):
    with consumer(broker) as client:
        client.assign([TOPIC])
        return polled(client)


def reported_join(broker):
    with consumer(broker) as client:
        client.subscribe(["orders"])
        return polled(client)


def raised(call: Callable[[], Any]) -> int:
    with pytest.raises(KafkaException) as caught:
        call()
    return caught.value.args[0].code()


def reported_commit(broker):
    with consumer(broker) as client:
        client.assign([TOPIC])
        return raised(lambda: client.commit(offsets=[TOPIC], asynchronous=False))


def reported_topic(broker):
    admin = AdminClient(broker.client_config("confluent"))
    error = admin.list_topics("orders", timeout=10).topics["orders"].error
    assert error is not None
    return error.code()


def reported_groups(broker):
    admin = AdminClient(broker.client_config("confluent"))
    (error,) = admin.list_consumer_groups().result(10).errors
    return error.code()


def reported_offset(broker):
    """Return the error of the group or of the partition."""
    admin = AdminClient(broker.client_config("confluent"))
    group_partitions = ConsumerGroupTopicPartitions("billing", [TopicPartition("orders", 0)])
    (future,) = admin.list_consumer_group_offsets([group_partitions]).values()
    try:
        (partition,) = future.result(10).topic_partitions
    except KafkaException as error:
        return error.args[0].code()
    return partition.error.code()


def reported_init(broker):
    config = broker.client_config("confluent") | {"transactional.id": "x"}
    return raised(lambda: confluent_kafka.Producer(config).init_transactions(1))


def of_admin(call: Callable[[AdminClient], Any]) -> Callable[[Broker], int]:
    def reported(broker: Broker) -> int:
        admin = AdminClient(broker.client_config("confluent"))
        answer = call(admin)
        future = next(iter(answer.values())) if isinstance(answer, dict) else answer
        return raised(lambda: future.result(10))

    return reported


ACL: Final = AclBinding(
    ResourceType.TOPIC, "orders", ResourcePatternType.LITERAL,
    "User:a", "*", AclOperation.READ, AclPermissionType.ALLOW,
)  # fmt: skip
ACLS: Final = AclBindingFilter(
    ResourceType.TOPIC, "orders", ResourcePatternType.LITERAL,
    "User:a", "*", AclOperation.ANY, AclPermissionType.ANY,
)  # fmt: skip


def resource(**settings):
    return ConfigResource(ResourceType.TOPIC, "orders", **settings)


def changed_resource():
    entry = ConfigEntry("retention.ms", "1000", incremental_operation=AlterConfigOpType.SET)
    return resource(incremental_configs=[entry])


def deletion(admin):
    user = UserScramCredentialDeletion("alice", ScramMechanism.SCRAM_SHA_256)
    return admin.alter_user_scram_credentials([user])


def election(admin):
    return admin.elect_leaders(ElectionType.PREFERRED, [TopicPartition("orders", 0)])


# librdkafka sends no DescribeCluster, and ignores DescribeAcls errors also from Apache Kafka.
CONFLUENT: Final[dict[str, Callable[[Broker], int]]] = {
    "PRODUCE": reported_delivery,
    "FETCH": reported_fetch,
    "LIST_OFFSETS": of_admin(
        lambda admin: admin.list_offsets({TopicPartition("orders", 0): OffsetSpec.latest()})
    ),
    "METADATA": reported_topic,
    "OFFSET_COMMIT": reported_commit,
    "OFFSET_FETCH": reported_offset,
    "FIND_COORDINATOR": of_admin(lambda admin: admin.describe_consumer_groups(["billing"])),
    "JOIN_GROUP": reported_join,
    "DESCRIBE_GROUPS": of_admin(lambda admin: admin.describe_consumer_groups(["billing"])),
    "LIST_GROUPS": reported_groups,
    "CREATE_TOPICS": of_admin(lambda admin: admin.create_topics([NewTopic("new", 1)])),
    "DELETE_TOPICS": of_admin(lambda admin: admin.delete_topics(["orders"])),
    "DELETE_RECORDS": of_admin(lambda admin: admin.delete_records([TOPIC])),
    "INIT_PRODUCER_ID": reported_init,
    "CREATE_PARTITIONS": of_admin(
        lambda admin: admin.create_partitions([NewPartitions("orders", 2)])
    ),
    "DESCRIBE_CONFIGS": of_admin(lambda admin: admin.describe_configs([resource()])),
    "ALTER_CONFIGS": of_admin(
        lambda admin: admin.alter_configs([resource(set_config={"retention.ms": "1000"})])
    ),
    "INCREMENTAL_ALTER_CONFIGS": of_admin(
        lambda admin: admin.incremental_alter_configs([changed_resource()])
    ),
    "CREATE_ACLS": of_admin(lambda admin: admin.create_acls([ACL])),
    "DELETE_ACLS": of_admin(lambda admin: admin.delete_acls([ACLS])),
    "DELETE_GROUPS": of_admin(lambda admin: admin.delete_consumer_groups(["billing"])),
    "ELECT_LEADERS": of_admin(election),
    "DESCRIBE_USER_SCRAM_CREDENTIALS": of_admin(
        lambda admin: admin.describe_user_scram_credentials(["alice"])
    ),
    "ALTER_USER_SCRAM_CREDENTIALS": of_admin(deletion),
}


@pytest.mark.filterwarnings("ignore:alter_configs")
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.name)
@pytest.mark.parametrize("api", CONFLUENT)
def test_librdkafka_reports_the_error(broker, api, error):
    fault = broker.faults.error(api, error)
    assert CONFLUENT[api](broker) == error
    assert fault.acted >= 1


@pytest.fixture
def _collected():
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


# -- kafka-python --


def of_python(call):
    def reported(broker):
        admin = kafka.KafkaAdminClient(**broker.client_config("kafka-python"))
        try:
            answer = call(admin)
        except kafka.errors.KafkaError as error:
            return error.errno
        finally:
            admin.close()
        return answer

    return reported


def sent(broker):
    config = broker.client_config("kafka-python")
    with contextlib.closing(kafka.KafkaProducer(**config, retries=0)) as producer:
        try:
            return producer.send("orders", b"one").get(timeout=10)
        except kafka.errors.KafkaError as error:
            return error.errno


def with_consumer(call):
    def reported(broker):
        config = broker.client_config("kafka-python") | {"group_id": "billing"}
        client = kafka.KafkaConsumer(auto_offset_reset="earliest", **config)
        try:
            return call(client)
        except kafka.errors.KafkaError as error:
            return error.errno
        finally:
            client.close(autocommit=False)

    return reported


def assigned(call):
    partition = kafka.TopicPartition("orders", 0)

    def reported(client):
        client.assign([partition])
        return call(client, partition)

    return with_consumer(reported)


def code_in(text):
    return int(text.removeprefix("[Error ").partition("]")[0])


# kafka-python ignores the errors of DescribeLogDirs, returns only the messages of those of
# DescribeUserScramCredentials, and requests offsets until its timeout.
PYTHON: Final[dict[str, Callable[[Broker], Any]]] = {
    "PRODUCE": sent,
    "FETCH": assigned(lambda client, place: (client.seek(place, 0), client.poll(5000))),
    "OFFSET_COMMIT": assigned(
        lambda client, place: client.commit({place: kafka.OffsetAndMetadata(1, "", -1)})
    ),
    "OFFSET_FETCH": assigned(lambda client, place: client.committed(place)),
    "JOIN_GROUP": with_consumer(lambda client: (client.subscribe(["orders"]), client.poll(5000))),
    "DESCRIBE_GROUPS": of_python(
        lambda admin: code_in(admin.describe_groups(["billing"])["billing"]["error"])
    ),
    "LIST_GROUPS": of_python(lambda admin: admin.list_groups()),
    "CREATE_TOPICS": of_python(lambda admin: admin.create_topics({"new": {}})),
    "DELETE_TOPICS": of_python(lambda admin: admin.delete_topics(["orders"])),
    "DELETE_RECORDS": of_python(
        lambda admin: admin.delete_records({kafka.TopicPartition("orders", 0): 0})
    ),
    "CREATE_PARTITIONS": of_python(lambda admin: admin.create_partitions({"orders": 2})),
    "DESCRIBE_CLUSTER": of_python(lambda admin: admin.describe_cluster()),
    "DELETE_GROUPS": of_python(
        lambda admin: getattr(kafka.errors, admin.delete_groups(["billing"])["billing"]).errno
    ),
    "ELECT_LEADERS": of_python(
        lambda admin: admin.elect_leaders(0, [kafka.TopicPartition("orders", 0)])
    ),
    "ALTER_PARTITION_REASSIGNMENTS": of_python(
        lambda admin: admin.alter_partition_reassignments({kafka.TopicPartition("orders", 0): [1]})
    ),
    "LIST_PARTITION_REASSIGNMENTS": of_python(lambda admin: admin.list_partition_reassignments()),
    "DESCRIBE_QUORUM": of_python(lambda admin: admin.describe_metadata_quorum()),
    "DESCRIBE_PRODUCERS": of_python(
        lambda admin: admin.describe_producers([kafka.TopicPartition("orders", 0)])
    ),
    "DESCRIBE_TRANSACTIONS": of_python(lambda admin: admin.describe_transactions(["x"])),
    "LIST_TRANSACTIONS": of_python(lambda admin: admin.list_transactions()),
    "LIST_CONFIG_RESOURCES": of_python(lambda admin: admin.list_config_resources()),
    "DESCRIBE_TOPIC_PARTITIONS": of_python(
        lambda admin: admin.describe_topic_partitions(["orders"])["topics"][0]["error_code"]
    ),
}


@pytest.mark.usefixtures("_collected")
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.name)
@pytest.mark.parametrize("api", PYTHON)
def test_kafka_python_reports_the_error(broker, api, error):
    fault = broker.faults.error(api, error)
    assert PYTHON[api](broker) == error
    assert fault.acted >= 1
