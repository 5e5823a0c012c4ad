"""Differences that are agreed on: each stands in docs/compatibility.md with its reason.

By transcript, the sentences that its replay on wirebroker prints, all of them and no other. So a
difference that goes away has to leave this list too.
"""

from __future__ import annotations

# The records of a batch are not read on Produce, only its header, size and checksum.
_UNREAD = [
    "line 7, send Produce 9:",
    "  responses[pbp-more].partition_responses[0].error_code: "
    "Kafka says 87 INVALID_RECORD, we say 0 NONE",
    "  responses[pbp-more].partition_responses[0].base_offset: Kafka says -1, we say 0",
    "line 25, send Produce 9:",
    "  responses[pbp-zstd].partition_responses[0].error_code: "
    "Kafka says -1 UNKNOWN_SERVER_ERROR, we say 0 NONE",
    "  responses[pbp-zstd].partition_responses[0].base_offset: Kafka says -1, we say 0",
    "line 43, send Produce 9:",
    "  responses[pbp-gzip].partition_responses[0].error_code: "
    "Kafka says -1 UNKNOWN_SERVER_ERROR, we say 0 NONE",
    "  responses[pbp-gzip].partition_responses[0].base_offset: Kafka says -1, we say 0",
]

# An older client has ended its transaction in the epoch that follows the fenced producer's.
_NO_RETRY = [
    "line 410, send EndTxn 5:",
    "  error_code: Kafka says 0 NONE, we say 90 PRODUCER_FENCED",
    "  producer_id: Kafka says P2, we say -1",
    "  producer_epoch: Kafka says 1, we say -1",
    "line 420, send EndTxn 5:",
    "  error_code: Kafka says 48 INVALID_TXN_STATE, we say 90 PRODUCER_FENCED",
]

AGREED: dict[str, list[str]] = {
    "end_txn_of_zombies": _NO_RETRY,
    "produce_bad_payloads": _UNREAD,
}
