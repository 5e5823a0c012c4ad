"""StreamsGroupTopologyDescriptionUpdate: refused, as by a broker without a plugin (KIP-1331).

Members send it only if a heartbeat's response requests it, which none does here.

Source: Kafka's GroupCoordinatorService.streamsGroupTopologyDescriptionUpdate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.api.groups.group_errors import error_only, serves_streams_groups
from wirebroker.api.registry import handles
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.permissions import READ_GROUP
from wirebroker.request.handlers import Cost

if TYPE_CHECKING:
    from wirebroker.api.broker import Broker
    from wirebroker.request.request import Request


@handles(
    ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE,
    permissions=(READ_GROUP,),
    cost=Cost.BOUNDED,
)
def streams_group_topology(broker: Broker, request: Request, body: Any) -> dict[str, Any]:
    """Refuse the description."""
    del request, body
    refusal = error_only(ErrorCode.UNSUPPORTED_VERSION)
    if serves_streams_groups(broker):
        refusal["error_message"] = (
            "The broker has no streams group topology description plugin configured."
        )
    return refusal
