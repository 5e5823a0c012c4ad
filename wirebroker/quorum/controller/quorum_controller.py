"""A controller of the quorum: a voter, and the active controller while it leads.

    RaftNode          elects the leader, replicates and commits the log
    ControllerTerms   runs the cluster's operations while this node leads

A response waits until its records are committed and published here (engine.py, controller_log.py).

Source: Kafka's QuorumController (KIP-500).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final, TypeVar

from wirebroker.authorization.acl_updates import follow_acls
from wirebroker.base.clock import Slices
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import KafkaError
from wirebroker.config.rows.row import StartError
from wirebroker.coordinator.controller.brokers.broker_registration import controller_registration
from wirebroker.coordinator.controller.controller import refusal
from wirebroker.quorum.controller.authorized_requests import carry_out_authorized
from wirebroker.quorum.controller.controller_reports import ControllerReports
from wirebroker.quorum.controller.controller_terms import ControllerTerms
from wirebroker.quorum.controller.first_records import NEWER, FirstRecords
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
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.coordinator.controller.requests.request import ControllerRequest
    from wirebroker.coordinator.operation import Operation
    from wirebroker.coordinator.outcome import Moment
    from wirebroker.quorum.controller.controller_term import ControllerTerm
    from wirebroker.quorum.controller.membership import Membership
    from wirebroker.quorum.raft.raft_figures import RaftFigures
    from wirebroker.quorum.raft.raft_node import RaftNode
    from wirebroker.storage.files import Files

Response = TypeVar("Response")

LOGGER = logging.getLogger(__name__)

# As in Kafka, which waits no longer for a successor.
_STOP_MS: Final = 5_000
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
    """

    __slots__ = (
        "_is_closed",
        "_is_open",
        "_membership",
        "_reports",
        "_terms",
        "_unusable",
        "authorization",
        "clock",
        "endpoints",
        "follower",
        "node",
        "registration",
        "rules",
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
        self._reports = reports
        self._unusable: str | None = None
        self._is_open = False
        self._is_closed = False
        self.clock = clock
        self._terms = ControllerTerms(
            rules, self.follower, clock, first=first, registration=self.registration
        )

    @property
    def metadata(self) -> MetadataFollower:
        """The follower, under the name that brokers use."""
        return self.follower

    @property
    def is_active(self) -> bool:
        """Whether this is the active controller."""
        return self._terms.is_active

    @property
    def term(self) -> ControllerTerm | None:
        """The current term, if this node leads."""
        return self._terms.term

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
        node = controller.node = controller._terms.node = await open_replica(
            log_directory,
            membership.identity(rules.node_id, rules.cluster_id),
            controller._surroundings(files, membership),
            settings=quorum_settings(rules.config),
            static_voters=membership.static_voters,
        )
        first.prepare(files, controller.follower.image, node, node_id=rules.node_id, clock=clock)
        controller.authorization = follow_acls(rules.config, controller.follower)
        if controller.authorization is not None:
            # The snapshot alone may lack ACLs. The only voter has applied its whole log.
            controller.authorization.is_loaded = node.is_only_voter
        try:
            await controller._terms.start()
        except BaseException:
            await controller.abandon()
            raise
        controller._check_usable()
        controller._is_open = True
        return controller

    def _surroundings(self, files: Files, membership: Membership) -> RaftSurroundings:
        return RaftSurroundings(
            files=files,
            clock=self.clock,
            random=membership.random,
            transport=membership.transport,
            follower=self.follower,
            config=self.rules.config,
            on_leadership=self._terms.leadership_changed,
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
        await self._terms.drain()
        await self.node.settle()
        await self.node.stop(timeout_ms=_STOP_MS)
        await self._terms.end()

    async def abandon(self) -> None:
        """End as after a kill, without resigning; may be repeated."""
        if self._is_closed:
            return
        self._is_closed = True
        await self.node.settle()
        await self.node.abandon()
        await self._terms.end()

    # The replica's reports

    def _records_were_applied(self) -> None:
        start_offset = self.node.leadership.start_offset
        is_complete = start_offset is not None and self.follower.image.offset > start_offset
        self.follower.kraft_version = self.node.kraft_version
        if self.authorization is not None and (is_complete or self.node.is_caught_up):
            self.authorization.is_loaded = True
        if self.term is not None:
            self._terms.notify()
        elif is_complete and not self.node.is_ended:
            self._terms.begin()
        self.node.look_for_snapshot(self.follower.image)

    def _cannot_apply(self, reason: str) -> None:
        self._unusable = reason
        self.node.resign(self.node.leadership.epoch)
        self._terms.fail_start(StartError(reason, NEWER))
        if self._is_open:
            self._reports.on_unusable(reason)

    def _check_usable(self) -> None:
        """Check that nothing has failed while it was opened.

        Raises:
            StartError: The disk has failed, or committed records cannot be applied.
        """
        if self._unusable is not None:
            raise StartError(self._unusable, NEWER)
        if self.node.failure is not None:
            raise StartError(self.node.failure, "check the disk of the metadata log")

    def _disk_failed(self, error: OSError) -> None:
        self._terms.fail_start(error)
        self._terms.notify()
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
            raise self._terms.not_active()  # before its term, it may lack ACLs
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
            raise self._terms.not_active()  # the broker looks for the active controller
        if request.key is ApiKey.DESCRIBE_QUORUM:
            return await describe_quorum(request, self.node, self.clock)
        if request.key in _OF_VOTERS:
            if request.key is ApiKey.ADD_RAFT_VOTER and self.node.kraft_version > 0:
                self._membership.check_may_grow()
            return await self.node.respond(request.key, request.version, request.body, listener="")
        return await self.submit(self.rules.operation(request))

    async def submit(
        self, operation: Callable[[ClusterImage, Moment], Operation[Response]]
    ) -> Response:
        """Run an operation on the newest state; return its response once it is committed.

        Raises:
            KafkaError: See ControllerTerms.submit.
        """
        return await self._terms.submit(operation)
