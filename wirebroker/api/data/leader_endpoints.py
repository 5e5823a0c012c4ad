"""Where the leaders that an answer names can be reached (KIP-951): a client need not ask Metadata.

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
    """Return how the listener that a client came by reaches those of some leaders that live.

    Args:
        broker: This one.
        session: On the listener.
        leaders: Node ids.
    """
    return [each for each in advertised(broker, session) if each[0] in leaders]
