"""The kinds of steps, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compat_tests.lockstep.admin import Admin
from compat_tests.lockstep.group_kinds.all_groups import AllGroups
from compat_tests.lockstep.group_kinds.consumer_groups import ConsumerGroups
from compat_tests.lockstep.group_kinds.groups import Groups
from compat_tests.lockstep.group_kinds.share_fetches import ShareFetches
from compat_tests.lockstep.group_kinds.share_groups import ShareGroups
from compat_tests.lockstep.group_kinds.share_states import ShareStates
from compat_tests.lockstep.group_kinds.streams_groups import StreamsGroups
from compat_tests.lockstep.producers import Producers
from compat_tests.lockstep.records import Records
from compat_tests.lockstep.restarts import Restarts
from compat_tests.lockstep.sessions import Sessions
from compat_tests.lockstep.telemetry import Telemetry
from compat_tests.lockstep.transactions import Transactions

if TYPE_CHECKING:
    from compat_tests.lockstep.kind import Kind

KINDS: dict[str, type[Kind]] = {
    kind.name: kind
    for kind in (
        Records,
        Sessions,
        Producers,
        Transactions,
        Groups,
        ConsumerGroups,
        ShareGroups,
        ShareFetches,
        ShareStates,
        StreamsGroups,
        AllGroups,
        Telemetry,
        Admin,
        Restarts,
    )
}
