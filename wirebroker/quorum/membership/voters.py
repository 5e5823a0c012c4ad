"""Who votes in a quorum, asked before anything else is: no broker may go by the id of a voter.

A broker of that id would be taken for the voter: the leader of a quorum whose voters are named by
their ids alone (kraft.version 0) counts by what a Fetch of it says what most of them have.

Source: Kafka's KafkaConfig, which refuses it by controller.quorum.voters; KIP-595. Where only
addresses are named Kafka's broker ends, if it is the leader's, with the first answer.
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
_ASK_AGAIN_S: Final = 0.25


async def check_is_no_voter(
    controllers: ActiveController, node_id: int, *, timeout_s: float
) -> None:
    """Refuse a node id that a voter has.

    Args:
        controllers: The way to them.
        node_id: Of this broker.
        timeout_s: How long they may take.

    Raises:
        NodeIdTakenError: A voter has it.
        StartError: Nobody has said in time who votes.
    """
    try:
        async with asyncio.timeout(timeout_s):
            code, voters = await _ask(controllers, timeout_s)
    except (PeerError, TimeoutError) as error:
        why = str(error) or f"no leader has within {timeout_s:g} s"
        raise StartError(
            f"the controllers do not say who votes: {why}",
            "check controller.quorum.bootstrap.servers, and that the controllers run",
        ) from error
    if code:  # they need not let a broker see it that they let join
        LOGGER.warning(
            "the controllers answer %s when they are asked who votes: no voter may have the id %d",
            error_name(code),
            node_id,
        )
    elif node_id in voters:
        raise NodeIdTakenError(
            f"{node_id} is the node id of one of the cluster's controllers",
            "choose another node.id (--node-id N)",
        )


async def _ask(controllers: ActiveController, timeout_s: float) -> tuple[int, set[int]]:
    """Return an error code, or 0 and the voters' ids; only the leader of the quorum knows them."""
    while True:
        answer: Any = await controllers.request(
            ApiKey.DESCRIBE_QUORUM, _QUESTION, timeout_s=timeout_s
        )
        described = [each for topic in answer.topics for each in topic.partitions]
        code = answer.error_code or next((each.error_code for each in described), 0)
        if code != ErrorCode.NOT_LEADER_OR_FOLLOWER:
            return code, {voter.replica_id for each in described for voter in each.current_voters}
        controllers.forget((await controllers.find(timeout_s)).address)
        await pause(_ASK_AGAIN_S)
