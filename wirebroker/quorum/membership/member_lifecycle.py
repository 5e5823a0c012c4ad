"""This broker's membership in a cluster whose controllers are elsewhere.

Heartbeats in a thread (heartbeats.py) request unfencing and shutdown, and report offline and
cordoned directories. If one is refused for its old epoch, this incarnation registers again. If
another incarnation is registered by then, another process has this node id, and this one must end:
`on_replaced` is called.

Source: Kafka's BrokerLifecycleManager (KIP-631; KIP-858 for the directories).
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from wirebroker.base.clock import pause
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.config.rows.row import StartError
from wirebroker.disks.data_directory import offline_ids
from wirebroker.net.client.errors import (
    AuthenticationFailedError,
    PeerError,
    RequestTimedOutError,
    UnsupportedVersionError,
    error_name,
)
from wirebroker.net.client.failures import FailureLines
from wirebroker.quorum.channel.broker_lifecycle import BrokerLifecycle
from wirebroker.quorum.membership.heartbeats import Heartbeats

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from wirebroker.base.clock import Clock
    from wirebroker.coordinator.controller.image.cluster_image import Endpoint
    from wirebroker.net.client.active_controller import ActiveController
    from wirebroker.quorum.channel.controller_channel import ControllerChannel
    from wirebroker.quorum.image.metadata_follower import MetadataFollower

LOGGER = logging.getLogger(__name__)

# The interval while unfencing or shutting down.
_WHILE_AWAITED_S: Final = 0.1
_REGISTER_AGAIN_S: Final = 0.5
# As in Kafka.
_SHUTDOWN_S: Final = 300.0

# Retriable errors of a registration.
_PASSING: Final = frozenset(
    {
        ErrorCode.DUPLICATE_BROKER_REGISTRATION,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NETWORK_EXCEPTION,
    }
)


class NodeIdTakenError(StartError):
    """A live broker or a voter of the cluster has this node id."""


class Pace(NamedTuple):
    """Intervals and timeouts of a member, in seconds.

    Attributes:
        heartbeat_s: broker.heartbeat.interval.ms.
        session_s: broker.session.timeout.ms; a silent broker is fenced after it.
        registration_s: initial.broker.registration.timeout.ms.
        duplicate_s: How long to wait for the end of a broker with the same id, perhaps this one's
            earlier incarnation.
    """

    heartbeat_s: float
    session_s: float
    registration_s: float
    duplicate_s: float


class MemberLifecycle(BrokerLifecycle):
    """One incarnation of this broker, under controllers elsewhere.

    Attributes:
        is_fenced: According to the last response.
    """

    __slots__ = (
        "_changed",
        "_clock",
        "_has_leader",
        "_heartbeats",
        "_last_answer_at",
        "_lines",
        "_make_controllers",
        "_on_replaced",
        "_pace",
        "_registering",
        "_should_shut_down",
        "_wants",
        "is_fenced",
    )

    def __init__(
        self,
        channel: ControllerChannel,
        metadata: MetadataFollower,
        *,
        node_id: int,
        clock: Clock,
        pace: Pace,
        make_controllers: Callable[[], ActiveController],
        on_replaced: Callable[[str], None],
        has_leader: Callable[[], bool],
    ) -> None:
        """`has_leader` returns whether the leader of the quorum responds to this node."""
        super().__init__(channel, metadata, node_id=node_id)
        self._has_leader = has_leader
        self._clock = clock
        self._pace = pace
        self._make_controllers = make_controllers
        self._on_replaced = on_replaced
        self._registering: asyncio.Task[None] | None = None
        self._heartbeats: Heartbeats | None = None
        self._wants = {"want_fence": True, "want_shut_down": False}
        self._changed = asyncio.Event()
        self._should_shut_down = False
        self._lines = FailureLines(
            LOGGER, "a controller accepts heartbeats again", level=logging.WARNING
        )
        self._last_answer_at = clock.monotonic()
        self.is_fenced = True

    async def register(
        self,
        *,
        cluster_id: str,
        endpoints: Sequence[Endpoint],
        log_directories: Sequence[bytes],
        rack: str | None = None,
        previous_broker_epoch: int = -1,
    ) -> None:
        """Register as fenced and start heartbeats.

        Raises:
            StartError: The controllers refuse or do not respond in time; NodeIdTakenError.
        """
        started = self._clock.monotonic()
        has_logged = False
        while True:
            try:
                await super().register(
                    cluster_id=cluster_id,
                    endpoints=endpoints,
                    log_directories=log_directories,
                    rack=rack,
                    previous_broker_epoch=previous_broker_epoch,
                )
                break
            except KafkaError as error:
                is_duplicate = error.code is ErrorCode.DUPLICATE_BROKER_REGISTRATION
                patience_s = self._pace.duplicate_s if is_duplicate else self._pace.registration_s
                if error.code not in _PASSING or self._clock.monotonic() >= started + patience_s:
                    raise self._refusal(error) from error
                if is_duplicate and not has_logged:
                    has_logged = True
                    LOGGER.info(
                        "broker %d is still registered: waiting until its old session ends",
                        self.node_id,
                    )
            await pause(_REGISTER_AGAIN_S)
        self._last_answer_at = self._clock.monotonic()
        self._heartbeats = Heartbeats(
            self._make_controllers,
            question=self._question,
            on_answer=self._take,
            interval_s=self._interval_s,
            most_s=self._pace.heartbeat_s,
            timeout_s=self._pace.session_s / 2,
        )
        self._heartbeats.start()

    def send_now(self) -> None:
        """Report local changes to the controllers immediately."""
        if self._heartbeats is not None:
            self._heartbeats.send_now()

    async def unfence(self) -> None:
        """Request unfencing and wait until this broker may serve."""
        self._want(want_fence=False)
        while self.is_fenced:
            await self._next_answer()

    async def shut_down(self) -> None:
        """Wait until this broker leads nothing and is fenced.

        Raises:
            KafkaError: REQUEST_TIMED_OUT: the controllers do not respond, or do not allow it.
        """
        self._want(want_shut_down=True)
        started = self._clock.monotonic()
        while not self._should_shut_down:
            now = self._clock.monotonic()
            silent_s = now - max(self._last_answer_at, started)
            if silent_s > self._pace.session_s or now - started > _SHUTDOWN_S:
                raise KafkaError(
                    ErrorCode.REQUEST_TIMED_OUT, "the controllers did not approve the shutdown"
                )
            try:
                async with asyncio.timeout(self._pace.session_s):
                    await self._next_answer()
            except TimeoutError:
                continue

    async def close(self) -> None:
        """Stop the heartbeats."""
        if self._registering is not None:
            self._registering.cancel()
        if self._heartbeats is not None:
            await self._heartbeats.stop()

    # Heartbeats

    def _want(self, **wants: bool) -> None:
        self._wants = {**self._wants, **wants}
        self.send_now()

    async def _next_answer(self) -> None:
        self._changed.clear()
        await self._changed.wait()

    def _question(self) -> dict[str, Any]:
        """Return a heartbeat's body; called in the heartbeats' thread."""
        offline = offline_ids(self._directories)
        return {
            "broker_id": self.node_id,
            "broker_epoch": self.broker_epoch,
            "current_metadata_offset": self._metadata.image.offset - 1,
            **self._wants,
            **({"offline_log_dirs": offline} if offline else {}),
            **self._cordoned(),
        }

    def _interval_s(self) -> float:
        """Return the time to the next heartbeat; called in the heartbeats' thread."""
        wants = self._wants
        is_awaited = not wants["want_fence"] and (self.is_fenced or wants["want_shut_down"])
        return (
            min(_WHILE_AWAITED_S, self._pace.heartbeat_s)
            if is_awaited
            else (self._pace.heartbeat_s)
        )

    def _take(self, answer: Any) -> None:
        if isinstance(answer, PeerError):
            # A quorum without a leader has its own log line (raft/leader_watch.py). A refusal is
            # logged also then: a node that may not fetch never knows the leader.
            is_denied = isinstance(answer, RequestTimedOutError) and answer.is_denied
            is_refused = is_denied or isinstance(
                answer, (AuthenticationFailedError, UnsupportedVersionError)
            )
            if self._has_leader() or is_refused:
                kind = "denied" if is_denied else type(answer).__name__
                self._lines.add(kind, f"a heartbeat failed, retrying: {answer}")
        elif answer.error_code == ErrorCode.STALE_BROKER_EPOCH:
            self._register_again()
        elif answer.error_code:
            name = error_name(answer.error_code)
            self._lines.add(name, f"a heartbeat was rejected with {name}, retrying")
        else:
            self._lines.end()
            self._last_answer_at = self._clock.monotonic()
            self._note_fenced(is_fenced=answer.is_fenced)
            self._should_shut_down = answer.should_shut_down
        self._changed.set()

    def _note_fenced(self, *, is_fenced: bool) -> None:
        if is_fenced and not self.is_fenced and not self._wants["want_shut_down"]:
            LOGGER.warning("broker %d was fenced: requesting to be unfenced", self.node_id)
        self.is_fenced = is_fenced

    # Registering again

    def _register_again(self) -> None:
        if self._registering is None and not self._wants["want_shut_down"]:
            self._registering = asyncio.create_task(self._return(), name="register again")

    async def _return(self) -> None:
        try:
            await self.register_again()
            LOGGER.warning("broker %d was unregistered: registered it again", self.node_id)
        except KafkaError as error:
            if error.code is ErrorCode.DUPLICATE_BROKER_REGISTRATION:
                self._on_replaced(
                    f"another process has registered as broker {self.node_id}: this one stops"
                )
            else:
                # The next heartbeat retries this.
                LOGGER.warning("cannot register again: %s", error.message or error.code.name)
        finally:
            self._registering = None

    def _refusal(self, error: KafkaError) -> StartError:
        reason = error.message or error.code.name
        if error.code is ErrorCode.DUPLICATE_BROKER_REGISTRATION:
            return NodeIdTakenError(
                f"the cluster has a live broker {self.node_id}",
                "choose another node.id (--node-id N)",
            )
        if error.code in _PASSING:
            waited_s = self._pace.registration_s
            return StartError(
                f"no controller has registered this broker within {waited_s:g} s: {reason}",
                "check controller.quorum.bootstrap.servers, and that the controllers run",
            )
        return StartError(
            f"the cluster refuses broker {self.node_id}: {error.code.name}: {reason}",
            "see docs/cluster.md for the requirements",
        )
