"""The topics that a request names, for faults and recorded requests."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.support.protocol.message_schemas import schema_of
from tests.support.protocol.message_values import versions_of
from tests.support.protocol.sample_requests import GROUP, TOPIC, TRANSACTIONAL_ID, SampleRequests
from tests.support.protocol.served_keys import served_keys
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.messages import decode_request, encode_request, request_message
from wirebroker.testing.requests.named_topics import names_topic

if TYPE_CHECKING:
    from collections.abc import Iterator

    from compiling.messages.schema import Field, StructSchema

ID: Final = bytes([7] * 16)
NO_TOPIC: Final = {
    *(ApiKey.FIND_COORDINATOR, ApiKey.JOIN_GROUP, ApiKey.HEARTBEAT, ApiKey.LEAVE_GROUP),
    *(ApiKey.SYNC_GROUP, ApiKey.DESCRIBE_GROUPS, ApiKey.LIST_GROUPS, ApiKey.DELETE_GROUPS),
    *(ApiKey.CONSUMER_GROUP_DESCRIBE, ApiKey.SHARE_GROUP_DESCRIBE),
    *(ApiKey.STREAMS_GROUP_DESCRIBE, ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE),
    *(ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE, ApiKey.API_VERSIONS),
    *(ApiKey.INIT_PRODUCER_ID, ApiKey.ADD_OFFSETS_TO_TXN, ApiKey.END_TXN),
    *(ApiKey.DESCRIBE_TRANSACTIONS, ApiKey.LIST_TRANSACTIONS, ApiKey.LIST_CONFIG_RESOURCES),
    *(ApiKey.CREATE_DELEGATION_TOKEN, ApiKey.RENEW_DELEGATION_TOKEN),
    *(ApiKey.EXPIRE_DELEGATION_TOKEN, ApiKey.DESCRIBE_DELEGATION_TOKEN),
    *(ApiKey.DESCRIBE_CLIENT_QUOTAS, ApiKey.ALTER_CLIENT_QUOTAS),
    *(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, ApiKey.ALTER_USER_SCRAM_CREDENTIALS),
    *(ApiKey.UPDATE_FEATURES, ApiKey.DESCRIBE_CLUSTER, ApiKey.UNREGISTER_BROKER),
    ApiKey.UNREGISTER_CONTROLLER,
    *(ApiKey.ADD_RAFT_VOTER, ApiKey.REMOVE_RAFT_VOTER),
    ApiKey.DESCRIBE_QUORUM,  # the sample omits the topic, which is the metadata log
}


def sample(key: ApiKey, version: int) -> Any:
    body = encode_request(key, version, SampleRequests(ID).body(key, version))
    return decode_request(key, version, body)


@pytest.mark.parametrize("key", served_keys(), ids=lambda key: key.name)
def test_every_request_names_its_topics_and_nothing_else(key):
    for version in versions_of(key):
        body = sample(key, version)
        assert names_topic(body, TOPIC, ID) == (key not in NO_TOPIC), version
        for other in (GROUP, TRANSACTIONAL_ID, "range", "retention.ms", "alice", "other"):
            assert not names_topic(body, other, None), (version, other)


def test_resources_of_other_types_are_not_topics():
    for key in (ApiKey.DESCRIBE_CONFIGS, ApiKey.ALTER_CONFIGS, ApiKey.INCREMENTAL_ALTER_CONFIGS):
        body = sample(key, versions_of(key)[-1])
        body.resources[0].resource_type = 32  # a group
        assert not names_topic(body, TOPIC, ID)


def test_every_topic_field_of_the_schemas_has_its_entity_type():
    """kafka-python's definitions are Kafka's; ours are written by hand."""
    for key in ApiKey:
        with contextlib.suppress(LookupError):
            for field in fields_of(schema_of(request_message(key)).body):
                if field.type == "string" and "topic" in field.name and "regex" not in field.name:
                    assert field.entity == "topicName", (key.name, field.name)


def fields_of(schema: StructSchema) -> Iterator[Field]:
    for field in schema.fields:
        yield field
        if field.struct is not None:
            yield from fields_of(field.struct)


@pytest.fixture
def broker(broker):
    broker.create_topics({"orders": 1, "payments": 1})
    return broker


def test_topic_fault_does_not_affect_a_group_of_the_same_name(broker, client):
    broker.create_topic("billing")
    fault = broker.faults.error("OFFSET_FETCH", "GROUP_AUTHORIZATION_FAILED", topic="billing")
    group = {"group_id": "billing", "topics": [{"name": "orders", "partition_indexes": [0]}]}
    assert client.ask(ApiKey.OFFSET_FETCH, 9, {"groups": [group]}).groups[0].error_code == 0
    assert fault.acted == 0


@pytest.mark.parametrize(
    ("key", "version"), [(ApiKey.DESCRIBE_CONFIGS, 4), (ApiKey.INCREMENTAL_ALTER_CONFIGS, 1)]
)
def test_topic_fault_applies_to_requests_for_its_configs(broker, client, key, version):
    fault = broker.faults.error(key, "POLICY_VIOLATION", topic="orders")
    for name in ("orders", "payments"):
        client.ask(key, version, {"resources": [{"resource_type": 2, "resource_name": name}]})
    assert fault.acted == 1


def test_recorded_requests_have_the_names_of_topics_that_clients_give_by_id(broker, client):
    names = {"topics": [{"name": "orders"}]}
    (topic,) = client.ask(ApiKey.METADATA, 12, names).topics
    produce_topic = {"topic_id": topic.topic_id, "partition_data": []}
    client.ask(ApiKey.PRODUCE, 13, {"acks": 1, "timeout_ms": 1, "topic_data": [produce_topic]})
    partitions = [{"partition": 0, "partition_max_bytes": 1}]
    fetch_topic = {"topic_id": topic.topic_id, "partitions": partitions}
    client.ask(ApiKey.FETCH, 13, {"max_bytes": 1, "topics": [fetch_topic]})
    client.ask(ApiKey.METADATA, 12, {"topics": [{"name": None, "topic_id": topic.topic_id}]})
    client.ask(ApiKey.DELETE_TOPICS, 6, {"topics": [{"name": None, "topic_id": topic.topic_id}]})
    client.ask(ApiKey.METADATA, 12, {"topics": [{"name": None, "topic_id": bytes([9] * 16)}]})
    assert last(broker, "PRODUCE")["topic_data"][0]["name"] == "orders"
    assert last(broker, "FETCH")["topics"][0]["topic"] == "orders"
    assert last(broker, "DELETE_TOPICS")["topics"][0]["name"] == "orders"
    unknown_topic, known_topic = (
        request.body["topics"][0] for request in broker.requests("METADATA")[:-3:-1]
    )
    assert (known_topic["name"], unknown_topic["name"]) == ("orders", None)


def last(broker, api):
    return broker.requests(api, most=1)[0].body
