"""The terms of a controller: each begins and ends with this node's leadership of the log.

Source: Kafka's QuorumController (claim, CompleteActivationEvent, renounce).
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.controller.brokers.broker_registration import controller_record
from wirebroker.coordinator.controller.controller_machine import ControllerMachine
from wirebroker.engine.engine import Engine
from wirebroker.quorum.controller.broker_fencing import BrokerFencing
from wirebroker.quorum.controller.controller_log import ControllerLog
from wirebroker.quorum.controller.controller_term import ERRORS, ControllerTerm
from wirebroker.quorum.controller.first_activation import FirstActivation
from wirebroker.quorum.controller.kraft_level import TermLevel

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from wirebroker.base.clock import Clock
    from wirebroker.coordinator.controller.controller import Controller
    from wirebroker.coordinator.controller.controller_machine import SilentBroker
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.coordinator.operation import Operation
    from wirebroker.coordinator.outcome import Moment
    from wirebroker.quorum.controller.first_records import FirstRecords
    from wirebroker.quorum.image.metadata_follower import MetadataFollower
    from wirebroker.quorum.raft.raft_actions import QuorumLeadership
    from wirebroker.quorum.raft.raft_node import RaftNode

Response = TypeVar("Response")

LOGGER = logging.getLogger(__name__)


class ControllerTerms:
    """The current term, its activation, and the operations that are submitted to it.

    Attributes:
        node: The replica of the metadata log; set before `start`.
        term: The current term, if this node leads.
    """

    __slots__ = (
        "_activations",
        "_clock",
        "_fencing",
        "_first_activation",
        "_first_records",
        "_follower",
        "_registration",
        "_rules",
        "node",
        "term",
    )

    node: RaftNode

    def __init__(
        self,
        rules: Controller,
        follower: MetadataFollower,
        clock: Clock,
        *,
        first: FirstRecords,
        registration: Mapping[str, Any],
    ) -> None:
        self._rules = rules
        self._follower = follower
        self._clock = clock
        self._first_records = first
        self._registration = registration
        self.term: ControllerTerm | None = None
        self._fencing = BrokerFencing(self._fence)
        self._activations: set[asyncio.Task[None]] = set()
        self._first_activation = FirstActivation()

    @property
    def is_active(self) -> bool:
        """Whether this is the active controller."""
        return self.term is not None and self.term.is_active

    async def start(self) -> None:
        """Start the replica; the only voter becomes active.

        Raises:
            Exception: The only voter cannot become active.
        """
        if self.node.is_only_voter:
            await self._first_activation.after(self.node.start)
        else:
            self.node.start()

    def fail_start(self, error: Exception) -> None:
        """Let `start` raise an error, if it is in progress."""
        self._first_activation.end(error)

    def notify(self) -> None:
        """Notify the current term that records were applied or the disk has failed."""
        if self.term is not None:
            self.term.log.notify()

    async def drain(self) -> None:
        """Wait until all submitted operations have ended."""
        if self.term is not None and not self.term.engine.is_closed:
            await self.term.engine.drain()

    async def end(self) -> None:
        """End the current term, and wait for its tasks."""
        term, self.term = self.term, None
        if term is not None:
            term.end()
        await asyncio.gather(*self._activations)
        await self._fencing.settle()

    def leadership_changed(self, leadership: QuorumLeadership) -> None:
        """End the term; another one begins when the first record of its epoch is applied."""
        if self.term is not None:
            LOGGER.info("this controller is no longer active: epoch %d", leadership.epoch)
            term, self.term = self.term, None
            term.end()
        if leadership.leader_id is not None and leadership.start_offset is None:
            LOGGER.info(
                "controller %d leads epoch %d of the metadata quorum",
                leadership.leader_id,
                leadership.epoch,
            )

    def begin(self) -> None:
        """Begin a term: the first record of the epoch that this node leads is applied."""
        epoch = self.node.leadership.epoch
        log = ControllerLog(self.node, self._follower, self._clock, epoch=epoch)
        machine = ControllerMachine(self._rules, self._follower.image, log)
        engine = Engine(machine, log, self._clock, errors=ERRORS, on_effect=self._fencing.begin)
        term = self.term = ControllerTerm(log, engine)
        self._rules.kraft = TermLevel(self.node, epoch)
        engine.begin()
        task = asyncio.create_task(self._try_to_activate(term), name="activate the controller")
        self._activations.add(task)
        task.add_done_callback(self._activations.discard)

    async def _try_to_activate(self, term: ControllerTerm) -> None:
        try:
            await self._activate(term)
        except Exception as error:  # after any error another controller must lead
            if not self._first_activation.end(error) and self.term is term:
                LOGGER.exception("this controller cannot become active and resigns")
                self.node.resign(term.log.epoch)
            return
        term.is_activated = True
        if not self._first_activation.end() and not self.node.is_only_voter:
            LOGGER.info("this controller is active in epoch %d", term.log.epoch)

    async def _activate(self, term: ControllerTerm) -> None:
        # One sync for both.
        await asyncio.gather(
            term.write(partial(self._first_records.of, is_unused=self.node.is_unused)),
            term.write(lambda _image: [controller_record(self._registration)]),
        )

    async def submit(
        self, operation: Callable[[ClusterImage, Moment], Operation[Response]]
    ) -> Response:
        """Run an operation on the newest state; return its response once it is committed.

        Its records count even if the caller stops waiting.

        Raises:
            KafkaError: From the operation; KAFKA_STORAGE_ERROR if the disk fails; NOT_CONTROLLER if
                this node does not lead, or no longer.
        """
        if self.node.failure is not None:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, self.node.failure)
        if self.term is None or not self.term.is_active:
            raise self.not_active()
        return await self.term.submit(operation)

    async def _fence(self, silent: SilentBroker) -> bool:
        return await self.submit(partial(self._rules.fence, silent.node_id, silent.broker_epoch))

    def not_active(self) -> KafkaError:
        """Return the error of a controller that is not active."""
        leader_id = self.node.leadership.leader_id
        known = "no active controller is known" if leader_id is None else f"it is {leader_id}"
        return KafkaError(
            ErrorCode.NOT_CONTROLLER,
            f"node {self._rules.node_id} is not the active controller: {known}",
        )
