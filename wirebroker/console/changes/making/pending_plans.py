"""Plans that were shown and wait for their confirmation.

Their values stay here, not in the page: they may be passwords, and the page cannot change them.
"""

from __future__ import annotations

import hashlib
import secrets
from collections import OrderedDict
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.base.clock import Clock
    from wirebroker.console.changes.change import PreparedChange

KEPT_S: Final = 900.0
_MOST: Final = 1000
_MOST_CHARACTERS: Final = 8 << 20


class PendingPlan(NamedTuple):
    """A plan that a browser has seen.

    Attributes:
        cookie: The browser's cookie; others may not confirm the plan.
        cluster: The cluster's name.
        kind: The name of the kind of change.
        values: The checked values.
        effect: Of what the user has seen, to compare it when the plan is confirmed.
        expires_at: Monotonic.
    """

    cookie: str
    cluster: str
    kind: str
    values: Mapping[str, str]
    effect: bytes
    expires_at: float


def effect_of(prepared: PreparedChange) -> bytes:
    """Return a hash of what must not differ between a plan and its confirmation.

    That is all but the notes.
    """
    texts = (prepared.summary, *prepared.lines, "", *prepared.warnings, "", prepared.command)
    effect = hashlib.sha256()
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        effect.update(len(data).to_bytes(8, "big") + data)
    return effect.digest()


class PendingPlans:
    """Plans for 15 minutes; with too many or too large ones the oldest are dropped."""

    # laws: len(_by_id) <= _MOST; _size is the sum of their values, at most _MOST_CHARACTERS

    __slots__ = ("_by_id", "_clock", "_size")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._by_id: OrderedDict[str, PendingPlan] = OrderedDict()
        self._size = 0

    def add(
        self,
        cookie: str,
        cluster: str,
        kind: str,
        values: Mapping[str, str],
        prepared: PreparedChange,
    ) -> str:
        """Keep a plan and return its id."""
        plan_id = secrets.token_urlsafe(16)
        expires_at = self._clock.monotonic() + KEPT_S
        self._by_id[plan_id] = PendingPlan(
            cookie, cluster, kind, values, effect_of(prepared), expires_at
        )
        self._size += _size_of(values)
        while len(self._by_id) > _MOST or (self._size > _MOST_CHARACTERS and len(self._by_id) > 1):
            self._drop(next(iter(self._by_id)))
        return plan_id

    def get(self, plan_id: str, *, cookie: str, cluster: str, kind: str) -> PendingPlan | None:
        """Return this browser's plan of this kind of change, if it has not expired."""
        self._drop_expired()
        plan = self._by_id.get(plan_id)
        is_own = plan is not None and (plan.cookie, plan.cluster, plan.kind) == (
            cookie,
            cluster,
            kind,
        )
        return plan if is_own else None

    def drop(self, plan_id: str) -> None:
        """Forget a plan: it can be confirmed once."""
        if plan_id in self._by_id:
            self._drop(plan_id)

    def _drop_expired(self) -> None:
        now = self._clock.monotonic()
        while self._by_id:
            oldest = next(iter(self._by_id))
            if self._by_id[oldest].expires_at > now:
                break
            self._drop(oldest)

    def _drop(self, plan_id: str) -> None:
        self._size -= _size_of(self._by_id.pop(plan_id).values)


def _size_of(values: Mapping[str, str]) -> int:
    return sum(map(len, values.values()))
