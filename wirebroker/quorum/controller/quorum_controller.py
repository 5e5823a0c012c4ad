"""The active controller of a one-voter quorum: its log, state machine and engine.

A response waits until its records are on disk and published (engine.py, controller_log.py).

Source: Kafka's QuorumController, for a quorum of one voter (KIP-500).
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from wirebroker.authorization.acl_updates import follow_acls, unserved_protection
from wirebroker.base.addresses import java_host
from wirebroker.base.clock import Slices
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError, MalformedFrameError
from wirebroker.config.protection import asking_names, check_directory
from wirebroker.config.rows.releases import RELEASE_VERSION, RELEASES
from wirebroker.config.rows.row import StartError
from wirebroker.coordinator.controller.brokers.broker_registration import (
    controller_registration,
)
from wirebroker.coordinator.controller.controller import refusal
from wirebroker.coordinator.controller.controller_machine import ControllerMachine, SilentBroker
from wirebroker.coordinator.controller.features.feature_control import (
    activation_records,
    bootstrap_levels,
    check_features,
)
from wirebroker.coordinator.controller.image.cluster_image import (
    METADATA_VERSION,
    ClusterImage,
    ResourceType,
    to_records,
)
from wirebroker.coordinator.controller.image.image_builder import ImageBuilder
from wirebroker.coordinator.operation import ControllerResult
from wirebroker.engine.committed_responses import ResponseErrors
from wirebroker.engine.engine import Engine
from wirebroker.engine.waiter import AwaitedResponse
from wirebroker.quorum.controller.controller_log import ControllerLog
from wirebroker.quorum.controller.metadata_fetch import MetadataFetches
from wirebroker.quorum.controller.quorum_description import QuorumView, describe_quorum
from wirebroker.quorum.image.metadata_follower import MetadataFollower
from wirebroker.quorum.log.metadata_log import MetadataLog
from wirebroker.quorum.log.metadata_snapshot import (
    BOOTSTRAP_FILE,
    bootstrap_records,
    encode_bootstrap,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from wirebroker.base.clock import Clock
    from wirebroker.codecs.metadata_records import MetadataRecord
    from wirebroker.config import Config
    from wirebroker.coordinator.controller.controller import Controller
    from wirebroker.coordinator.controller.image.cluster_image import Endpoint
    from wirebroker.coordinator.controller.requests.request import ControllerRequest
    from wirebroker.coordinator.operation import Operation
    from wirebroker.coordinator.outcome import Moment
    from wirebroker.storage.files import Files

Response = TypeVar("Response")

LOGGER = logging.getLogger(__name__)

_ERRORS: Final = ResponseErrors(
    resigned=ErrorCode.NOT_CONTROLLER, disk=ErrorCode.KAFKA_STORAGE_ERROR
)


class QuorumController:
    """The only controller, created by `open` and used on one event loop.

    Attributes:
        authorization: The ACLs, or None if all is allowed.
        endpoints: Its addresses for other nodes.
    """

    __slots__ = (
        "_clock",
        "_engine",
        "_fencing",
        "authorization",
        "endpoints",
        "fetches",
        "follower",
        "log",
        "rules",
    )

    def __init__(
        self,
        stored: MetadataLog,
        image: ClusterImage,
        *,
        clock: Clock,
        rules: Controller,
        endpoints: Sequence[Endpoint],
    ) -> None:
        self.rules = rules
        self.endpoints = endpoints
        self.follower = MetadataFollower(clock, image)
        self.authorization = follow_acls(rules.config, self.follower)
        self.log = ControllerLog(stored, self.follower)
        self.fetches = MetadataFetches(
            self.log,
            clock=clock,
            node_id=rules.node_id,
            cluster_id=rules.cluster_id,
            endpoints=endpoints,
        )
        self._clock = clock
        self._fencing: set[asyncio.Task[None]] = set()
        machine = ControllerMachine(rules, self.log.lead(image), self.log.encode)
        self._engine = Engine(
            machine, self.log, clock, errors=_ERRORS, on_effect=self._begin_fencing
        )

    @property
    def clock(self) -> Clock:
        """The clock."""
        return self._clock

    @property
    def metadata(self) -> MetadataFollower:
        """The follower, under the name that brokers use."""
        return self.follower

    # Start and stop

    @classmethod
    async def open(
        cls,
        log_directory: str,
        *,
        files: Files,
        clock: Clock,
        rules: Controller,
        endpoints: Sequence[Endpoint] = (),
        first_users: Sequence[MetadataRecord] = (),
    ) -> QuorumController:
        """Read or create the log of a log directory and become its leader.

        `log_directory` is locked and formatted. `rules` have the configuration of this node.
        Followers learn the first of its `endpoints`. `first_users` are records for a new cluster.

        Raises:
            StartError: The log belongs to another cluster, was written by a newer version, or lacks
                records.
            OSError: The disk failed.
        """
        config, node_id = rules.config, rules.node_id
        log = MetadataLog(log_directory, files=files, clock=clock, config=config, node_id=node_id)
        bootstrap_path = f"{log_directory}/{BOOTSTRAP_FILE}"
        bootstrap: list[MetadataRecord] = []
        try:
            image = await log.load()
            check_features(image.features)
            if METADATA_VERSION not in image.features and files.exists(bootstrap_path):
                bootstrap = bootstrap_records(files.read_file(bootstrap_path))
                check_features(bootstrap_levels(bootstrap))
            elif METADATA_VERSION in image.features and log.is_unused:
                # Kafka 4.4's storage tool writes the feature levels to the first snapshot.
                bootstrap = list(to_records(image))
            if bootstrap or METADATA_VERSION not in image.features:
                bootstrap += first_users
            else:
                _warn_of_ignored(image, config, first_users)
            initial_image = ImageBuilder(image).apply_all(bootstrap).build(offset=0, epoch=0)[0]
            check_directory(
                (
                    *unserved_protection(initial_image, config),
                    *_protecting_configs(initial_image, node_id),
                ),
                log.directory,
                config,
            )
        except (KafkaError, MalformedFrameError) as error:
            raise StartError(
                f"the metadata log in {log.directory} cannot be read: {error}",
                "start the newer broker that wrote it, or restore it from a backup",
            ) from None
        # Until here the log was only read.
        is_new = log.is_unused and METADATA_VERSION not in image.features
        if is_new and not files.exists(bootstrap_path):
            level = RELEASES[config.str(RELEASE_VERSION)]
            files.write_file(bootstrap_path, encode_bootstrap(clock.now_ms(), level))
        controller = cls(log, image, clock=clock, rules=rules, endpoints=endpoints)
        await controller._activate(bootstrap)
        return controller

    async def _activate(self, bootstrap: list[MetadataRecord]) -> None:
        rules = self.rules
        self._engine.begin()
        first = partial(_first_records, bootstrap, rules.config)
        registration = controller_registration(rules.node_id, rules.new_uuid(), self.endpoints)
        # One sync for both.
        await asyncio.gather(
            self.submit(first),
            self.submit(partial(_write, [registration])),
        )

    async def close(self) -> None:
        """Finish what was submitted and close the files; may be repeated."""
        if self._engine.is_closed:
            return
        await self._engine.drain()
        await self.log.close()
        self._engine.close()
        await asyncio.gather(*self._fencing)

    # Requests

    async def handle(self, request: ControllerRequest) -> dict[str, Any]:
        """Carry out a request; return its response, also of an error."""
        try:
            return await self.carry_out(request)
        except KafkaError as error:
            return await Slices(self._clock).run(refusal(request, error))

    async def carry_out(self, request: ControllerRequest) -> dict[str, Any]:
        """Carry out a request, as far as a client is authorized.

        Raises:
            KafkaError: The whole request is refused, for example with NOT_CONTROLLER.
        """
        requester = request.requester
        if self.authorization is None or requester is None:
            return await self._carry_out(request)
        from wirebroker.authorization.controller_rules import rule_on  # noqa: PLC0415 - if asked for
        from wirebroker.authorization.ruling import CheckedRequest  # noqa: PLC0415 - likewise

        access = self.authorization.access_for(
            requester.principal, java_host(requester.host), request.key
        )
        client_request = CheckedRequest(access, self.follower.image, request.version, request.body)
        ruling = await Slices(self._clock).run(rule_on(request, client_request))
        if ruling.refusal is not None:
            return dict(ruling.refusal)
        answer = await self._carry_out(request)
        return dict(await Slices(self._clock).run(ruling.merged(answer)))

    async def _carry_out(self, request: ControllerRequest) -> dict[str, Any]:
        if request.key is ApiKey.DESCRIBE_QUORUM:
            return await Slices(self._clock).run(describe_quorum(request, self._quorum()))
        return await self.submit(self.rules.operation(request))

    async def submit(
        self, operation: Callable[[ClusterImage, Moment], Operation[Response]]
    ) -> Response:
        """Run an operation on the newest state; return its response once it is committed.

        Its records count even if the caller stops waiting.

        Raises:
            KafkaError: From the operation; KAFKA_STORAGE_ERROR if the disk fails; NOT_CONTROLLER if
                this node no longer leads.
        """
        waiter: AwaitedResponse[Response] = AwaitedResponse()
        await self._engine.run_in_steps(
            lambda machine, token, now: machine.decide(operation, token, now), waiter
        )
        return await waiter.future

    def _quorum(self) -> QuorumView:
        now_ms = self._clock.now_ms()
        return QuorumView(
            voter_id=self.rules.node_id,
            epoch=self.log.stored.epoch,
            end_offset=self.log.committed_offset,
            now_ms=now_ms,
            endpoints=self.endpoints,
            observers=self.fetches.observers.lately(now_ms),
        )

    # Silent brokers

    def _begin_fencing(self, _engine: object, silent: SilentBroker) -> None:
        task = asyncio.create_task(self._fence(silent), name=f"fence broker {silent.node_id}")
        self._fencing.add(task)
        task.add_done_callback(self._fencing.discard)

    async def _fence(self, silent: SilentBroker) -> None:
        node_id, broker_epoch = silent
        try:
            is_fenced = await self.submit(partial(self.rules.fence, node_id, broker_epoch))
        except KafkaError as error:
            LOGGER.warning("cannot fence broker %d: %s", node_id, error)
            return
        if is_fenced:
            LOGGER.warning("fenced broker %d: its session timed out", node_id)


def _protecting_configs(image: ClusterImage, node_id: int) -> tuple[str, ...]:
    cluster_wide = image.config(ResourceType.BROKER, "")
    return asking_names({**cluster_wide, **image.config(ResourceType.BROKER, str(node_id))})


def _warn_of_ignored(
    image: ClusterImage, config: Config, first_users: Sequence[MetadataRecord]
) -> None:
    if first_users:
        LOGGER.warning("the cluster is not new: ignoring the initial users")
    level, release = image.features[METADATA_VERSION], config.str(RELEASE_VERSION)
    if config.is_set(RELEASE_VERSION) and RELEASES[release] != level:
        LOGGER.warning(
            "the cluster is not new: it keeps metadata.version %d, and %s=%s has no effect; "
            "run `wirebroker features upgrade` to raise it",
            level,
            RELEASE_VERSION,
            release,
        )


def _first_records(
    bootstrap: list[MetadataRecord], config: Config, image: ClusterImage, now: Moment
) -> Operation[None]:
    del now
    yield
    records = activation_records(
        image,
        bootstrap=bootstrap,
        metadata_level=RELEASES[config.str(RELEASE_VERSION)],
        min_insync_replicas=config.int("min.insync.replicas"),
    )
    return ControllerResult(None, records)


def _write(records: list[MetadataRecord], image: ClusterImage, now: Moment) -> Operation[None]:
    del image, now
    yield
    return ControllerResult(None, records)
