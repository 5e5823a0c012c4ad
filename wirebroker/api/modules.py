"""The modules with handlers of advertised APIs, which register when imported.

Other requests that the controller decides are forwarded without a module.
"""

from __future__ import annotations

import importlib
from typing import Final

from wirebroker.api.forwarding import forward_all_others

API_MODULES: Final = (
    "client_metrics.get_telemetry_subscriptions",
    "client_metrics.push_telemetry",
    "cluster.api_versions",
    "cluster.describe_cluster",
    "cluster.log_dirs",
    "configs.alter_configs",
    "configs.client_quotas",
    "configs.describe_configs",
    "configs.list_config_resources",
    "data.delete_records",
    "data.describe_producers",
    "data.fetch",
    "data.list_offsets",
    "data.offset_for_leader_epoch",
    "data.produce",
    "groups.described_groups",
    "groups.consumer_group_heartbeat",
    "groups.delete_groups",
    "groups.describe_groups",
    "groups.find_coordinator",
    "groups.heartbeat",
    "groups.join_group",
    "groups.leave_group",
    "groups.list_groups",
    "groups.offset_commit",
    "groups.offset_delete",
    "groups.offset_fetch",
    "groups.streams_group_heartbeat",
    "groups.streams_group_topology",
    "groups.share_group_heartbeat",
    "groups.share_offsets_alter",
    "groups.share_offsets_delete",
    "groups.share_offsets_describe",
    "groups.sync_group",
    "security.acls",
    "security.delegation_tokens",
    "security.sasl",
    "security.scram_users",
    "share.share_acknowledge",
    "share.share_fetch",
    "share.share_group_state",
    "topics.create_topics",
    "topics.delete_topics",
    "topics.describe_topic_partitions",
    "topics.metadata",
    "transactions.add_offsets_to_txn",
    "transactions.add_partitions_to_txn",
    "transactions.describe_transactions",
    "transactions.end_txn",
    "transactions.init_producer_id",
    "transactions.list_transactions",
    "transactions.txn_offset_commit",
    "transactions.write_txn_markers",
)


def load_handlers() -> None:
    """Register the handlers of all advertised APIs."""
    for module in API_MODULES:
        importlib.import_module(f"wirebroker.api.{module}")
    forward_all_others()
