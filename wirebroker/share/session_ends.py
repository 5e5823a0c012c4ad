"""The ends of share sessions: their members' records are available again.

A group has no share partitions here without a session.

Source: Kafka's SharePartitionManager.releaseSession, ShareGroupListenerImpl.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from wirebroker.base.clock import Slices
from wirebroker.codecs.errors import KafkaError
from wirebroker.coordinator.share_partitions.release import release_member
from wirebroker.coordinator.share_state.state import SharePartitionKey

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.base.clock import Clock
    from wirebroker.base.metrics import Metrics
    from wirebroker.coordinator.share_partitions.share_configs import ShareConfigs
    from wirebroker.coordinator.share_partitions.share_sessions import (
        SessionMember,
        ShareFetchSession,
        ShareSessions,
    )
    from wirebroker.share.share_cache import ShareCache
    from wirebroker.share.share_writer import Changes, ShareWriter

logger = logging.getLogger(__name__)


class SessionEnds:
    """Ends sessions; a member's next session begins after its records are released."""

    __slots__ = (
        "_clock",
        "_configs",
        "_idle",
        "_leaving",
        "_metrics",
        "_now_ms",
        "_sessions",
        "_shares",
        "_writer",
    )

    def __init__(
        self,
        configs: ShareConfigs,
        sessions: ShareSessions,
        shares: ShareCache,
        writer: ShareWriter,
        *,
        clock: Clock,
        now_ms: Callable[[], float],
        metrics: Metrics,
    ) -> None:
        """`now_ms` returns the time of locks."""
        self._configs = configs
        self._sessions = sessions
        self._shares = shares
        self._writer = writer
        self._clock = clock
        self._now_ms = now_ms
        self._metrics = metrics
        self._leaving: set[SessionMember] = set()
        # Set when a member has left; a new one for each wait.
        self._idle = asyncio.Event()

    async def until_released(self, member: SessionMember) -> None:
        """Wait until the release of a member's records has begun, if its session has ended."""
        while member in self._leaving:
            await self._idle.wait()

    def end(self, member: SessionMember) -> None:
        """End a member's session."""
        session = self._remove(member)
        if session is not None:
            work = self._release(session, Slices(self._clock))
            self._writer.run(work, f"release records of {member.member_id}")

    def connection_ended(self, connection_id: str) -> None:
        """End the sessions of a connection."""
        work = self._end_all(connection_id)
        self._writer.run(work, f"share sessions of {connection_id}")

    async def _end_all(self, connection_id: str) -> None:
        slices = Slices(self._clock)
        while (member := self._sessions.first_of_connection(connection_id)) is not None:
            session = self._remove(member)
            assert session is not None, "it has one"
            self._metrics.share_session_evictions += 1
            try:
                await self._release(session, slices)
            except Exception:  # other sessions must still end
                logger.exception("cannot release the records of %s", member)

    def _remove(self, member: SessionMember) -> ShareFetchSession | None:
        session = self._sessions.remove(member)
        if session is not None:
            self._leaving.add(member)
        return session

    async def _release(self, session: ShareFetchSession, slices: Slices) -> None:
        member = session.member
        begun: Changes = []
        try:
            await self._begin(session, begun, slices)
        except BaseException:
            self._writer.abandon(begun)
            raise
        finally:
            self._leaving.discard(member)
            self._idle.set()
            self._idle = asyncio.Event()
        if begun:
            work = self._writer.persist(member.group_id, begun)
            self._writer.run(work, f"persist released records of {member.member_id}")
        await self._remove_group(member.group_id, slices)
        await slices.turn()

    async def _begin(self, session: ShareFetchSession, begun: Changes, slices: Slices) -> None:
        group_id, member_id = session.member
        limits = self._configs.limits(group_id)
        for partition in session.partitions():
            share = self._shares.get(SharePartitionKey(group_id, *partition))
            if share is not None:
                steps = release_member(share.state, member_id, limits, self._now_ms)
                try:
                    begun.append((share, await self._writer.begin(share, steps, slices)))
                except KafkaError:
                    continue  # logged; the share partition is removed
            await slices.turn()

    async def _remove_group(self, group_id: str, slices: Slices) -> None:
        """Remove the share partitions of a group that has no session here."""
        if self._sessions.has_members(group_id):
            return
        for share in self._shares.of_group(group_id):
            if self._sessions.has_members(group_id):
                return
            self._shares.remove(share)
            await slices.turn()
