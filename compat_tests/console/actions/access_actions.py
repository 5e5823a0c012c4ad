"""Actions on ACLs, users and quotas."""

from __future__ import annotations

import contextlib
from functools import partial
from typing import TYPE_CHECKING

from kafka.admin import ScramMechanism

from compat_tests.console.actions.action import BrowserAction
from tests.support.tools.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from compat_tests.console.actions.action_cluster import ActionCluster

_SECRET = "a secret password"
_PRINCIPAL = "User:{name}"
_RATE = "producer_byte_rate"
_BYTES_PER_S = 1048576.0


@contextlib.contextmanager
def _acl_count(
    before: int, after: int, cluster: ActionCluster, name: str
) -> Iterator[Callable[[], bool]]:
    """Create a topic and add some ACLs for a principal on it."""
    stock, principal = cluster.stock, f"User:{name}"
    stock.create_topic(name)
    for operation in ("read", "write")[:before]:
        stock.allow(principal, "topic", name, operation)
    eventually(lambda: len(stock.acls(principal)) == before)
    yield lambda: len(stock.acls(principal)) == after


@contextlib.contextmanager
def _no_user(cluster: ActionCluster, name: str) -> Iterator[Callable[[], bool]]:
    yield lambda: cluster.stock.mechanisms(name) == {"SCRAM_SHA_512"}


@contextlib.contextmanager
def _user(cluster: ActionCluster, name: str) -> Iterator[Callable[[], bool]]:
    # Not with the mechanism of the consoles: Apache Kafka 4.4.0 can lose all credentials of a
    # mechanism when it restarts after one of them was deleted (ScramDelta.apply).
    cluster.stock.add_user(name, _SECRET, ScramMechanism.SCRAM_SHA_256)
    yield lambda: cluster.stock.mechanisms(name) == set()


@contextlib.contextmanager
def _no_quota(cluster: ActionCluster, name: str) -> Iterator[Callable[[], bool]]:
    yield lambda: cluster.stock.quotas(name) == {_RATE: _BYTES_PER_S}


@contextlib.contextmanager
def _quota(cluster: ActionCluster, name: str) -> Iterator[Callable[[], bool]]:
    cluster.stock.set_quota(name, _RATE, _BYTES_PER_S)
    yield lambda: cluster.stock.quotas(name) == {}


ACCESS_ACTIONS = (
    BrowserAction(
        "add-acl",
        page="acls",
        link="Add an ACL",
        values={"principal": _PRINCIPAL, "resource_name": "{name}"},
        plan="allow User:{name} to read on topic {name}",
        command="kafka-acls",
        result="1 ACL added",
        arrange=partial(_acl_count, 0, 1),
    ),
    BrowserAction(
        "remove-acl",
        page="acls?q={name}",
        link="Remove the ACL read on {name} of User:{name}",
        plan="User:{name} loses read on topic {name}",
        command="kafka-acls",
        result="1 ACL removed",
        arrange=partial(_acl_count, 2, 1),
    ),
    BrowserAction(
        "let-produce",
        page="acls",
        link="Let a service produce",
        values={"principal": _PRINCIPAL, "topic": "{name}", "transactional_id": "{name}"},
        plan="User:{name} gains write",
        command="--producer",
        result="5 ACLs added",
        arrange=partial(_acl_count, 0, 5),
    ),
    BrowserAction(
        "let-consume",
        page="acls",
        link="Let a service consume",
        values={"principal": _PRINCIPAL, "topic": "{name}", "group": "{name}"},
        plan="User:{name} gains read",
        command="--consumer",
        result="3 ACLs added",
        arrange=partial(_acl_count, 0, 3),
    ),
    BrowserAction(
        "stop-produce",
        page="acls",
        link="Remove a producer's ACLs",
        values={"principal": _PRINCIPAL, "topic": "{name}"},
        plan="User:{name} loses write",
        command="--producer",
        result="1 ACL removed",
        arrange=partial(_acl_count, 2, 1),
    ),
    BrowserAction(
        "stop-consume",
        page="acls",
        link="Remove a consumer's ACLs",
        values={"principal": _PRINCIPAL, "topic": "{name}", "group": "{name}"},
        plan="User:{name} loses read",
        command="--consumer",
        result="1 ACL removed",
        arrange=partial(_acl_count, 2, 1),
    ),
    BrowserAction(
        "remove-acls-of",
        page="acls",
        link="Remove all of a principal",
        values={"principal": _PRINCIPAL},
        plan="User:{name} loses",
        command="acl delete",
        result="2 ACLs removed",
        arrange=partial(_acl_count, 2, 0),
    ),
    BrowserAction(
        "set-user",
        page="users",
        link="Create a user",
        values={"name": "{name}", "password": _SECRET},
        plan="Create user {name} for SCRAM-SHA-512",
        command="user set",
        result="user {name} logs in by SCRAM-SHA-512",
        arrange=_no_user,
        secret=_SECRET,
    ),
    BrowserAction(
        "delete-user",
        page="users?q={name}",
        link="Delete {name}",
        plan="its clients cannot log in again",
        command="user delete",
        result="user {name} can no longer log in by SCRAM-SHA-256",
        arrange=_user,
    ),
    BrowserAction(
        "set-quotas",
        page="quotas",
        link="Set quotas",
        values={"user": "{name}", "producer_byte_rate": "1048576"},
        plan="producer_byte_rate: not set → 1048576",
        command="quota set",
        result="1 quota of user {name} set",
        arrange=_no_quota,
    ),
    BrowserAction(
        "remove-quotas",
        page="quotas?q={name}",
        link="Remove quotas of user {name}",
        plan="producer_byte_rate: 1048576 → not set",
        command="quota unset",
        result="1 quota of user {name} removed",
        arrange=_quota,
    ),
)
