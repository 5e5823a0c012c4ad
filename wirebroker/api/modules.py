"""The modules with handlers of advertised APIs, which register when imported.

Those that few clients need are imported with their first request, so that a broker starts quickly.
Other requests that the controller decides are forwarded without a module.
"""

from __future__ import annotations

import importlib
from functools import partial
from typing import TYPE_CHECKING, Final

from wirebroker.api.forwarding import forward_all_others
from wirebroker.api.registry import REGISTRY
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from wirebroker.request.handlers import Handler

API_MODULES: Final = (
    "cluster.api_versions",
    "cluster.describe_cluster",
    "configs.alter_configs",
    "configs.describe_configs",
    "data.delete_records",
    "data.fetch",
    "data.list_offsets",
    "data.offset_for_leader_epoch",
    "data.produce",
    "groups.describe_groups",
    "groups.find_coordinator",
    "groups.heartbeat",
    "groups.join_group",
    "groups.leave_group",
    "groups.list_groups",
    "groups.offset_commit",
    "groups.offset_fetch",
    "groups.sync_group",
    "security.sasl",
    "topics.create_topics",
    "topics.delete_topics",
    "topics.metadata",
    "transactions.add_offsets_to_txn",
    "transactions.add_partitions_to_txn",
    "transactions.end_txn",
    "transactions.init_producer_id",
    "transactions.txn_offset_commit",
    "transactions.write_txn_markers",
)

LATE_MODULES: Final[Mapping[str, Sequence[ApiKey]]] = {
    "client_metrics.get_telemetry_subscriptions": (ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,),
    "client_metrics.push_telemetry": (ApiKey.PUSH_TELEMETRY,),
    "cluster.log_dirs": (
        ApiKey.DESCRIBE_LOG_DIRS,
        ApiKey.ALTER_REPLICA_LOG_DIRS,
    ),
    "configs.client_quotas": (ApiKey.DESCRIBE_CLIENT_QUOTAS,),
    "configs.list_config_resources": (ApiKey.LIST_CONFIG_RESOURCES,),
    "data.describe_producers": (ApiKey.DESCRIBE_PRODUCERS,),
    "groups.described_groups": (
        ApiKey.CONSUMER_GROUP_DESCRIBE,
        ApiKey.SHARE_GROUP_DESCRIBE,
        ApiKey.STREAMS_GROUP_DESCRIBE,
    ),
    "groups.consumer_group_heartbeat": (ApiKey.CONSUMER_GROUP_HEARTBEAT,),
    "groups.delete_groups": (ApiKey.DELETE_GROUPS,),
    "groups.offset_delete": (ApiKey.OFFSET_DELETE,),
    "groups.streams_group_heartbeat": (ApiKey.STREAMS_GROUP_HEARTBEAT,),
    "groups.streams_group_topology": (ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE,),
    "groups.share_group_heartbeat": (ApiKey.SHARE_GROUP_HEARTBEAT,),
    "groups.share_offsets_alter": (ApiKey.ALTER_SHARE_GROUP_OFFSETS,),
    "groups.share_offsets_delete": (ApiKey.DELETE_SHARE_GROUP_OFFSETS,),
    "groups.share_offsets_describe": (ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,),
    "security.acls": (
        ApiKey.CREATE_ACLS,
        ApiKey.DELETE_ACLS,
        ApiKey.DESCRIBE_ACLS,
    ),
    "security.delegation_tokens": (
        ApiKey.CREATE_DELEGATION_TOKEN,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
        ApiKey.DESCRIBE_DELEGATION_TOKEN,
    ),
    "security.scram_users": (ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,),
    "share.share_acknowledge": (ApiKey.SHARE_ACKNOWLEDGE,),
    "share.share_fetch": (ApiKey.SHARE_FETCH,),
    "share.share_group_state": (
        ApiKey.INITIALIZE_SHARE_GROUP_STATE,
        ApiKey.READ_SHARE_GROUP_STATE,
        ApiKey.WRITE_SHARE_GROUP_STATE,
        ApiKey.DELETE_SHARE_GROUP_STATE,
        ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
    ),
    "topics.describe_topic_partitions": (ApiKey.DESCRIBE_TOPIC_PARTITIONS,),
    "transactions.describe_transactions": (ApiKey.DESCRIBE_TRANSACTIONS,),
    "transactions.list_transactions": (ApiKey.LIST_TRANSACTIONS,),
}


def load_handlers() -> None:
    """Register the handlers of all advertised APIs."""
    for module in API_MODULES:
        importlib.import_module(f"wirebroker.api.{module}")
    for module, keys in LATE_MODULES.items():
        for key in keys:
            if not REGISTRY.has(key):
                REGISTRY.add_late(key, partial(_load, module, key))
    forward_all_others()


def _load(module: str, key: ApiKey) -> Handler:
    importlib.import_module(f"wirebroker.api.{module}")
    return REGISTRY.loaded(key)
