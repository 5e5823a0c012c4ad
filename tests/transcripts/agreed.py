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

AGREED: dict[str, list[str]] = {"produce_bad_payloads": _UNREAD}
