"""The gate of a broker in test mode, which records and disturbs clients' requests.

Requests of the kit, and those between nodes, are excluded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.request.request_admission import RequestAdmission
from wirebroker.testing.clients.internal_client import CLIENT_ID
from wirebroker.testing.faults.disturbance import Disturbance
from wirebroker.testing.settings.node_settings import NODES_LISTENER
from wirebroker.testing.test_mode.new_topics import answer_when_made

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from wirebroker.request.handlers import Handler
    from wirebroker.request.request import Piece, Request
    from wirebroker.testing.faults.fault_table import FaultTable
    from wirebroker.testing.requests.request_journal import RequestJournal


class RecordingAdmission:
    """A gate that passes each request to the journal and to matching faults.

    Attributes:
        gate: The broker's gate.
        broker: Set before the first request.
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
        """Record a request, and apply the first matching fault.

        Raises:
            CloseConnectionError: A fault closes the connection.
        """
        self.admission.epoch += 1  # invalidates prepared requests, which would bypass the gate
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
