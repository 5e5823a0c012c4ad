"""Declarations of the handlers: permissions, cost, and response owner."""

from wirebroker.api.modules import load_handlers
from wirebroker.api.registry import REGISTRY
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.request.handlers import Cost

load_handlers()


def test_every_api_after_authentication_has_required_permissions():
    before = {ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE}
    # The token itself determines the permission.
    of_tokens = {ApiKey.RENEW_DELEGATION_TOKEN, ApiKey.EXPIRE_DELEGATION_TOKEN}
    # As in Kafka, any client pushes its metrics.
    of_clients = {ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY}
    assert {
        handler.key for handler in REGISTRY.handlers() if not handler.permissions
    } == before | of_tokens | of_clients


def test_forwarded_apis_equal_kafkas_and_use_controller_cost():
    forwarded = {handler.key for handler in REGISTRY.handlers() if handler.is_forwarded}
    assert forwarded == {
        handler.key for handler in REGISTRY.handlers() if handler.cost is Cost.CONTROLLER
    }
    assert forwarded == {
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_TOPICS,
        ApiKey.CREATE_PARTITIONS,
        ApiKey.CREATE_ACLS,
        ApiKey.DELETE_ACLS,
        ApiKey.CREATE_DELEGATION_TOKEN,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
        ApiKey.ALTER_CONFIGS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.ELECT_LEADERS,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        ApiKey.ALTER_CLIENT_QUOTAS,
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        ApiKey.UPDATE_FEATURES,
        ApiKey.DESCRIBE_QUORUM,
        ApiKey.ADD_RAFT_VOTER,
        ApiKey.REMOVE_RAFT_VOTER,
        ApiKey.UNREGISTER_BROKER,
        ApiKey.UNREGISTER_CONTROLLER,
    }


def test_handler_permissions_are_unique():
    for handler in REGISTRY.handlers():
        assert len(set(handler.permissions)) == len(handler.permissions), handler.key
