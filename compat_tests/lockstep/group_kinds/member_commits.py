"""Commits of members whose epochs the broker checks: of consumer and of streams groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from compat_tests.lockstep.kind import Moves
    from compat_tests.lockstep.topics import Topics

_NO_EPOCH = -1


class EpochMember(Protocol):
    """A member of a group of either kind."""

    member_id: str
    instance: str | None
    epoch: int


def commit_of(kind: Topics, group_id: str, member: EpochMember | None) -> Moves:
    """Commit offsets of some topics, in the member's epoch or one beside it."""
    epoch = _NO_EPOCH if member is None else member.epoch + kind.random.choice((0, 0, 0, -1, 1))
    topics = [
        {
            **topic.both,
            "partitions": [
                {
                    "partition_index": index,
                    "committed_offset": kind.random.choice((0, 5, 77)),
                    "committed_leader_epoch": -1,
                    "committed_metadata": kind.random.choice(("", "mark")),
                }
                for index in kind.some([*topic.partitions, 9], maximum=2)
            ],
        }
        for topic in kind.some(kind.topics, maximum=2)
    ]
    request = {
        "group_id": group_id,
        "generation_id_or_member_epoch": epoch,
        "member_id": "" if member is None else member.member_id,
        "group_instance_id": None if member is None else member.instance,
        "topics": topics,
    }
    version = kind.version(ApiKey.OFFSET_COMMIT, 7)
    yield from kind.ask(ApiKey.OFFSET_COMMIT, request, version=version)
