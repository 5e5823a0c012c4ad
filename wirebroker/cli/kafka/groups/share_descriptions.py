"""Output of `kafka-share-groups --describe`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from wirebroker.cli.kafka.plumbing.tables import aligned, width_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirebroker.client.groups.share_groups import DescribedShareGroup, ShareMember
    from wirebroker.client.groups.share_offsets import SharedProgress
    from wirebroker.net.client.settings import PeerAddress


def offsets_of(name: str, progress: Sequence[SharedProgress], *, verbose: bool) -> list[str]:
    """Return lines with offsets."""
    if not progress:
        return ["", f"Share group '{name}' has no offset information."]
    titles = ["GROUP", "TOPIC", "PARTITION", "START-OFFSET", "LAG"]
    widths = [width_of([name]), width_of(entry.place.topic for entry in progress), 10, 13, 0]
    rows: list[list[object]] = [[name, *entry.place, entry.start, entry.lag] for entry in progress]
    if verbose:
        titles.insert(3, "LEADER-EPOCH")
        widths.insert(3, 13)
        for row, entry in zip(rows, progress, strict=True):
            row.insert(3, entry.leader_epoch)
    return ["", *aligned([titles, *rows], widths)]


def members_of(group: DescribedShareGroup, *, verbose: bool) -> list[str]:
    """Return lines with members."""
    _warn_of_empty(group)
    members = sorted(group.members, key=lambda member: member.member_id)
    if group.state == "Dead" or not members:
        return []
    titles = ["GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS", "ASSIGNMENT"]
    widths = [
        width_of([group.name]),
        width_of(member.member_id for member in members),
        width_of(f"/{member.host}" for member in members),
        width_of(member.client_id for member in members),
        12,
        0,
    ]
    rows: list[list[object]] = [_member_row(group.name, member) for member in members]
    if verbose:
        titles.insert(5, "MEMBER-EPOCH")
        widths.insert(5, 13)
        for row, member in zip(rows, members, strict=True):
            row.insert(5, member.epoch)
    return ["", *aligned([titles, *rows], widths)]


def _member_row(name: str, member: ShareMember) -> list[object]:
    topics: dict[str, list[str]] = {}
    for topic, partition in sorted(member.partitions):
        topics.setdefault(topic, []).append(str(partition))
    assignment = ";".join(sorted(f"{topic}:{','.join(parts)}" for topic, parts in topics.items()))
    host = f"/{member.host}"
    return [name, member.member_id, host, member.client_id, len(member.partitions), assignment]


def state_of(
    group: DescribedShareGroup, coordinator: tuple[int, PeerAddress], *, verbose: bool
) -> list[str]:
    """Return lines with the state."""
    _warn_of_empty(group)
    broker_id, address = coordinator
    place = f"{address}  ({broker_id})"
    titles = ["GROUP", "COORDINATOR (ID)", "STATE", "#MEMBERS"]
    widths = [width_of([group.name]), width_of([place], 25), 15, 0]
    row: list[object] = [group.name, place, group.state, len(group.members)]
    if verbose:
        titles[3:3] = ["GROUP-EPOCH", "ASSIGNMENT-EPOCH"]
        widths[3:3] = [12, 17]
        row[3:3] = [group.epoch, group.assignment_epoch]
    return ["", *aligned([titles, row], widths)]


def _warn_of_empty(group: DescribedShareGroup) -> None:
    if group.state == "Empty":
        click.echo(f"\nShare group '{group.name}' has no active members.", err=True)
