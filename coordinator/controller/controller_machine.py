"""The controller as a machine over a log: its records are whole changes of the cluster.

    decide(operation, ...)   the rules' operation on the newest image, in steps;
                             what it writes is applied to a copy and encoded, in steps too
    take_over(changes)       the copy becomes the newest image

Durable is `image`, which shows what is appended, so that two requests that come together cannot
both create a topic; what is committed others show (quorum/image/metadata_follower.py). Soft are the
brokers' sessions, whose ends are the machine's timers. Who has to be fenced is an effect: it takes
an operation of its own, in steps.

Source: Kafka's QuorumController.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from wirebroker.coordinator.controller.image.image_builder import ImageBuilder
from wirebroker.coordinator.outcome import Answer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from wirebroker.base.clock import Steps
    from wirebroker.codecs.metadata_records import MetadataRecord
    from wirebroker.coordinator.controller.controller import Controller
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.coordinator.controller.image.image_change import ImageChange
    from wirebroker.coordinator.operation import Operation
    from wirebroker.coordinator.outcome import Moment, Timers, Token

Response = TypeVar("Response")


class EncodedRecords(Protocol):
    """Records as the log takes them, behind what it holds already."""

    @property
    def end_offset(self) -> int:
        """The offset after the last of them."""
        ...


class ClusterChange(NamedTuple):
    """What one operation writes, which counts as a whole or not at all."""

    encoded: Any  # as the log has encoded it
    image: ClusterImage  # after it
    change: ImageChange  # from the image before it


class SilentBroker(NamedTuple):
    """Effect: fence a broker that was not heard of for too long."""

    node_id: int
    broker_epoch: int


@dataclass(slots=True)
class ControllerDecision:
    """What comes of one request or timer: see coordinator/machine.py."""

    records: Sequence[ClusterChange] = ()
    answers: Sequence[Answer] = ()
    effects: Sequence[SilentBroker] = ()
    # As it is with every decision: no soft state changes with it, it counts as a whole.
    on_failure: None = None
    is_atomic: bool = True
    producer: None = None


class ControllerMachine:
    """The controller in one term of its leadership.

    Attributes:
        rules: What its requests do.
        image: Of everything that is appended.
    """

    __slots__ = ("_encode", "image", "rules")

    def __init__(
        self,
        rules: Controller,
        image: ClusterImage,
        encode: Callable[[list[MetadataRecord]], Steps[EncodedRecords]],
    ) -> None:
        """Begin a term.

        Args:
            rules: The rules.
            image: Of the whole log, with the records that begin the term.
            encode: Encodes records that come next in the log, in steps.
        """
        self.rules = rules
        self.image = image
        self._encode = encode

    @property
    def timers(self) -> Timers:
        """Ends of sessions; an event is the id of a broker."""
        return self.rules.sessions.timers

    def decide(
        self,
        operation: Callable[[ClusterImage, Moment], Operation[Response]],
        token: Token,
        moment: Moment,
    ) -> Steps[ControllerDecision]:
        """Run an operation on the newest image, and make a change of what it writes.

        Nothing else may be taken over before what comes of it.

        Args:
            operation: Of an image and the time.
            token: Who is answered.
            moment: Now.

        Raises:
            KafkaError: By the operation.
        """
        result = yield from operation(self.image, moment)
        changes: list[ClusterChange] = []
        if result.records:
            changes.append((yield from self._change(result.records)))
        return ControllerDecision(changes, [Answer(token, result.response)])

    def _change(self, records: list[MetadataRecord]) -> Steps[ClusterChange]:
        builder = ImageBuilder(self.image)
        for record in records:
            builder.apply(record)
            yield
        encoded = yield from self._encode(records)
        epoch = self.image.epoch
        image, change = yield from builder.finish(offset=encoded.end_offset, epoch=epoch)
        return ClusterChange(encoded, image, change)

    def take_over(self, records: Sequence[ClusterChange], producer_id: int) -> None:
        """Make the image of a change that was just appended the newest."""
        del producer_id  # nobody writes here in a producer's transaction
        for each in records:
            assert each.image.offset > self.image.offset, "changes are taken over in their order"
            self.image = each.image

    def on_loaded(self, moment: Moment) -> ControllerDecision:
        """Begin to lead: brokers that serve are heard of from now on."""
        self.rules.sessions.begin(self.image, moment.monotonic_ms)
        return ControllerDecision()

    def on_timer(self, event: Any, moment: Moment) -> ControllerDecision:
        """Look at a broker's session that is over."""
        if not self.rules.sessions.look_at(event, self.image, moment.monotonic_ms):
            return ControllerDecision()
        return ControllerDecision(effects=[SilentBroker(event, self.image.brokers[event].epoch)])

    def on_unloaded(self) -> ControllerDecision:
        """Nobody waits in a controller but for records to be committed."""
        return ControllerDecision()
