"""The minimal rights of the service's login, which docs/delivery.md lists, and its client file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

if TYPE_CHECKING:
    from pathlib import Path

GROUP = "wirebroker-delivery"
PENDING = f"__{GROUP}"
LETTERS = ("deliver.dead-letters", "retry.dead-letters")
TOPICS = ("deliver", "retry", *LETTERS, PENDING, "orders")
# Operation, kind of resource, name; docs/delivery.md lists them.
NEEDED = (
    ("read", "group", GROUP),
    *(("read", "topic", topic) for topic in ("deliver", "retry", PENDING)),
    *(("write", "topic", topic) for topic in (PENDING, "orders", *LETTERS)),
    ("write", "transactional-id", f"{GROUP}-"),
)
_KINDS = {
    "group": ResourceType.GROUP,
    "topic": ResourceType.TOPIC,
    "transactional-id": ResourceType.TRANSACTIONAL_ID,
}


def binding(operation: str, kind: str, name: str, user: str = "alice") -> AclBinding:
    """Return the ACL that grants a right."""
    is_prefix = kind == "transactional-id"
    pattern = ResourcePatternType.PREFIXED if is_prefix else ResourcePatternType.LITERAL
    allowed = AclOperation[operation.upper()], AclPermissionType.ALLOW
    return AclBinding(_KINDS[kind], name, pattern, f"User:{user}", "*", *allowed)


def prepare(admin: AdminClient, user: str = "alice", *, replicas: int = 1) -> None:
    """Create the topics, and grant the rights."""
    compacted = {"cleanup.policy": "compact"}
    topics = [
        NewTopic(name, 1, replicas, config=compacted if name == PENDING else {}) for name in TOPICS
    ]
    for made in admin.create_topics(topics).values():
        made.result(60)
    for granted in admin.create_acls([binding(*right, user) for right in NEEDED]).values():
        granted.result(60)


def write_client_config(file: Path, authority: Path, login: str, mechanism: str) -> None:
    """Write a file for `--client-config`; `login` is a line of JAAS."""
    file.write_text(
        f"security.protocol=SASL_SSL\nsasl.mechanism={mechanism}\nsasl.jaas.config={login}\n"
        f"ssl.truststore.type=PEM\nssl.truststore.location={authority}\n"
    )
