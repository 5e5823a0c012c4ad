"""The rules of requests to the share coordinator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.authorization.ruling import (
    CLUSTER_DENIED,
    MESSAGES,
    SERVED,
    CheckedRequest,
    Ruling,
    failed_topics,
)
from wirebroker.codecs.permissions import CLUSTER_ACTION

if TYPE_CHECKING:
    from wirebroker.base.clock import Steps

_DENIED: Final = {
    "error_code": int(CLUSTER_DENIED),
    "error_message": MESSAGES[CLUSTER_DENIED],
}


def share_group_state(request: CheckedRequest) -> Steps[Ruling]:
    """Require CLUSTER_ACTION; a denial is returned per partition."""
    if request.access.may(CLUSTER_ACTION):
        return SERVED
    results = yield from failed_topics(
        request.body.topics,
        lambda topic: {"topic_id": topic.topic_id},
        lambda topic: (partition.partition for partition in topic.partitions),
        _DENIED,
        index_field="partition",
    )
    return Ruling({"results": results})
