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
    "create": "creating topics, unless ACLs of topics allow it",
    "alter": "changes of ACLs, users, replicas and leaders",
    "alter_configs": "changes of brokers' configs, and of quotas",
}
_READING: Final = ("describe", "describe_configs")


async def missing_rights_of(client: KafkaClient, *, is_read_only: bool) -> list[str]:
    """Return the rights that are missing, such as `DescribeConfigs, for …`.

    Brokers before Kafka 2.8 do not report rights; then none are missing.
    """
    return [_text(operation) for operation in await _missing(client, is_read_only=is_read_only)]


async def log_missing_rights(collector: Collector, *, is_read_only: bool) -> None:
    """Wait until the cluster is read, and log the rights that the console's user lacks.

    A user that may only read is usual, so those for changes are no warning.
    """
    name = collector.settings.name
    try:
        while collector.snapshot.status is not ClusterStatus.OK:
            await collector.newer_than(collector.snapshot.number)
        missing = await _missing(collector.client, is_read_only=is_read_only)
    except ClientError as error:
        logger.warning("cluster %s: the console's rights are unknown: %s", name, error)
        return
    for level, operations in (
        (logging.WARNING, [row for row in missing if row in _READING]),
        (logging.INFO, [row for row in missing if row not in _READING]),
    ):
        if operations:
            logger.log(
                level,
                "cluster %s: the console's user, %s, lacks rights on the cluster: %s"
                " (docs/console.md)",
                name,
                collector.kafka_user,
                "; ".join(map(_text, operations)),
            )


async def _missing(client: KafkaClient, *, is_read_only: bool) -> list[str]:
    operations = _READING if is_read_only else tuple(CLUSTER_RIGHTS)
    return await missing_cluster_rights(client, operations)


def _text(operation: str) -> str:
    return f"{operation.title().replace('_', '')}, for {CLUSTER_RIGHTS[operation]}"
