"""What a broker tells a compaction worker: the job and its limits, one JSON object in a line.

Apart from both, so that a broker's start needs nothing of the worker (compaction_worker.py).
"""

from __future__ import annotations

import json
import os
from typing import Any, NamedTuple

from wirebroker.codecs.json_text import parse_json
from wirebroker.storage.compaction.compaction import CompactionJob
from wirebroker.storage.compaction.filter import ActiveProducer


class Limits(NamedTuple):
    """What a compaction may take."""

    map_bytes: int
    load_factor: float
    bytes_per_second: float  # read and written together


def encode_order(job: CompactionJob, limits: Limits) -> bytes:
    """Return what the worker reads first."""
    fields = job._asdict()
    fields["producers"] = [[number, *value] for number, value in job.producers.items()]
    order = {"job": fields, "limits": limits, "broker": os.getpid()}
    return json.dumps(order).encode() + b"\n"


def decode_order(line: bytes) -> tuple[CompactionJob, Limits, int]:
    """Return the job, its limits and the broker's process id."""
    order: dict[str, Any] = parse_json(line)
    fields: dict[str, Any] = order["job"]
    fields["producers"] = {row[0]: ActiveProducer(*row[1:]) for row in fields["producers"]}
    fields["base_offsets"] = tuple(fields["base_offsets"])
    return CompactionJob(**fields), Limits(*order["limits"]), order["broker"]
