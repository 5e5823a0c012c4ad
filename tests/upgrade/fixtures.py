"""The data directories of earlier commits in `directories`, and what each of them holds.

A change of what is on disk gets a fixture of its own. Its content is what `content.write` writes.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

DIRECTORIES: Final = Path(__file__).parent / "directories"


def acl(host: str) -> AclBinding:
    """Return the rule that alice may write to `orders` from a host."""
    return AclBinding(
        *(ResourceType.TOPIC, "orders", ResourcePatternType.LITERAL, "User:alice", host),
        *(AclOperation.WRITE, AclPermissionType.ALLOW),
    )


@dataclass(frozen=True)
class Fixture:
    """The directories of one cluster.

    Attributes:
        name: The archive's name without its suffix.
        commit: The commit that wrote it.
        node_count: One node with two log directories, or three.
        metadata_version: The level that the cluster has.
        acls: Its ACLs; only a single node has some.
        has_transactional_offsets: Whether a transaction committed offsets of a group.
    """

    name: str
    commit: str
    node_count: int
    metadata_version: int
    acls: tuple[AclBinding, ...] = ()
    has_transactional_offsets: bool = False

    @property
    def archive(self) -> Path:
        """The committed file."""
        return DIRECTORIES / f"{self.name}.tar.gz"


# The oldest first.
FIXTURES: Final = (
    Fixture("single", "80b693e", 1, 30, (acl("*"),)),
    Fixture("three", "80b693e", 3, 30),
    # Of level 33, which has ACLs for ranges of addresses. A transaction's offsets have topic ids.
    Fixture(
        "single-4.4",
        "59cf73ef",
        1,
        33,
        (acl("*"), acl("10.0.0.0/8")),
        has_transactional_offsets=True,
    ),
)
