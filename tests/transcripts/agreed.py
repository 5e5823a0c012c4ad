"""Accepted differences from Apache Kafka; docs/compatibility.md has the reason of each.

For each transcript, the exact sentences that its replay on wirebroker must print, so that a
difference that disappears must leave this list. kafka_4_3.json has those of Apache Kafka 4.3.1 and
of a wirebroker with its features; record.py writes it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from tests.support.tools.tools import IS_REFERENCE

OTHER_VERSION: Final = Path(__file__).parent / "kafka_4_3.json"
# These use versions that Apache Kafka 4.3.1 lacks: TxnOffsetCommit v6, StreamsGroupHeartbeat v1.
_NEED_4_4: Final = (
    "authorization_of_streams_groups",
    "streams_group_checks",
    "streams_group_life",
    "streams_group_offsets",
    "streams_group_static",
    "streams_group_statuses",
    "streams_group_topics",
    "txn_offset_commit_by_id",
    "txn_offset_commit_of_members_by_id",
)
# This uses dead letters, which a broker with the features of 4.3 lacks.
_NEEDS_FEATURES_OF_4_4: Final = "share_dead_letters"

# Kafka stores these unreadable records, or fails by accident.
_UNREADABLE = [
    "line 1462, send Produce 9:",
    "  responses[pbp-agreed].partition_responses[0].error_code: "
    "Kafka says 0 NONE, we say 87 INVALID_RECORD",
    "  responses[pbp-agreed].partition_responses[0].base_offset: Kafka says 0, we say -1",
    "line 1476, send Produce 9:",
    "  responses[pbp-agreed].partition_responses[0].error_code: "
    "Kafka says 0 NONE, we say 87 INVALID_RECORD",
    "  responses[pbp-agreed].partition_responses[0].base_offset: Kafka says 2, we say -1",
    "line 1490, send Produce 9:",
    "  responses[pbp-agreed].partition_responses[0].error_code: "
    "Kafka says -1 UNKNOWN_SERVER_ERROR, we say 87 INVALID_RECORD",
    "line 1504, send Produce 9:",
    "  responses[pbp-agreed].partition_responses[0].error_code: "
    "Kafka says 0 NONE, we say -1 UNKNOWN_SERVER_ERROR",
    "  responses[pbp-agreed].partition_responses[0].base_offset: Kafka says 4, we say -1",
]

# An older client ended its transaction in the epoch after the fenced producer's.
_NO_RETRY = [
    "line 410, send EndTxn 5:",
    "  error_code: Kafka says 0 NONE, we say 90 PRODUCER_FENCED",
    "  producer_id: Kafka says P2, we say -1",
    "  producer_epoch: Kafka says 1, we say -1",
    "line 420, send EndTxn 5:",
    "  error_code: Kafka says 48 INVALID_TXN_STATE, we say 90 PRODUCER_FENCED",
]

# wirebroker responds once for a group that is listed twice.
_NAMED_ONCE = [
    "line 820, send OffsetFetch 8:",
    '  groups[of again].group_id: Kafka says "of", we leave it out',
    "  groups[of again].topics: Kafka says [], we leave it out",
    "  groups[of again].error_code: Kafka says 0 NONE, we leave it out",
]

_SHARE_OFFSETS_NAMED_ONCE = [
    "line 580, send DescribeShareGroupOffsets 1 to guest:",
    '  groups[g again].group_id: Kafka says "g", we leave it out',
    '  groups[g again].topics[tea].topic_name: Kafka says "tea", we leave it out',
    "  groups[g again].topics[tea].topic_id: Kafka says none, we leave it out",
    "  groups[g again].topics[tea].partitions[0].partition_index: Kafka says 0, we leave it out",
    "  groups[g again].topics[tea].partitions[0].start_offset: Kafka says -1, we leave it out",
    "  groups[g again].topics[tea].partitions[0].leader_epoch: Kafka says 0, we leave it out",
    "  groups[g again].topics[tea].partitions[0].lag: Kafka says -1, we leave it out",
    "  groups[g again].topics[tea].partitions[0].error_code: "
    "Kafka says 29 TOPIC_AUTHORIZATION_FAILED, we leave it out",
    "  groups[g again].topics[tea].partitions[0].error_message: "
    'Kafka says "Topic authorization failed.", we leave it out',
    "  groups[g again].error_code: Kafka says 0 NONE, we leave it out",
    "  groups[g again].error_message: Kafka says null, we leave it out",
    '  groups[g again].topics[toe].topic_name: Kafka says "toe", we leave it out',
    "  groups[g again].topics[toe].topic_id: Kafka says none, we leave it out",
    "  groups[g again].topics[toe].partitions[0].partition_index: Kafka says 0, we leave it out",
    "  groups[g again].topics[toe].partitions[0].start_offset: Kafka says -1, we leave it out",
    "  groups[g again].topics[toe].partitions[0].leader_epoch: Kafka says 0, we leave it out",
    "  groups[g again].topics[toe].partitions[0].lag: Kafka says -1, we leave it out",
    "  groups[g again].topics[toe].partitions[0].error_code: "
    "Kafka says 29 TOPIC_AUTHORIZATION_FAILED, we leave it out",
    "  groups[g again].topics[toe].partitions[0].error_message: "
    'Kafka says "Topic authorization failed.", we leave it out',
    '  groups[g].topics[tea again].topic_name: we say "tea", Kafka leaves it out',
    "  groups[g].topics[tea again].topic_id: we say none, Kafka leaves it out",
    "  groups[g].topics[tea again].partitions[0].partition_index: we say 0, Kafka leaves it out",
    "  groups[g].topics[tea again].partitions[0].start_offset: we say -1, Kafka leaves it out",
    "  groups[g].topics[tea again].partitions[0].leader_epoch: we say 0, Kafka leaves it out",
    "  groups[g].topics[tea again].partitions[0].lag: we say -1, Kafka leaves it out",
    "  groups[g].topics[tea again].partitions[0].error_code: "
    "we say 29 TOPIC_AUTHORIZATION_FAILED, Kafka leaves it out",
    "  groups[g].topics[tea again].partitions[0].error_message: "
    'we say "Topic authorization failed.", Kafka leaves it out',
    '  groups[g].topics[toe].topic_name: we say "toe", Kafka leaves it out',
    "  groups[g].topics[toe].topic_id: we say none, Kafka leaves it out",
    "  groups[g].topics[toe].partitions[0].partition_index: we say 0, Kafka leaves it out",
    "  groups[g].topics[toe].partitions[0].start_offset: we say -1, Kafka leaves it out",
    "  groups[g].topics[toe].partitions[0].leader_epoch: we say 0, Kafka leaves it out",
    "  groups[g].topics[toe].partitions[0].lag: we say -1, Kafka leaves it out",
    "  groups[g].topics[toe].partitions[0].error_code: "
    "we say 29 TOPIC_AUTHORIZATION_FAILED, Kafka leaves it out",
    "  groups[g].topics[toe].partitions[0].error_message: "
    'we say "Topic authorization failed.", Kafka leaves it out',
]

_CONSUMER_GROUPS_NAMED_ONCE = [
    "line 249, send ConsumerGroupDescribe 0:",
    "  groups[g again].error_code: Kafka says 69 GROUP_ID_NOT_FOUND, we leave it out",
    '  groups[g again].error_message: Kafka says "Group g not found.", we leave it out',
    '  groups[g again].group_id: Kafka says "g", we leave it out',
    '  groups[g again].group_state: Kafka says "", we leave it out',
    "  groups[g again].group_epoch: Kafka says 0, we leave it out",
    "  groups[g again].assignment_epoch: Kafka says 0, we leave it out",
    '  groups[g again].assignor_name: Kafka says "", we leave it out',
    "  groups[g again].members: Kafka says [], we leave it out",
    "  groups[g again].authorized_operations: Kafka says -2147483648, we leave it out",
    "line 718, send ConsumerGroupDescribe 1:",
    "  groups[g again].error_code: Kafka says 69 GROUP_ID_NOT_FOUND, we leave it out",
    '  groups[g again].error_message: Kafka says "Group g not found.", we leave it out',
    '  groups[g again].group_id: Kafka says "g", we leave it out',
    '  groups[g again].group_state: Kafka says "", we leave it out',
    "  groups[g again].group_epoch: Kafka says 0, we leave it out",
    "  groups[g again].assignment_epoch: Kafka says 0, we leave it out",
    '  groups[g again].assignor_name: Kafka says "", we leave it out',
    "  groups[g again].members: Kafka says [], we leave it out",
    "  groups[g again].authorized_operations: Kafka says -2147483648, we leave it out",
    "line 1513, send ConsumerGroupDescribe 1:",
    "  groups[g again].error_code: Kafka says 0 NONE, we leave it out",
    "  groups[g again].error_message: Kafka says null, we leave it out",
    '  groups[g again].group_id: Kafka says "g", we leave it out',
    '  groups[g again].group_state: Kafka says "Empty", we leave it out',
    "  groups[g again].group_epoch: Kafka says 5, we leave it out",
    "  groups[g again].assignment_epoch: Kafka says 5, we leave it out",
    '  groups[g again].assignor_name: Kafka says "range", we leave it out',
    "  groups[g again].members: Kafka says [], we leave it out",
    "  groups[g again].authorized_operations: Kafka says -2147483648, we leave it out",
]

_CLASSIC_GROUPS_NAMED_ONCE = [
    "line 726, send DescribeGroups 6:",
    "  groups[dg-simple again].error_code: Kafka says 0 NONE, we leave it out",
    "  groups[dg-simple again].error_message: Kafka says null, we leave it out",
    '  groups[dg-simple again].group_id: Kafka says "dg-simple", we leave it out',
    '  groups[dg-simple again].group_state: Kafka says "Empty", we leave it out',
    '  groups[dg-simple again].protocol_type: Kafka says "", we leave it out',
    '  groups[dg-simple again].protocol_data: Kafka says "", we leave it out',
    "  groups[dg-simple again].members: Kafka says [], we leave it out",
    "  groups[dg-simple again].authorized_operations: Kafka says -2147483648, we leave it out",
]

# A member in its previous epoch that lacks partitions gets its assignment again.
_REPEATED_ASSIGNMENT = [
    "line 924, send ConsumerGroupHeartbeat 1:",
    "  assignment: Kafka says null, we leave it out",
    "  assignment.topic_partitions[0].topic_id: we say T2, Kafka leaves it out",
    "  assignment.topic_partitions[0].partitions: we say [0, 1, 2], Kafka leaves it out",
]

# No election is possible after the last epoch; Kafka accepts it.
_LAST_EPOCH = [
    "line 21, send Vote 2:",
    "  topics[__cluster_metadata].partitions[0].error_code: "
    "Kafka says 0 NONE, we say 42 INVALID_REQUEST",
    "  topics[__cluster_metadata].partitions[0].leader_id: Kafka says -1, we say 2",
    "  topics[__cluster_metadata].partitions[0].leader_epoch: "
    "Kafka says 2147483647, we say 2147483646",
    "  topics[__cluster_metadata].partitions[0].vote_granted: Kafka says true, we say false",
    "  node_endpoints: Kafka says [], we leave it out",
    "  node_endpoints[0].node_id: we say 2, Kafka leaves it out",
    "  node_endpoints[0].host: we say HOST, Kafka leaves it out",
    "  node_endpoints[0].port: we say PORT, Kafka leaves it out",
]

AGREED: dict[str, list[str]] = {
    "authorization_of_share_groups": _SHARE_OFFSETS_NAMED_ONCE,
    "consumer_group_checks": _CONSUMER_GROUPS_NAMED_ONCE,
    "consumer_group_life": _REPEATED_ASSIGNMENT,
    "describe_groups": _CLASSIC_GROUPS_NAMED_ONCE,
    "end_txn_of_zombies": _NO_RETRY,
    "offset_fetch": _NAMED_ONCE,
    "produce_bad_payloads": _UNREADABLE,
    "quorum/latest_epochs": _LAST_EPOCH,
}


def is_known(kind: str, transcript: str) -> bool:
    """Return whether a kind of broker in the tested version can run a transcript."""
    if IS_REFERENCE:
        return True
    has_versions = kind == "wirebroker" or transcript not in _NEED_4_4
    return has_versions and transcript != _NEEDS_FEATURES_OF_4_4


def agreed_of(kind: str, transcript: str) -> list[str]:
    """Return the accepted differences of a kind of broker in the tested version."""
    if IS_REFERENCE:
        return AGREED.get(transcript, []) if kind == "wirebroker" else []
    differences: dict[str, dict[str, list[str]]] = json.loads(OTHER_VERSION.read_text("utf-8"))
    return differences[kind].get(transcript, [])
