"""SASL of a process's listeners; loads the rest only if a listener uses it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from wirebroker.base.clock import Clock
    from wirebroker.config.listeners.listeners import ListenerConfig
    from wirebroker.config.security.oauth import OAuthSettings
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.net.dispatch import Dispatcher
    from wirebroker.security.sasl.sasl import SaslGuard
    from wirebroker.security.sasl.sasl_state import SaslState
    from wirebroker.security.tokens.tokens import TokenChecks


class ListenerSasl:
    """Authentication of clients; see SaslState."""

    __slots__ = ("_checks", "_clock", "_doors", "_served", "_token_secret")

    def __init__(self, clock: Clock, *, token_secret: str | None) -> None:
        """Create it; no `token_secret` disables delegation tokens."""
        self._clock = clock
        self._token_secret = token_secret
        self._checks: dict[OAuthSettings, TokenChecks] = {}
        self._doors: SaslState | None = None
        self._served: tuple[Dispatcher, Callable[[], ClusterImage], str] | None = None

    async def read_keys(self, listeners: Sequence[ListenerConfig]) -> None:
        """See sasl_state.read_keys.

        Raises:
            ConfigError: Keys cannot be read, or a library is missing.
        """
        if _have_sasl(listeners):
            from wirebroker.security.sasl.sasl_state import read_keys  # noqa: PLC0415 - see above

            self._checks = await read_keys(listeners, self._clock)

    def serve(
        self, dispatcher: Dispatcher, image: Callable[[], ClusterImage], cluster_id: str
    ) -> None:
        """Set, once, the dispatcher of authenticated clients and the source of users and tokens."""
        self._served = (dispatcher, image, cluster_id)

    def use_listeners(self, listeners: Sequence[ListenerConfig]) -> None:
        """Apply settings from the next connection on; call it after `serve`."""
        if self._doors is None and _have_sasl(listeners):
            from wirebroker.security.sasl.sasl_state import SaslState  # noqa: PLC0415 - see above

            assert self._served is not None, "served before"
            self._doors = SaslState(
                *self._served, self._clock, token_secret=self._token_secret, checks=self._checks
            )
        if self._doors is not None:
            self._doors.use_listeners(listeners)

    def guard(self, listener_name: str) -> SaslGuard | None:
        """Return the guard of a new connection; None if it needs no authentication."""
        return None if self._doors is None else self._doors.guard(listener_name)

    def close(self) -> None:
        """Stop reading keys."""
        if self._doors is not None:
            self._doors.close()


def _have_sasl(listeners: Sequence[ListenerConfig]) -> bool:
    return any(listener.sasl is not None for listener in listeners)
