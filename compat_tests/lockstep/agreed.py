"""Agreed differences, each with its reason and its cost to users.

A row names the kind of steps ("any" for all), the step (a pattern for its command), the difference
(a pattern for a sentence of `tests/transcripts/comparing.py`), the reason, and the cost. Where a
kind avoids a request, its code says why.

Every row must be used: 300 steps of the default seed need it (checked by test_lockstep.py), or the
row says why they do not.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from tests.support.tools.tools import KAFKA_VERSION


class Agreed(NamedTuple):
    kind: str
    command: str
    sentence: str
    reason: str
    cost: str
    idle_because: str = ""


_BESIDE_4_3 = (
    Agreed(
        "any",
        ".*",
        r".*\.configs\[(errors\.deadletterqueue\.group\.enable|max\.decompressed\.message\.bytes"
        r"|remote\.copy\.lag\.(bytes|ms))\]: we say .*, Kafka leaves it out",
        "Apache Kafka 4.3 does not have these configs.",
        "None: they have their defaults.",
        "only beside 4.3",
    ),
    Agreed(
        "any",
        "(send|frame) (ApiVersions|UpdateFeatures) .*",
        r"((api_keys|supported_features)\[|[0-9a-f]{32}: ).*",
        "Apache Kafka 4.3 has fewer versions and levels.",
        "None: clients choose what both sides support.",
        "only beside 4.3",
    ),
)
AGREED: tuple[Agreed, ...] = (
    Agreed(
        "any",
        "send ListOffsets .*",
        "the same in another order",
        "Apache Kafka returns partitions in the order of a hash table, wirebroker in the order of"
        " the request.",
        "None: every partition of the response has its index.",
    ),
    Agreed(
        "any",
        "send ListOffsets .*",
        r".*\.(timestamp|offset|leader_epoch): Kafka says -1, we say (\d+|the broker's clock)",
        "Until Apache Kafka removes the segments below the log start, as it does within five"
        " minutes of DeleteRecords, it looks a time up in one of them if it reaches that time, and"
        " finds nothing; wirebroker finds the first remaining record.",
        "None: a consumer that searches by time does not skip remaining records.",
        "other seeds show it (101 did)",
    ),
    Agreed(
        "admin",
        "send DescribeQuorum .*",
        r".*\.(high_watermark|log_end_offset|leader_epoch|\w+_timestamp): Kafka says .*"
        r"|nodes\[0\]\.listeners.*",
        "The two metadata logs hold different records (listed in compat_tests/twin), and"
        " wirebroker's one-voter controller holds no elections and has no listener.",
        "Tools that compare controllers see only one.",
    ),
    Agreed(
        "share-fetches",
        "send ShareAcknowledge .*",
        r"error_code: Kafka says -1 UNKNOWN_SERVER_ERROR, we say 0 NONE"
        r"|acquisition_lock_timeout_ms: Kafka says 0, we say .*"
        r"|responses: Kafka says \[\], we leave it out"
        r"|responses\[\d+\]\..*: we say .*, Kafka leaves it out",
        "An acknowledgement that begins before the first record in flight and ends after it makes"
        " Apache Kafka's code fail (a missing key of a map); wirebroker refuses it with"
        " INVALID_RECORD_STATE.",
        "None: no client acknowledges records that it has not received.",
        "other seeds show it (1)",
    ),
    Agreed(
        "share-fetches",
        "send ShareFetch .*",
        r".*\.records then \d+ bytes of the next batch: Kafka says so, we leave it out",
        "If the records exceed max_bytes, Apache Kafka may add the beginning of the next batch.",
        "None: clients skip a partial batch.",
        "other seeds show it (4)",
    ),
    Agreed(
        "share-groups",
        "send DescribeShareGroupOffsets .*",
        r"groups\[\]\..*",
        "Apache Kafka's code fails for the empty group id; wirebroker has no offsets of it.",
        "None: no group has this id.",
    ),
    Agreed(
        "streams-groups",
        "send StreamsGroupHeartbeat .*",
        r"(active|standby|warmup)_tasks: Kafka says null, we (say \[\]|leave it out)"
        r"|(active|standby|warmup)_tasks\[\w+\]\.\w+: we say .*, Kafka leaves it out",
        "If a member reports tasks that differ from its assignment, wirebroker repeats the"
        " assignment.",
        "None: after a lost response the member learns its tasks.",
        "other seeds may show it: only after a lost response",
    ),
    Agreed(
        "streams-groups",
        "send StreamsGroupDescribe .*",
        r".*_topics\[\d+\]\.partitions: Kafka says 0, we say \d+",
        "Apache Kafka describes the group as of its last record: a topology that was configured"
        " since then has no partition counts yet.",
        "None: tools show the counts earlier.",
        "other seeds show it (7)",
    ),
    Agreed(
        "restarts",
        "send Produce .*",
        r".*\.(error_code: Kafka says 45 \w+, we say 0 NONE"
        r"|(base_offset|log_append_time_ms): Kafka says -1, we say .*)"
        r"|the connection is closed: Kafka says so, we leave it out"
        r"|no answer: we say so, Kafka leaves it out",
        "After a kill wirebroker still knows each producer's last five batches; Apache Kafka reads"
        " its snapshot and knows only the last one.",
        "None: a repeated batch is recognized where Apache Kafka refuses it.",
        "other seeds show it (1)",
    ),
    *(_BESIDE_4_3 if KAFKA_VERSION.startswith("4.3.") else ()),
)


def row_for(
    kind: str, command: str, sentence: str, table: tuple[Agreed, ...] = AGREED
) -> Agreed | None:
    for row in table:
        is_meant = row.kind in ("any", kind) and re.fullmatch(row.command, command)
        if is_meant and re.fullmatch(row.sentence, sentence):
            return row
    return None
