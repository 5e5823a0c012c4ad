"""The rights on the cluster that the console's user needs, and those that it lacks."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from wirebroker.client.checks.dry_runs import missing_cluster_rights
from wirebroker.client.errors import ClientError
from wirebroker.console.model.snapshot import ClusterStatus

if TYPE_CHECKING:
    from wirebroker.client.kafka_client import KafkaClient
    from wirebroker.console.model.collector import Collector

logger = logging.getLogger("wirebroker")

# Operations on the cluster; docs/console.md lists the rights on topics, groups and others too.
CLUSTER_RIGHTS: Final = {
    "describe": "brokers, groups, transactions, ACLs, users and reassignments",
    "describe_configs": "configs of brokers, and quotas",
    "create": "creating topics",
    "alter": "changes of ACLs, users, replicas and leaders",
    "alter_configs": "changes of brokers' configs, and of quotas",
}


async def missing_rights_of(client: KafkaClient) -> list[str]:
    """Return the rights that are missing, such as `Create, for creating topics`.

    Brokers before Kafka 2.8 do not report rights; then none are missing.
    """
    return [
        f"{operation.title().replace('_', '')}, for {CLUSTER_RIGHTS[operation]}"
        for operation in await missing_cluster_rights(client, list(CLUSTER_RIGHTS))
    ]


async def log_missing_rights(collector: Collector) -> None:
    """Wait until the cluster is read, and log the rights that the console's user lacks."""
    name = collector.settings.name
    try:
        while collector.snapshot.status is not ClusterStatus.OK:
            await collector.newer_than(collector.snapshot.number)
        missing = await missing_rights_of(collector.client)
    except ClientError as error:
        logger.warning("cluster %s: the console's rights are unknown: %s", name, error)
        return
    if missing:
        logger.warning(
            "cluster %s: the console's user, %s, lacks rights on the cluster: %s (docs/console.md)",
            name,
            collector.kafka_user,
            "; ".join(missing),
        )
