"""One term in which this node is the active controller.

A term begins when this node leads and has applied the first record of its epoch: its image then
contains everything that earlier leaders committed. It serves when its first records are committed,
and ends with the leadership.

Source: Kafka's QuorumController (claim, CompleteActivationEvent, renounce).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.operation import ControllerResult
from wirebroker.engine.committed_responses import ResponseErrors
from wirebroker.engine.waiter import AwaitedResponse

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.codecs.metadata_records import MetadataRecord
    from wirebroker.coordinator.controller.controller_machine import ControllerMachine
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.coordinator.operation import Operation
    from wirebroker.coordinator.outcome import Moment
    from wirebroker.engine.engine import Engine
    from wirebroker.quorum.controller.controller_log import ControllerLog

Response = TypeVar("Response")

ERRORS: Final = ResponseErrors(
    resigned=ErrorCode.NOT_CONTROLLER, disk=ErrorCode.KAFKA_STORAGE_ERROR
)


@dataclass(slots=True)
class ControllerTerm:
    """The engine of one term and its log.

    Attributes:
        is_activated: Whether its first records are committed, so that it serves.
    """

    log: ControllerLog
    engine: Engine[ControllerMachine]
    is_activated: bool = False

    @property
    def is_active(self) -> bool:
        """Whether it serves requests."""
        return self.is_activated and not self.engine.is_closed

    async def submit(
        self, operation: Callable[[ClusterImage, Moment], Operation[Response]]
    ) -> Response:
        """Run an operation; see QuorumController.submit."""
        waiter: AwaitedResponse[Response] = AwaitedResponse()
        await self.engine.run_in_steps(
            lambda machine, token, now: machine.decide(operation, token, now), waiter
        )
        return await waiter.future

    async def write(self, records_of: Callable[[ClusterImage], list[MetadataRecord]]) -> None:
        """Write the records that are returned for the newest image."""

        def operation(image: ClusterImage, _now: Moment) -> Operation[None]:
            yield
            return ControllerResult(None, records_of(image))

        await self.submit(operation)

    def end(self) -> None:
        """Fail what waits with NOT_CONTROLLER; may be repeated."""
        if not self.engine.is_closed:
            self.engine.close()
