"""Requests to the active controller of a quorum, which is looked up and followed.

All known controllers are asked for the active one at the same time (controller_lookup.py), so that
an unresponsive one causes no delay. One that lags may name the last active controller, which is
used only if no other is named.

Requests are retried until the deadline on NOT_CONTROLLER, failed connects and closed connections
(as in Kafka's NodeToControllerChannelManager).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from wirebroker.base.clock import pause
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.values import Struct
from wirebroker.net.client.controller_lookup import ControllerLookup, LookupProblem, look_up
from wirebroker.net.client.errors import (
    AuthenticationFailedError,
    CannotConnectError,
    PeerError,
    RequestTimedOutError,
    UnsupportedVersionError,
    seconds_of,
)
from wirebroker.net.client.node import Node
from wirebroker.net.client.settings import Backoff, PeerAddress

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random

    from wirebroker.base.clock import Clock
    from wirebroker.codecs.api_keys import ApiKey
    from wirebroker.net.client.connection import Body, Handshake
    from wirebroker.net.client.settings import ClientSettings
    from wirebroker.net.client.transport import Dialer

# Limits the addresses that a peer can name.
_MOST_CONTROLLERS: Final = 20
# An election takes some hundred milliseconds.
_RETRY: Final = Backoff(first_s=0.05, most_s=0.25)


class NotControllersError(CannotConnectError):
    """The addresses belong to brokers instead of controllers."""


class DeniedByControllersError(CannotConnectError):
    """All controllers that respond deny this node ClusterAction."""


class ActiveController:
    """Client of the active controller; `controller_id` and `cluster_id` are None while unknown."""

    __slots__ = (
        "_bootstrap",
        "_clock",
        "_controllers",
        "_current",
        "_failed",
        "_looking",
        "_make_node",
        "_more_addresses",
        "_nodes",
        "_random",
        "_settings",
        "cluster_id",
        "controller_id",
    )

    def __init__(
        self,
        bootstrap: Sequence[PeerAddress],
        *,
        dialer: Dialer,
        settings: ClientSettings,
        clock: Clock,
        random: Random,
        handshake: Handshake | None = None,
        more: Callable[[], Sequence[PeerAddress]] | None = None,
    ) -> None:
        """`bootstrap` is not empty; `more` returns addresses of new voters (KIP-853)."""
        assert bootstrap
        self._more_addresses = more

        def make_node(address: PeerAddress) -> Node:
            return Node(
                address,
                dialer=dialer,
                settings=settings,
                clock=clock,
                random=random,
                handshake=handshake,
            )

        self._bootstrap = tuple(bootstrap)
        # Those of the last lookup.
        self._controllers: tuple[PeerAddress, ...] = ()
        self._make_node = make_node
        self._settings = settings
        self._clock = clock
        self._random = random
        self._nodes: dict[PeerAddress, Node] = {}
        self._current: Node | None = None
        # The last inactive one.
        self._failed: PeerAddress | None = None
        self._looking = asyncio.Lock()
        self.controller_id: int | None = None
        self.cluster_id: str | None = None

    async def request(
        self,
        key: ApiKey,
        body: Body,
        *,
        timeout_s: float,
        at_most: int | None = None,
        is_repeatable: bool = True,
    ) -> Any:
        """Send a request to the active controller and return the decoded response.

        See PeerConnection.request. The timeout is the total; each try takes at most
        `settings.request_timeout_s`. Only if `is_repeatable`, a request that may have been
        executed is retried.

        Raises:
            RequestTimedOutError: No controller has responded in time.
            PeerError: Retrying does not help (versions, authentication), or is not allowed.
        """
        deadline = self._clock.monotonic() + timeout_s
        failures = 0
        may_have_arrived = is_denied = False
        reason = ""
        while True:
            node: Node | None = None
            try:
                node = await self.find(deadline - self._clock.monotonic())
                left_s = min(deadline - self._clock.monotonic(), self._settings.request_timeout_s)
                answer = await node.request(key, body, timeout_s=left_s, at_most=at_most)
                if not has_error(answer, ErrorCode.NOT_CONTROLLER):
                    return answer
                is_denied, reason = False, f"{node.address} is not the active controller"
            except (UnsupportedVersionError, AuthenticationFailedError):
                raise
            except PeerError as error:
                may_have_arrived = may_have_arrived or error.may_have_arrived
                if error.may_have_arrived and not is_repeatable:
                    raise
                # An attempt that the deadline has ended says less than the one before.
                if not reason or self._clock.monotonic() < deadline:
                    is_denied = isinstance(error, DeniedByControllersError)
                    reason = str(error)
            if node is not None:
                self.forget(node.address)
            failures += 1
            delay_s = _RETRY.delay_s(failures, self._random)
            if self._clock.monotonic() + delay_s >= deadline:
                raise RequestTimedOutError(
                    "the controller",
                    f"no response to {key.name} within {seconds_of(timeout_s)};"
                    f" last error: {reason}",
                    may_have_arrived=may_have_arrived,
                    is_denied=is_denied,
                )
            await pause(delay_s)

    async def find(self, timeout_s: float) -> Node:
        """Return the active controller; look it up if it is unknown.

        Raises:
            NotControllersError: All known addresses belong to brokers.
            CannotConnectError: No controller names it in time.
            DeniedByControllersError: All that respond deny this node ClusterAction.
        """
        if self._current is not None:
            return self._current
        problems: list[LookupProblem] = []
        try:
            async with asyncio.timeout(max(0.0, timeout_s)), self._looking:
                # Another task may have found it meanwhile.
                return self._current or await self._look(problems)
        except TimeoutError as error:
            reason = f"no active controller found within {seconds_of(timeout_s)}"
            raise _failure(problems, reason) from error

    def forget(self, address: PeerAddress) -> None:
        """Look up the controller again if this one is still current."""
        if self._current is not None and self._current.address == address:
            self._failed = address
            self._current = None
            self.controller_id = None

    @property
    def addresses(self) -> Sequence[PeerAddress]:
        """Addresses of controllers; the last active one is first."""
        return self._controllers or self._bootstrap

    async def close(self) -> None:
        """Close all connections."""
        for node in list(self._nodes.values()):
            await node.close()

    def abort(self) -> None:
        """Close all connections immediately."""
        for node in list(self._nodes.values()):
            node.abort()

    def _node(self, address: PeerAddress) -> Node:
        node = self._nodes.get(address)
        if node is None:
            node = self._nodes[address] = self._make_node(address)
        return node

    async def _look(self, problems: list[LookupProblem]) -> Node:
        """Ask all known controllers; see `find`.

        The results that name no active controller are added to `problems`.
        """
        addresses = dict.fromkeys((*self._controllers, *self._bootstrap, *self._known_elsewhere()))
        pending = {
            asyncio.create_task(look_up(self._node(address), self.cluster_id))
            for address in addresses
        }
        failed_before: ControllerLookup | None = None
        try:
            while pending:
                done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
                for answer in [task.result() for task in done]:
                    if isinstance(answer, LookupProblem):
                        problems.append(answer)
                    elif answer.addresses[answer.controller_id] == self._failed:
                        failed_before = answer
                    else:
                        return self._found(answer)
        finally:
            for task in pending:
                task.cancel()
        if failed_before is not None:
            return self._found(failed_before)
        if all(problem.is_of_a_broker for problem in problems):
            what = "; ".join(problem.what for problem in problems)
            raise NotControllersError("the controller", what)
        raise _failure(problems)

    def _known_elsewhere(self) -> Sequence[PeerAddress]:
        return () if self._more_addresses is None else self._more_addresses()[:_MOST_CONTROLLERS]

    def _found(self, result: ControllerLookup) -> Node:
        self.controller_id = result.controller_id
        if result.cluster_id is not None:
            self.cluster_id = result.cluster_id
        active = result.addresses[result.controller_id]
        self._controllers = (active, *list(result.addresses.values())[:_MOST_CONTROLLERS])
        known_addresses = {*self._controllers, *self._bootstrap, *self._known_elsewhere()}
        for address in [address for address in self._nodes if address not in known_addresses]:
            self._nodes.pop(address).abort()
        self._current = self._node(active)
        return self._current


def _failure(problems: Sequence[LookupProblem], *reasons: str) -> CannotConnectError:
    """Return the error of a lookup that found no active controller."""
    what = "; ".join((*reasons, *(problem.what for problem in problems)))
    # One that denies alone may have outdated ACLs.
    responses = [problem for problem in problems if not problem.is_unreachable]
    is_denied = bool(responses) and all(problem.is_denied for problem in responses)
    failure = DeniedByControllersError if is_denied else CannotConnectError
    return failure("the controller", what)


def has_error(answer: Struct, code: ErrorCode) -> bool:
    """Return whether any part of a response has this error code."""
    for name in answer.FIELD_NAMES:
        value = getattr(answer, name)
        if name == "error_code":
            has_code = value == code
        elif value.__class__ is list:
            has_code = any(
                isinstance(element, Struct) and has_error(element, code) for element in value
            )
        else:
            has_code = isinstance(value, Struct) and has_error(value, code)
        if has_code:
            return True
    return False
