"""The admission of requests in test mode."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.hot.metadata import parse_metadata
from wirebroker.request.request_admission import RequestAdmission
from wirebroker.testing.clients.internal_client import CLIENT_ID
from wirebroker.testing.faults.disturbance import Disturbance
from wirebroker.testing.settings.node_settings import NODES_LISTENER

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from wirebroker.request.handlers import Handler
    from wirebroker.request.request import Piece, Request
    from wirebroker.testing.faults.fault_table import FaultTable
    from wirebroker.testing.requests.request_journal import RequestJournal


class RecordingAdmission:
    """The admission that records and disturbs clients' requests, but not the kit's or nodes'.

    `broker` is set before the first request.
    """

    __slots__ = ("_faults", "_journal", "admission", "broker")

    def __init__(self, journal: RequestJournal, faults: FaultTable) -> None:
        self.admission = RequestAdmission(self._decide)
        self.broker: Any = None
        self._faults = faults
        self._journal = journal

    def _decide(
        self, request: Request, handler: Handler
    ) -> list[Piece] | Awaitable[list[Piece] | None] | None:
        """Record a request, and apply the first matching fault."""
        self.admission.epoch += 1  # prepared requests would bypass this
        if request.session.listener_name == NODES_LISTENER:
            return None
        if request.client_id == CLIENT_ID:
            return answer_when_made(self.broker, request, handler)
        self._journal.learn(self.broker.metadata.image.topics_by_id)
        self._journal.add(request)
        faults = self._faults.concerning(request.key, request.client_id) if self._faults else []
        if not faults:
            return answer_when_made(self.broker, request, handler)
        disturbance = Disturbance(self.broker, request, handler)
        for fault in faults:
            if disturbance.needs_names(fault):
                return disturbance.without_session()
            if fault.topic is None or disturbance.names(fault.topic):
                fault.act()
                return disturbance.by(fault, self._faults)
        return answer_when_made(self.broker, request, handler)


# A Metadata response waits for the topics that the request creates.

# Clients have to retry longer requests, as with Kafka.
_LONGEST_BYTES: Final = 16 << 10
# Then Kafka's response is sent: the disk may be full, or there is no controller.
_PATIENCE_S: Final = 1.0


def answer_when_made(
    broker: Any, request: Request, handler: Handler
) -> Awaitable[list[Piece] | None] | None:
    """Return the response to a request that creates topics; None for others."""
    if request.key != ApiKey.METADATA:
        return None
    if len(request.frame) > _LONGEST_BYTES or not broker.config.bool("auto.create.topics.enable"):
        return None
    parsed = parse_metadata(request.frame, request.position, request.version)
    existing = broker.metadata.image.topics
    if not parsed.allow_auto_topic_creation or all(
        name is None or name in existing for _, name in parsed.topics or ()
    ):
        return None
    request.keep()
    return _served(broker, Disturbance(broker, request, handler))


async def _served(broker: Any, disturbance: Disturbance) -> list[Piece] | None:
    answer = await disturbance.served()
    if await broker.auto_creation.until_made(timeout_s=_PATIENCE_S):
        answer = await disturbance.served()
    return answer
