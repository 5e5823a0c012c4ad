"""Periodic reading of a web server's keys. No login waits for it.

    every sasl.oauthbearer.jwks.endpoint.refresh.ms
    soon, when a token names an unknown key; at most every 10 s
    after …retry.backoff.ms, doubled while the server does not respond

Until a new key is read, its tokens are refused, as in Kafka.

Source: Kafka's RefreshingHttpsJwks.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING, Final

from wirebroker.base.clock import pause
from wirebroker.base.threads import Work, in_thread
from wirebroker.config.rows.row import ConfigError

if TYPE_CHECKING:
    from wirebroker.config.security.oauth import OAuthSettings
    from wirebroker.security.tokens.tokens import TokenChecks

logger = logging.getLogger("wirebroker.security")

_SOONEST_AGAIN_S: Final = 10.0


class KeyRefresh:
    """The task that refreshes the keys of one TokenChecks."""

    __slots__ = ("_checks", "_settings", "_task", "_wanted")

    def __init__(self, checks: TokenChecks, settings: OAuthSettings) -> None:
        self._checks = checks
        self._settings = settings
        self._wanted = asyncio.Event()
        checks.request_refresh = self._wanted.set
        self._task = asyncio.create_task(self._run(), name="keys of tokens")

    def close(self) -> None:
        """Stop the task."""
        self._checks.request_refresh = None
        self._checks.close()
        self._task.cancel()

    async def _run(self) -> None:
        refresh_s = self._settings.refresh_ms / 1000
        failures = 0
        if self._checks.has_keys:
            await self._until_wanted(refresh_s)
        while True:
            failures = 0 if await self._read() else failures + 1
            if failures:
                await pause(self._backoff_s(failures))
            else:
                self._wanted.clear()
                await pause(min(refresh_s, _SOONEST_AGAIN_S))
                await self._until_wanted(max(0.0, refresh_s - _SOONEST_AGAIN_S))

    async def _until_wanted(self, most_s: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(most_s):
                await self._wanted.wait()

    async def _read(self) -> bool:
        try:
            await in_thread(Work.KEYS, self._checks.load)
        except ConfigError as error:
            logger.warning(
                "cannot read the token signing keys; keeping the previous ones, if any: %s", error
            )
            return False
        except Exception:  # it retries
            logger.exception("cannot read the token signing keys")
            return False
        return True

    def _backoff_s(self, failures: int) -> float:
        # 40 doublings exceed any configurable limit.
        doubled_ms = self._settings.retry_ms << min(failures - 1, 40)
        return min(self._settings.most_retry_ms, doubled_ms) / 1000
