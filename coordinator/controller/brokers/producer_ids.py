"""Producer ids: blocks from the controller, single ids from a block.

A restart takes a new block; the rest of the last one is lost (there are 2**63 ids).

Source: Kafka's ProducerIdControlManager and RPCProducerIdManager.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.metadata_records import RecordType, metadata_record
from wirebroker.coordinator.controller.brokers.broker_registration import check_broker_epoch
from wirebroker.coordinator.controller.requests.operations import declare_of_brokers
from wirebroker.coordinator.operation import ControllerResult

if TYPE_CHECKING:
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.coordinator.operation import Operation

BLOCK_SIZE = 1000
_LAST_ID = (1 << 63) - 1


class ProducerIdBlock(NamedTuple):
    """A range of producer ids."""

    first: int
    length: int


class ProducerIds:
    """The ids that this broker may assign."""

    __slots__ = ("_end", "_next")

    def __init__(self) -> None:
        # Unused ids: _next to _end - 1.
        self._next = 0
        self._end = 0

    @property
    def is_ready(self) -> bool:
        """Whether an id is available."""
        return self._next != self._end

    def take(self) -> int | None:
        """Return an unused id, if available."""
        if self._next == self._end:
            return None
        producer_id = self._next
        self._next += 1
        return producer_id

    def offer(self, block: ProducerIdBlock) -> None:
        """Use a committed block."""
        assert block.first >= self._end, "blocks are given out in rising order"
        self._next = block.first
        self._end = block.first + block.length


def allocate_producer_ids(request: Any, image: ClusterImage) -> Operation[dict[str, Any]]:
    """Allocate a broker's next block.

    Raises:
        KafkaError: STALE_BROKER_EPOCH; UNKNOWN_SERVER_ERROR: no block is left.
    """
    check_broker_epoch(image, request.broker_id, request.broker_epoch)
    first = image.next_producer_id
    if first > _LAST_ID - BLOCK_SIZE:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "All producer ids have been given out.")
    record = metadata_record(
        RecordType.PRODUCER_IDS,
        broker_id=request.broker_id,
        broker_epoch=request.broker_epoch,
        next_producer_id=first + BLOCK_SIZE,
    )
    yield
    response = {"producer_id_start": first, "producer_id_len": BLOCK_SIZE}
    return ControllerResult(response, [record])


declare_of_brokers(
    ApiKey.ALLOCATE_PRODUCER_IDS,
    lambda case: allocate_producer_ids(case.body, case.image),
    is_forwardable=True,
)
