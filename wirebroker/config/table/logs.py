"""Where data lies, and how often it is looked after. Defaults of topics: topic.py."""

from __future__ import annotations

from typing import Final

from wirebroker.config.rows.forms import integer, items, long
from wirebroker.config.rows.texts import path_wish

ROWS: Final = (
    items(
        "log.dirs",
        None,
        "Where data lies. If unset: log.dir.",
        check=path_wish,
        profile="./data",
    ),
    items(
        "log.dir",
        "/tmp/kafka-logs",  # noqa: S108 - Kafka's default
        "Where data lies if log.dirs is unset.",
        check=path_wish,
    ),
    long(
        "replica.high.watermark.checkpoint.interval.ms",
        5000,
        "How often high watermarks are written down.",
    ),
    integer(
        "log.flush.offset.checkpoint.interval.ms",
        60_000,
        "How often it is written down what is on the disk for sure: an unclean stop's restart "
        "reads the rest.",
        0,
    ),
    integer(
        "log.flush.start.offset.checkpoint.interval.ms",
        60_000,
        "How often log start offsets are written down; DeleteRecords does not wait for it.",
        0,
    ),
    long(
        "log.initial.task.delay.ms",
        30_000,
        "Time from the start to the first retention check and checkpoints.",
        0,
        internal=True,
    ),
    long(
        "log.retention.check.interval.ms",
        300_000,
        "How often logs are looked at for segments that retention deletes.",
        1,
    ),
)
