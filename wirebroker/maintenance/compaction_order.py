"""The input of a compaction worker: the job and its limits, as one line of JSON."""

from __future__ import annotations

import json
import os
from typing import Any, NamedTuple

from wirebroker.codecs.json_text import parse_json
from wirebroker.storage.compaction.compaction import CompactionJob
from wirebroker.storage.compaction.filter import ActiveProducer


class Limits(NamedTuple):
    """The limits of a compaction."""

    map_bytes: int
    load_factor: float
    bytes_per_second: float  # read and written


def encode_order(job: CompactionJob, limits: Limits) -> bytes:
    """Return the worker's input."""
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
