"""Checks that no voter of a quorum has this broker's id.

The leader of a quorum with static voters (kraft.version 0) would count this broker's fetches as the
voter's.

Source: Kafka's KafkaConfig, which checks controller.quorum.voters; KIP-595.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final

from wirebroker.base.clock import pause
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.config.rows.row import StartError
from wirebroker.coordinator.controller.image.topic_names import CLUSTER_METADATA_TOPIC
from wirebroker.net.client.errors import PeerError, error_name
from wirebroker.quorum.membership.member_lifecycle import NodeIdTakenError

if TYPE_CHECKING:
    from wirebroker.net.client.active_controller import ActiveController

LOGGER = logging.getLogger("wirebroker")

_QUESTION: Final = {
    "topics": [{"topic_name": CLUSTER_METADATA_TOPIC, "partitions": [{"partition_index": 0}]}]
}
_RETRY_S: Final = 0.25


async def check_is_no_voter(
    controllers: ActiveController, node_id: int, *, timeout_s: float
) -> None:
    """Check that no voter has a node id.

    Raises:
        NodeIdTakenError: A voter has it.
        StartError: The voters are unknown after `timeout_s`.
    """
    try:
        async with asyncio.timeout(timeout_s):
            code, described = await described_quorum(controllers, timeout_s)
    except (PeerError, TimeoutError) as error:
        reason = str(error) or f"no leader responded within {timeout_s:g} s"
        raise StartError(
            f"cannot get the voters from the controllers: {reason}",
            "check controller.quorum.bootstrap.servers, and that the controllers run",
        ) from error
    if code:  # a broker that may join need not be authorized for this
        LOGGER.warning(
            "cannot get the voters from the controllers (%s): make sure that none has the id %d",
            error_name(code),
            node_id,
        )
    elif any(
        voter.replica_id == node_id for partition in described for voter in partition.current_voters
    ):
        raise NodeIdTakenError(
            f"{node_id} is the node id of one of the cluster's controllers",
            "choose another node.id (--node-id N)",
        )


async def described_quorum(
    controllers: ActiveController, timeout_s: float
) -> tuple[int, list[Any]]:
    """Return an error code, or 0 and the metadata log's partition; only the leader has it.

    Raises:
        PeerError: The controllers do not respond.
    """
    while True:
        answer: Any = await controllers.request(
            ApiKey.DESCRIBE_QUORUM, _QUESTION, timeout_s=timeout_s
        )
        described = [partition for topic in answer.topics for partition in topic.partitions]
        code = answer.error_code or next((partition.error_code for partition in described), 0)
        if code != ErrorCode.NOT_LEADER_OR_FOLLOWER:
            return code, described
        controllers.forget((await controllers.find(timeout_s)).address)
        await pause(_RETRY_S)
