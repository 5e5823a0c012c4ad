"""A group of three through all that happens to one, with every stock client and assignor.

Whatever happens, every record is consumed, and none again that had been committed before the
partition was assigned (the group checks that with each event).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from compat_tests import tools_rust
from compat_tests.groups.clients import CLIENTS, JAVA, RUST_RDKAFKA, GroupClient

if TYPE_CHECKING:
    from compat_tests.groups.group import Group


def _marks(client: GroupClient, assignor: str) -> list[pytest.MarkDecorator]:
    marks: list[pytest.MarkDecorator] = []
    if client is JAVA:
        marks.append(pytest.mark.java)
    if client is RUST_RDKAFKA:
        reason = "needs cargo, a C compiler and make on PATH"
        marks.append(pytest.mark.skipif(not tools_rust.is_here(), reason=reason))
    if client is RUST_RDKAFKA or assignor != client.assignors[0]:
        marks.append(pytest.mark.long)
    return marks


def every_client_and_assignor() -> list[Any]:
    """Return each client with each of its assignors; only the first is for the quick run."""
    return [
        pytest.param(client, one, id=f"{client}-{one}", marks=_marks(client, one))
        for client in CLIENTS
        for one in client.assignors
    ]


@pytest.mark.parametrize(("client", "assignor"), every_client_and_assignor())
def test_a_group_lives_through_joins_a_leave_a_stop_and_a_kill(
    group: Group, client: GroupClient, assignor: str
) -> None:
    group.produce()
    first, second, third = (group.start(client, name, assignor) for name in ("a", "b", "c"))
    group.wait_until_shared_by(first, second, third)
    group.wait_until_processed()

    group.leave(second)
    group.produce()
    group.wait_until_shared_by(first, third)
    group.wait_until_processed()

    fourth = group.start(client, "d", assignor)
    group.wait_until_shared_by(first, third, fourth)
    group.produce()
    group.wait_until_processed()

    group.stop(first)
    group.produce()
    group.wait_until_shared_by(third, fourth)
    group.wait_until_processed()
    group.resume(first)
    group.wait_until_shared_by(first, third, fourth)
    group.produce()
    group.wait_until_processed()

    group.kill9(third)
    group.produce()
    group.wait_until_shared_by(first, fourth)
    group.wait_until_processed()

    group.leave(first)
    group.leave(fourth)
    group.produce(1)
    last = group.start(client, "e", assignor)
    group.wait_until_shared_by(last)
    group.wait_until_processed()
    assert sorted(last.records) == [(p, end - 1) for p, end in group.ends.items()]
