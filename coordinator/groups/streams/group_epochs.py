"""The record of a streams group's epoch, with what else it says of the group.

Source: Kafka's StreamsCoordinatorRecordHelpers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.codecs.group_records import GroupRecordKind, WholeGroupKey, group_record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.codecs.coordinator_records import CoordinatorRecord
    from wirebroker.coordinator.groups.streams.streams_group import StreamsGroup


def epoch_record(
    group: StreamsGroup,
    epoch: int,
    *,
    metadata_hash: int | None = None,
    validated_topology_epoch: int | None = None,
    assignment_configs: Mapping[str, str] | None = None,
) -> CoordinatorRecord:
    """Return the record of a group's epoch and its changes; None keeps a value."""
    configs = group.assignment_configs if assignment_configs is None else assignment_configs
    stored, failed = group.description_epochs
    return group_record(
        WholeGroupKey(GroupRecordKind.STREAMS_GROUP_METADATA, group.group_id),
        epoch=epoch,
        metadata_hash=group.metadata_hash if metadata_hash is None else metadata_hash,
        validated_topology_epoch=group.validated_topology_epoch
        if validated_topology_epoch is None
        else validated_topology_epoch,
        last_assignment_configs=[
            {"key": key, "value": value} for key, value in sorted(configs.items())
        ],
        stored_description_topology_epoch=stored,
        failed_description_topology_epoch=failed,
    )
