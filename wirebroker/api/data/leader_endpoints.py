"""Addresses of the leaders that a response names (KIP-951), which spare a Metadata request.

Source: Kafka's KafkaApis.getCurrentLeader.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.api.topics.metadata import advertised

if TYPE_CHECKING:
    from collections.abc import Collection

    from wirebroker.api.broker import Broker
    from wirebroker.codecs.hot.produce_response import NodeEndpoint
    from wirebroker.request.session import Session


def leader_endpoints(
    broker: Broker, session: Session, leaders: Collection[int]
) -> list[NodeEndpoint]:
    """Return the addresses of live leaders on the session's listener."""
    return [endpoint for endpoint in advertised(broker, session) if endpoint[0] in leaders]
