"""The controller as a state machine, whose records are whole changes of the cluster.

The durable state is `image`, which includes uncommitted records, so that two concurrent requests
cannot both create a topic; quorum/image/metadata_follower.py has the committed state. The brokers'
sessions are soft state.

Source: Kafka's QuorumController.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from wirebroker.coordinator.controller.image.image_builder import ImageBuilder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from wirebroker.base.clock import Steps
    from wirebroker.codecs.metadata_records import MetadataRecord
    from wirebroker.coordinator.controller.controller import Controller
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.coordinator.controller.image.image_change import ImageChange
    from wirebroker.coordinator.operation import Operation
    from wirebroker.coordinator.outcome import Answer, Moment, Timers, Token

Response = TypeVar("Response")


class EncodedRecords(Protocol):
    """Records encoded for the end of the log."""

    @property
    def base_offset(self) -> int:
        """Offset of the first record."""
        ...

    @property
    def end_offset(self) -> int:
        """Offset after the last record."""
        ...


class ChangeLog(Protocol):
    """The log to which changes are appended.

    The quorum appends control records to it, which change nothing in the image.
    """

    @property
    def end_offset(self) -> int:
        """Offset after the last record."""
        ...

    def encode(self, records: list[MetadataRecord]) -> Steps[EncodedRecords]:
        """Encode records for the end of the log."""
        ...


class ClusterChange(NamedTuple):
    """The records of one operation, which are atomic."""

    encoded: Any  # by the log
    image: ClusterImage  # after it
    change: ImageChange  # from the image before it


class SilentBroker(NamedTuple):
    """Effect: fence a broker whose session is over."""

    node_id: int
    broker_epoch: int


@dataclass(slots=True)
class ControllerDecision:
    """A controller's `machine.Result`."""

    records: Sequence[ClusterChange] = ()
    answers: Sequence[Answer] = ()
    effects: Sequence[SilentBroker] = ()
    # The same for all decisions.
    on_failure: None = None
    is_atomic: bool = True
    producer: None = None


class ControllerMachine:
    """The controller in one term of its leadership.

    Attributes:
        image: The state after all appended records.
    """

    __slots__ = ("_log", "image", "rules")

    def __init__(self, rules: Controller, image: ClusterImage, log: ChangeLog) -> None:
        self.rules = rules
        self.image = image
        self._log = log

    @property
    def timers(self) -> Timers:
        """Ends of sessions; events are broker ids."""
        return self.rules.sessions.timers

    def decide(
        self,
        operation: Callable[[ClusterImage, Moment], Operation[Response]],
        token: Token,
        now: Moment,
    ) -> Steps[ControllerDecision]:
        """Run an operation on the newest image and apply its records to a copy, in steps.

        No other change may be applied before its result. If the quorum appended a control record
        meanwhile, the operation runs again, because records and responses contain offsets.

        Raises:
            KafkaError: From the operation.
        """
        while True:
            self._skip_control_records()
            result = yield from operation(self.image, now)
            if not result.records:
                return ControllerDecision((), [(token, result.response)])
            change = yield from self._change(result.records)
            if change.encoded.base_offset == self.image.offset == self._log.end_offset:
                return ControllerDecision([change], [(token, result.response)])

    def _skip_control_records(self) -> None:
        if self._log.end_offset > self.image.offset:
            self.image = replace(self.image, offset=self._log.end_offset)

    def _change(self, records: list[MetadataRecord]) -> Steps[ClusterChange]:
        builder = ImageBuilder(self.image)
        for record in records:
            builder.apply(record)
            yield
        encoded = yield from self._log.encode(records)
        epoch = self.image.epoch
        image, change = yield from builder.finish(offset=encoded.end_offset, epoch=epoch)
        return ClusterChange(encoded, image, change)

    def apply(self, records: Sequence[ClusterChange], producer_id: int) -> None:
        """Make the image of an appended change the newest."""
        del producer_id  # no producer's transactions here
        for change in records:
            assert change.image.offset > self.image.offset, "changes are applied in order"
            self.image = change.image

    def on_loaded(self, now: Moment) -> ControllerDecision:
        """Begin the sessions of serving brokers."""
        self.rules.sessions.begin(self.image, now.monotonic_ms)
        return ControllerDecision()

    def on_timer(self, event: Any, now: Moment) -> ControllerDecision:
        """Fence a silent broker by an effect, because that needs another operation."""
        if not self.rules.sessions.look_at(event, self.image, now.monotonic_ms):
            return ControllerDecision()
        return ControllerDecision(effects=[SilentBroker(event, self.image.brokers[event].epoch)])

    def on_unloaded(self) -> ControllerDecision:
        """Return no responses: all waiters wait for commits."""
        return ControllerDecision()
