"""Configs of data directories and maintenance intervals. Defaults of topics: rows/topic.py."""

from __future__ import annotations

from typing import Final

from wirebroker.config.rows.forms import integer, items, long
from wirebroker.config.rows.texts import path_wish

ROWS: Final = (
    items(
        "log.dirs",
        None,
        "Data directories. If unset: log.dir.",
        check=path_wish,
        profile="./data",
    ),
    items(
        "log.dir",
        "/tmp/kafka-logs",  # noqa: S108 - Kafka's default
        "Data directory if log.dirs is unset.",
        check=path_wish,
    ),
    long(
        "replica.high.watermark.checkpoint.interval.ms",
        5000,
        "Interval at which high watermarks are written to disk.",
    ),
    integer(
        "log.flush.offset.checkpoint.interval.ms",
        60_000,
        "Interval at which recovery points are written to disk. After an unclean stop, recovery "
        "reads logs from there.",
        0,
    ),
    integer(
        "log.flush.start.offset.checkpoint.interval.ms",
        60_000,
        "Interval at which log start offsets are written to disk; DeleteRecords does not wait "
        "for it.",
        0,
    ),
    long(
        "log.initial.task.delay.ms",
        30_000,
        "Delay between the start and the first retention check and checkpoints.",
        0,
        internal=True,
    ),
    long(
        "log.retention.check.interval.ms",
        300_000,
        "Interval at which logs are checked for segments to delete by retention.",
        1,
    ),
)
