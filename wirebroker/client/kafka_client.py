"""A client of one cluster: any broker, a given one, the controller, a coordinator.

    async with KafkaClient(addresses, timeout_s=30, …) as client:
        answer = await client.request(ApiKey.LIST_GROUPS, {})
        metadata = await client.metadata(["orders"])

`at_most` limits the version, for example where later versions name topics by id.
"""

from __future__ import annotations

import asyncio
from copy import copy
from typing import TYPE_CHECKING, Any, Final

from wirebroker.base.clock import pause
from wirebroker.client.cluster_nodes import CONTROLLERS, describe_cluster
from wirebroker.client.errors import (
    FLAG_NAMES,
    PASSING,
    ClientError,
    FlagNames,
    NoResponseError,
    TooLongError,
    UnservedError,
    explained,
)
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import without_frames
from wirebroker.net.client.errors import (
    AuthenticationFailedError,
    BrokenProtocolError,
    CannotConnectError,
    ConnectionLostError,
    LongResponseError,
    PeerError,
    RequestTimedOutError,
    UnsupportedVersionError,
)
from wirebroker.net.client.node import Node
from wirebroker.net.client.settings import MOST_RESPONSE_BYTES, Backoff, ClientSettings, PeerAddress
from wirebroker.net.frames.frame_buffer import FrameBlocks

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
    from random import Random

    from wirebroker.base.clock import Clock
    from wirebroker.net.client.connection import Body, Handshake
    from wirebroker.net.client.transport import Dialer

# Pauses between retries.
_RETRY: Final = Backoff(first_s=0.05, most_s=0.5)
# FindCoordinator's key_type.
_GROUP: Final = 0
# Last version for a single key.
_ONE_KEY: Final = 3
_CLIENT_ID: Final = "wirebroker-cli"
# Parts of error messages of net/client.
_NO_TLS: Final = "the TLS handshake failed"
_CLOSED: Final = "the peer closed the connection"
_BY_TLS: Final = "the server requires TLS"
_CONTROLLERS_LISTENER: Final = (
    "{} is a listener of controllers: set the address of a broker with {}. `wirebroker quorum`,"
    " `cluster` and `features` also work with controllers: --bootstrap-controller HOST:PORT"
)
_LOCAL_HOSTS: Final = ("127.", "localhost", "::1")


class KafkaClient:
    """A client of one cluster; failed requests raise ClientError.

    Attributes:
        timeout_s: For each request with all its retries.
        uses_controllers: Whether the bootstrap addresses are controllers (`use_controllers`).
    """

    __slots__ = (
        "_avoided",
        "_blocks",
        "_bootstrap",
        "_brokers",
        "_controller_id",
        "_coordinators",
        "_dialer",
        "_first",
        "_flags",
        "_handshake",
        "_nodes",
        "_random",
        "_retry",
        "_settings",
        "clock",
        "timeout_s",
        "uses_controllers",
    )

    def __init__(
        self,
        bootstrap: Sequence[PeerAddress],
        *,
        timeout_s: float,
        dialer: Dialer,
        clock: Clock,
        random: Random,
        handshake: Handshake | None = None,
        client_id: str = _CLIENT_ID,
        flags: FlagNames = FLAG_NAMES,
        retry: Backoff = _RETRY,
        max_response_bytes: int = MOST_RESPONSE_BYTES,
    ) -> None:
        """Store the addresses of brokers, at least one; nothing is connected yet.

        `handshake` runs on each new connection: a login. `retry` has the pauses between retries. A
        response of more than `max_response_bytes` ends its connection.
        """
        assert bootstrap
        self.timeout_s = timeout_s
        self.clock = clock
        self._bootstrap = tuple(bootstrap)
        self._dialer = dialer
        self._flags = flags
        self._handshake = handshake
        self._random = random
        self._retry = retry
        self._settings = ClientSettings(
            client_id=client_id,
            connect_timeout_s=min(10.0, timeout_s),
            request_timeout_s=timeout_s,
            max_response_bytes=max_response_bytes,
        )
        self._blocks = FrameBlocks()
        self._nodes: dict[PeerAddress, Node] = {}
        self._brokers: dict[int, PeerAddress] = {}
        self._coordinators: dict[str, int] = {}
        self._controller_id = -1
        self.uses_controllers = False
        # The address that responded last, and one that was reached but did not respond.
        self._first: PeerAddress | None = None
        self._avoided: PeerAddress | None = None

    async def __aenter__(self) -> KafkaClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.abort()

    def abort(self) -> None:
        """Close all connections; pending requests fail."""
        for node in self._nodes.values():
            node.abort()

    def within(self, timeout_s: float) -> KafkaClient:
        """Return a client with the same connections and another timeout."""
        other = copy(self)
        other.timeout_s = timeout_s
        return other

    def apart(self, *, max_response_bytes: int | None = None) -> KafkaClient:
        """Return a client with separate connections, optionally with another response limit.

        It shares this client's memory for long responses.
        """
        other = copy(self)
        other._nodes = {}
        if max_response_bytes is not None:
            other._settings = self._settings._replace(max_response_bytes=max_response_bytes)
        return other

    @property
    def is_asked_locally(self) -> bool:
        """Whether a bootstrap address is of this machine."""
        return any(address.host.startswith(_LOCAL_HOSTS) for address in self._bootstrap)

    # --- requests ---

    async def request(
        self, key: ApiKey, body: Body, *, at_most: int | None = None, timeout_s: float | None = None
    ) -> Any:
        """Send a request to any broker.

        A broker that was reached but does not respond may have executed the request, so no other is
        tried. Later requests go to others first.
        """
        problems: list[CannotConnectError] = []
        for address in self._addresses():
            node = self._node(address)
            try:
                answer = await node.request(
                    key, body, at_most=at_most, timeout_s=timeout_s or self.timeout_s
                )
            except CannotConnectError as error:
                problems.append(without_frames(error))
            except UnsupportedVersionError as error:
                if key is ApiKey.METADATA:  # which all brokers serve
                    advice = _CONTROLLERS_LISTENER.format(error.peer, self._flags.address)
                    raise ClientError(f"{advice} ({error})") from error
                raise UnservedError(str(error)) from error
            except PeerError as error:
                self._first, self._avoided = None, address
                is_closed = isinstance(error, ConnectionLostError) and self._handshake is None
                step = f". A SASL listener needs {self._flags.login}" if is_closed else ""
                raise ClientError(f"{error}{step}") from error
            else:
                self._first = address
                return answer
        raise ClientError(_no_response_message(problems, self._flags))

    def _addresses(self) -> list[PeerAddress]:
        """Return the known addresses in the order in which requests try them."""
        first = [self._first] if self._first else []
        addresses = dict.fromkeys((*first, *self._bootstrap, *self._brokers.values()))
        return sorted(addresses, key=lambda address: address == self._avoided)

    async def request_of(
        self,
        broker_id: int,
        key: ApiKey,
        body: Body,
        *,
        at_most: int | None = None,
        timeout_s: float | None = None,
    ) -> Any:
        """Send a request to a broker; to a controller if `uses_controllers`.

        Raises:
            NoResponseError: It does not run, cannot be reached, or does not respond in time.
            TooLongError: Its response exceeds `max_response_bytes`.
            ClientError: Another failure.
        """
        address = self._brokers.get(broker_id)
        kind = "controller" if self.uses_controllers else "broker"
        if address is None:
            await self._find_nodes()
            address = self._brokers.get(broker_id)
        if address is None:
            broker_ids = ", ".join(map(str, sorted(self._brokers)))
            raise NoResponseError(f"there is no {kind} {broker_id}; running {kind}s: {broker_ids}")
        node = self._node(address)
        try:
            return await node.request(
                key, body, at_most=at_most, timeout_s=timeout_s or self.timeout_s
            )
        except CannotConnectError as error:
            raise NoResponseError(
                f"cannot reach {kind} {broker_id} at its advertised address {address}:"
                f" {error.what}. See its advertised.listeners"
            ) from error
        except UnsupportedVersionError as error:
            raise UnservedError(str(error)) from error
        except LongResponseError as error:
            raise TooLongError(str(error)) from error
        except BrokenProtocolError as error:
            raise ClientError(str(error)) from error
        except (ConnectionLostError, RequestTimedOutError) as error:
            raise NoResponseError(str(error)) from error
        except PeerError as error:
            raise ClientError(str(error)) from error

    async def request_of_controller(
        self, key: ApiKey, body: Body, *, at_most: int | None = None
    ) -> Any:
        """Send a request to the controller; with KRaft, any broker forwards it."""
        if self._controller_id < 0:
            await self._find_nodes()
        if self._controller_id < 0:
            return await self.request(key, body, at_most=at_most)
        return await self.request_of(self._controller_id, key, body, at_most=at_most)

    async def request_of_coordinator(
        self,
        group: str,
        key: ApiKey,
        body: Body,
        *,
        error_of: Callable[[Any], int],
        at_most: int | None = None,
    ) -> Any:
        """Send a request to a group's coordinator, and follow it if it moves.

        `error_of` returns a response's error code, to detect moves. The returned last response may
        contain an error.
        """
        answer: Any = None
        async for _ in self.tries():
            broker_id = self._coordinators.get(group)
            if broker_id is None:
                broker_id = self._coordinators[group] = await self._find_coordinator(group)
            answer = await self.request_of(broker_id, key, body, at_most=at_most)
            if error_of(answer) not in PASSING:
                break
            del self._coordinators[group]
        return answer

    async def coordinator_of(self, group: str) -> tuple[int, PeerAddress]:
        """Return a group's coordinator and its address."""
        broker_id = self._coordinators[group] = await self._find_coordinator(group)
        return broker_id, self._brokers[broker_id]

    async def use_controllers(self) -> None:
        """Send requests to the active controller; the bootstrap addresses must be controllers."""
        cluster = await describe_cluster(self, endpoint_type=CONTROLLERS)
        self._brokers = {
            controller.broker_id: PeerAddress(controller.host, controller.port)
            for controller in cluster.brokers
        }
        self._controller_id = cluster.controller_id
        self.uses_controllers = True

    async def _find_nodes(self) -> None:
        if self.uses_controllers:
            await self.use_controllers()
        else:
            await self.metadata([])

    async def broker_ids(self) -> list[int]:
        """Return the ids of all brokers."""
        await self.metadata([])
        return sorted(self._brokers)

    # --- metadata ---

    async def metadata(
        self, topics: Sequence[str] | None = None, *, may_create: bool = False
    ) -> Any:
        """Request topics (None for all) and brokers, and remember the brokers.

        `may_create` lets the cluster create missing topics, whose rows have an error_code.
        """

        def body(version: int) -> dict[str, Any]:
            requested = None if topics is None else [{"name": name} for name in topics]
            return {"topics": requested, "allow_auto_topic_creation": may_create or version < 4}

        answer = await self.request(ApiKey.METADATA, body)
        if answer.brokers:
            self._brokers = {
                broker.node_id: PeerAddress(broker.host, broker.port) for broker in answer.brokers
            }
            self._controller_id = answer.controller_id
        return answer

    async def _find_coordinator(self, group: str) -> int:
        code, message = 0, None
        async for _ in self.tries():
            answer = await self.request(
                ApiKey.FIND_COORDINATOR, _coordinator_question(group), at_most=_ONE_KEY
            )
            code, message = answer.error_code, answer.error_message
            if not code:
                self._brokers[answer.node_id] = PeerAddress(answer.host, answer.port)
                return int(answer.node_id)
            if code not in PASSING:
                break
        failure = f"the coordinator of group {group} cannot be found"
        raise ClientError(f"{failure}: {explained(code, message)}", code=code)

    # --- time, connections ---

    async def tries(self) -> AsyncIterator[None]:
        """Iterate immediately and after growing pauses, for `timeout_s`."""
        deadline = self.clock.monotonic() + self.timeout_s
        failures = 0
        while True:
            yield
            failures += 1
            delay_s = self._retry.delay_s(failures, self._random)
            if self.clock.monotonic() + delay_s >= deadline:
                return
            await pause(delay_s)

    async def together(self, *work: Any) -> list[Any]:
        """Await several requests; the first failure cancels the others."""
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(coroutine) for coroutine in work]
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None
        return [task.result() for task in tasks]

    async def settled(self, *work: Coroutine[Any, Any, Any]) -> list[Any]:
        """Await several requests; the failure of one is returned in its place, as ClientError."""
        results = await asyncio.gather(*work, return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException) and not isinstance(result, ClientError):
                raise result
        return list(results)

    def _node(self, address: PeerAddress) -> Node:
        node = self._nodes.get(address)
        if node is None:
            node = self._nodes[address] = Node(
                address,
                dialer=self._dialer,
                settings=self._settings,
                clock=self.clock,
                random=self._random,
                handshake=self._handshake,
                shared_blocks=self._blocks,
            )
        return node


def _coordinator_question(group: str) -> Body:
    return lambda version: {"key": group} | ({"key_type": _GROUP} if version else {})


def _no_response_message(problems: Sequence[CannotConnectError], flags: FlagNames) -> str:
    """Return a message that no address responds, and a remedy."""
    reasons = "; ".join(f"{problem.peer}: {problem.what.rstrip('.')}" for problem in problems)
    if any(isinstance(problem, AuthenticationFailedError) for problem in problems):
        return f"cannot log in at {reasons}"
    if any(_NO_TLS in problem.what for problem in problems):
        return f"cannot connect to {reasons}. {flags.trust} sets the trusted certificates"
    if any(_CLOSED in problem.what or _BY_TLS in problem.what for problem in problems):
        return f"cannot connect to {reasons}. A TLS listener needs {flags.tls}"
    step = (
        f"Start them, each on its own directory, or set their addresses with {flags.address}"
        if flags.node == "controller"
        else f"Start one with `wirebroker serve`, or set its address with {flags.address}"
    )
    return f"no {flags.node} responds at {reasons}. {step}"
