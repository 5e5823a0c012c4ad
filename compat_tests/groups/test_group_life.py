"""The whole life of a group of three, with every stock client and assignor.

Every record is consumed, and none that was committed before its partition was assigned (the group
checks that with each event).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from compat_tests.groups.parameters import clients_and_assignors

if TYPE_CHECKING:
    from compat_tests.groups.clients import GroupClient
    from compat_tests.groups.group import Group


@pytest.mark.shows("consumer groups")
@pytest.mark.parametrize(("client", "assignor"), clients_and_assignors())
def test_group_survives_joins_leave_stop_and_kill(
    group: Group, client: GroupClient, assignor: str
) -> None:
    group.produce()
    first, second, third = (group.start(client, name, assignor) for name in ("a", "b", "c"))
    group.wait_until_shared_by(first, second, third)
    group.wait_until_processed(and_committed=client.commits_soon)

    group.leave(second)
    group.produce()
    group.wait_until_shared_by(first, third)
    group.wait_until_processed(and_committed=client.commits_soon)

    fourth = group.start(client, "d", assignor)
    group.wait_until_shared_by(first, third, fourth)
    group.produce()
    group.wait_until_processed(and_committed=client.commits_soon)

    group.stop(first)
    group.produce()
    group.wait_until_shared_by(third, fourth)
    group.wait_until_processed(and_committed=client.commits_soon)
    group.resume(first)
    group.wait_until_shared_by(first, third, fourth)
    group.produce()
    group.wait_until_processed(and_committed=client.commits_soon)

    group.kill9(third)
    group.produce()
    group.wait_until_shared_by(first, fourth)
    group.wait_until_processed(and_committed=client.commits_soon)

    group.leave(first)
    group.leave(fourth)
    assert group.fetch_committed() == group.ends
    group.produce(1)
    last = group.start(client, "e", assignor)
    group.wait_until_shared_by(last)
    group.wait_until_processed(and_committed=client.commits_soon)
    assert sorted(last.records) == [(p, end - 1) for p, end in group.ends.items()]
