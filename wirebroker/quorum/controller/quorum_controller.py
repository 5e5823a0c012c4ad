"""A controller of the quorum: a voter, and the active controller while it leads.

    RaftNode          elects the leader, replicates and commits the log
    ControllerTerm    runs the cluster's operations while this node leads

A response waits until its records are committed and published here (engine.py, controller_log.py).

Source: Kafka's QuorumController (KIP-500).
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from wirebroker.authorization.acl_updates import follow_acls
from wirebroker.base.clock import Slices
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError, MalformedFrameError
from wirebroker.config.rows.row import StartError
from wirebroker.coordinator.controller.brokers.broker_registration import (
    controller_record,
    controller_registration,
)
from wirebroker.coordinator.controller.controller import refusal
from wirebroker.coordinator.controller.controller_machine import ControllerMachine
from wirebroker.engine.engine import Engine
from wirebroker.quorum.controller.authorized_requests import carry_out_authorized
from wirebroker.quorum.controller.broker_fencing import BrokerFencing
from wirebroker.quorum.controller.controller_log import ControllerLog
from wirebroker.quorum.controller.controller_reports import ControllerReports
from wirebroker.quorum.controller.controller_term import ERRORS, ControllerTerm
from wirebroker.quorum.controller.first_activation import FirstActivation
from wirebroker.quorum.controller.first_records import FirstRecords
from wirebroker.quorum.controller.kraft_level import TermLevel
from wirebroker.quorum.controller.quorum_description import describe_quorum
from wirebroker.quorum.image.metadata_follower import MetadataFollower
from wirebroker.quorum.raft.quorum_settings import quorum_settings
from wirebroker.quorum.raft.raft_opening import RaftSurroundings, open_replica

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from wirebroker.authorization.access import Authorization
    from wirebroker.base.clock import Clock
    from wirebroker.codecs.metadata_records import MetadataRecord
    from wirebroker.coordinator.controller.controller import Controller
    from wirebroker.coordinator.controller.controller_machine import SilentBroker
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.coordinator.controller.requests.request import ControllerRequest
    from wirebroker.coordinator.operation import Operation
    from wirebroker.coordinator.outcome import Moment
    from wirebroker.quorum.controller.membership import Membership
    from wirebroker.quorum.raft.raft_actions import QuorumLeadership
    from wirebroker.quorum.raft.raft_figures import RaftFigures
    from wirebroker.quorum.raft.raft_node import RaftNode
    from wirebroker.storage.files import Files

Response = TypeVar("Response")

LOGGER = logging.getLogger(__name__)

# As in Kafka, which waits no longer for a successor.
_STOP_MS: Final = 5_000
_NEWER: Final = "start the newer broker that wrote it, or restore it from a backup"
_NO_REPORTS: Final = ControllerReports()
_OF_VOTERS: Final = frozenset({ApiKey.ADD_RAFT_VOTER, ApiKey.REMOVE_RAFT_VOTER})
# The replica responds, also of an inactive controller.
_FOR_ANY_CONTROLLER: Final = _OF_VOTERS | {ApiKey.DESCRIBE_QUORUM}


class QuorumController:
    """A controller, created by `open` and used on one event loop.

    Attributes:
        authorization: The ACLs, or None if all is allowed.
        endpoints: Its addresses for other nodes.
        node: Its replica of the metadata log.
        registration: The fields by which this process registers as a controller.
        term: The present term, if this node leads.
    """

    __slots__ = (
        "_activations",
        "_fencing",
        "_first_activation",
        "_first_records",
        "_is_closed",
        "_is_open",
        "_membership",
        "_reports",
        "_unusable",
        "authorization",
        "clock",
        "endpoints",
        "follower",
        "node",
        "registration",
        "rules",
        "term",
    )

    # Set by `open`.
    authorization: Authorization | None
    node: RaftNode

    def __init__(
        self,
        membership: Membership,
        *,
        clock: Clock,
        rules: Controller,
        first: FirstRecords,
        reports: ControllerReports,
    ) -> None:
        self.rules = rules
        self.endpoints = endpoints = membership.endpoints
        self._membership = membership
        self.registration = controller_registration(rules.node_id, rules.new_uuid(), endpoints)
        self.follower = MetadataFollower(clock)
        self.term: ControllerTerm | None = None
        self._reports = reports
        self._unusable: str | None = None
        self._first_records = first
        self._is_open = False
        self._is_closed = False
        self.clock = clock
        self._fencing = BrokerFencing(self._fence)
        self._activations: set[asyncio.Task[None]] = set()
        self._first_activation = FirstActivation()

    @property
    def metadata(self) -> MetadataFollower:
        """The follower, under the name that brokers use."""
        return self.follower

    @property
    def is_active(self) -> bool:
        """Whether this is the active controller."""
        return self.term is not None and self.term.is_active

    def figures(self) -> RaftFigures:
        """Return the figures of its replica of the metadata log."""
        return self.node.figures()

    # Start and stop

    @classmethod
    async def open(
        cls,
        log_directory: str,
        *,
        files: Files,
        clock: Clock,
        rules: Controller,
        membership: Membership,
        first_users: Sequence[MetadataRecord] = (),
        reports: ControllerReports = _NO_REPORTS,
    ) -> QuorumController:
        """Read or create the log of a log directory; the only voter becomes active.

        `log_directory` is locked and formatted. `rules` have the configuration of this node.
        `first_users` are records for a new cluster. What fails later is reported.

        Raises:
            StartError: The log belongs to another cluster, was written by a newer version, lacks
                records, or contains some that cannot be applied.
            KafkaError: The first records cannot be written.
            OSError: The disk failed.
        """
        first = FirstRecords(log_directory, rules.config, first_users)
        controller = cls(membership, clock=clock, rules=rules, first=first, reports=reports)
        node = controller.node = await open_replica(
            log_directory,
            membership.identity(rules.node_id, rules.cluster_id),
            controller._surroundings(files, membership),
            settings=quorum_settings(rules.config),
            static_voters=membership.static_voters,
        )
        image, is_unused = controller.follower.image, node.is_unused
        try:
            first.read(files)
            first.check(image, is_unused=is_unused, node_id=rules.node_id, home=node.directory)
        except (KafkaError, MalformedFrameError) as error:
            raise StartError(
                f"the metadata log in {node.directory} cannot be read: {error}", _NEWER
            ) from None
        # Until here the log was only read.
        first.store(files, image, is_unused=is_unused, now_ms=clock.now_ms())
        controller.authorization = follow_acls(rules.config, controller.follower)
        if controller.authorization is not None:
            # The snapshot alone may lack ACLs. The only voter has applied its whole log.
            controller.authorization.is_loaded = node.is_only_voter
        await controller._start()
        controller._check_usable()
        controller._is_open = True
        return controller

    async def _start(self) -> None:
        try:
            if self.node.is_only_voter:
                await self._first_activation.after(self.node.start)
            else:
                self.node.start()
        except BaseException:
            await self.abandon()
            raise

    def _surroundings(self, files: Files, membership: Membership) -> RaftSurroundings:
        return RaftSurroundings(
            files=files,
            clock=self.clock,
            random=membership.random,
            transport=membership.transport,
            follower=self.follower,
            config=self.rules.config,
            on_leadership=self._leadership_changed,
            on_applied=self._records_were_applied,
            on_unusable=self._cannot_apply,
            on_disk_failure=self._disk_failed,
            on_voters=self._reports.on_voters,
        )

    def allow_snapshots(self) -> None:
        """Begin snapshots when they are due, after a start that postponed them."""
        self.node.snapshots.is_held = False
        self.node.look_for_snapshot(self.follower.image)

    async def close(self) -> None:
        """Finish what was submitted, resign, and close the files; may be repeated."""
        if self._is_closed:
            return
        self._is_closed = True
        if self.term is not None and not self.term.engine.is_closed:
            await self.term.engine.drain()
        await self.node.settle()
        await self.node.stop(timeout_ms=_STOP_MS)
        await self._end()

    async def abandon(self) -> None:
        """End as after a kill, without resigning; may be repeated."""
        if self._is_closed:
            return
        self._is_closed = True
        await self.node.settle()
        await self.node.abandon()
        await self._end()

    async def _end(self) -> None:
        term, self.term = self.term, None
        if term is not None:
            term.end()
        await asyncio.gather(*self._activations)
        await self._fencing.settle()

    # The replica's reports

    def _leadership_changed(self, leadership: QuorumLeadership) -> None:
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

    def _records_were_applied(self) -> None:
        start_offset = self.node.leadership.start_offset
        is_complete = start_offset is not None and self.follower.image.offset > start_offset
        self.follower.kraft_version = self.node.kraft_version
        if is_complete or self.node.is_caught_up:
            self._use_loaded_acls()
        if self.term is not None:
            self.term.log.notify()
        elif is_complete and not self.node.is_ended:
            self._begin_term()
        self.node.look_for_snapshot(self.follower.image)

    def _use_loaded_acls(self) -> None:
        if self.authorization is not None:
            self.authorization.is_loaded = True

    def _begin_term(self) -> None:
        epoch = self.node.leadership.epoch
        log = ControllerLog(self.node, self.follower, self.clock, epoch=epoch)
        machine = ControllerMachine(self.rules, self.follower.image, log)
        engine = Engine(machine, log, self.clock, errors=ERRORS, on_effect=self._fencing.begin)
        term = self.term = ControllerTerm(log, engine)
        self.rules.kraft = TermLevel(self.node, epoch)
        engine.begin()
        task = asyncio.create_task(self._try_to_activate(term), name="activate the controller")
        self._activations.add(task)
        task.add_done_callback(self._activations.discard)

    async def _try_to_activate(self, term: ControllerTerm) -> None:
        try:
            await self._activate(term)
        except Exception as error:  # whatever it is, another controller must lead
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
            term.write(lambda _image: [controller_record(self.registration)]),
        )

    def _cannot_apply(self, reason: str) -> None:
        self._unusable = reason
        self.node.resign(self.node.leadership.epoch)
        self._first_activation.end(StartError(reason, _NEWER))
        if self._is_open:
            self._reports.on_unusable(reason)

    def _check_usable(self) -> None:
        """Check that nothing has failed while it was opened.

        Raises:
            StartError: The disk has failed, or committed records cannot be applied.
        """
        if self._unusable is not None:
            raise StartError(self._unusable, _NEWER)
        if self.node.failure is not None:
            raise StartError(self.node.failure, "check the disk of the metadata log")

    def _disk_failed(self, error: OSError) -> None:
        self._first_activation.end(error)
        if self.term is not None:
            self.term.log.notify()
        if self._is_open:
            self._reports.on_disk_failure(self.node.directory, error)

    # Requests

    async def handle(self, request: ControllerRequest) -> dict[str, Any]:
        """Carry out a request; return its response, also of an error."""
        try:
            return await self.carry_out(request)
        except KafkaError as error:
            return await Slices(self.clock).run(refusal(request, error))

    async def carry_out(self, request: ControllerRequest) -> dict[str, Any]:
        """Carry out a request, as far as a client is authorized.

        Raises:
            KafkaError: The whole request is refused, for example with NOT_CONTROLLER.
        """
        if self.authorization is None or request.requester is None:
            return await self._carry_out(request)
        if not self.authorization.is_loaded and request.key not in _FOR_ANY_CONTROLLER:
            raise self._not_active()  # before its term, it may lack ACLs
        return await carry_out_authorized(
            request,
            request.requester,
            self.authorization,
            self.follower.image,
            clock=self.clock,
            carry_out=self._carry_out,
        )

    async def _carry_out(self, request: ControllerRequest) -> dict[str, Any]:
        if not self.is_active and not request.is_direct:
            raise self._not_active()  # the broker looks for the active controller
        if request.key is ApiKey.DESCRIBE_QUORUM:
            return await describe_quorum(request, self.node, self.clock)
        if request.key in _OF_VOTERS:
            is_addition = request.key is ApiKey.ADD_RAFT_VOTER and self.node.kraft_version > 0
            if is_addition:
                self._membership.check_may_grow()
            return await self.node.respond(request.key, request.version, request.body, listener="")
        return await self.submit(self.rules.operation(request))

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
            raise self._not_active()
        return await self.term.submit(operation)

    async def _fence(self, silent: SilentBroker) -> bool:
        return await self.submit(partial(self.rules.fence, silent.node_id, silent.broker_epoch))

    def _not_active(self) -> KafkaError:
        leader_id = self.node.leadership.leader_id
        known = "no active controller is known" if leader_id is None else f"it is {leader_id}"
        return KafkaError(
            ErrorCode.NOT_CONTROLLER,
            f"node {self.rules.node_id} is not the active controller: {known}",
        )
