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
