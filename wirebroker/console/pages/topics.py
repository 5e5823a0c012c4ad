"""The list of topics, and one topic: partitions, groups, configs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from wirebroker.base.text import few_of
from wirebroker.console.changes.field_values import time_of
from wirebroker.console.model import details
from wirebroker.console.pages.config_list import chosen_configs
from wirebroker.console.pages.page import (
    Answer,
    allowed_changes,
    asked,
    collector_of,
    console_of,
    page,
    topic_of,
)
from wirebroker.console.records.written import written_between
from wirebroker.console.view.formats import rate, size, size_rate
from wirebroker.console.view.paging import ListQuery, page_of
from wirebroker.console.view.plots import PlotLine, bar_plot, line_plot

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from wirebroker.console.model.snapshot import ClusterSnapshot
    from wirebroker.console.model.topic_info import PartitionInfo, TopicInfo
    from wirebroker.console.records.written import WrittenRanges

# Bars of the partition skew; more cannot be told apart.
_MOST_BARS: Final = 200
# Of an entered time.
_MOST_TIME: Final = 40
# Of partitions without a leader.
_MOST_NAMED: Final = 20


def _records(row: PartitionInfo) -> int | None:
    if row.start_offset is None or row.end_offset is None:
        return None
    return row.end_offset - row.start_offset


def _partition_columns() -> dict[str, Callable[[PartitionInfo], Any]]:
    return {
        "partition": lambda row: row.partition,
        "leader": lambda row: row.leader,
        "records": _records,
        "size": lambda row: row.size_bytes,
        "rate": lambda row: row.records_per_s,
        "isr": lambda row: len(row.replicas) - len(row.isr),
    }


async def topics(request: Request) -> Response:
    """Show a page of the topics."""
    snapshot = collector_of(request).snapshot
    with_internal = request.query_params.get("internal") == "1"
    may_delete = allowed_changes(request).allows("delete-topics")
    rows = [topic for topic in snapshot.topics.values() if with_internal or not topic.is_internal]
    listed = await page_of(
        rows,
        ListQuery.of(request.query_params),
        name=lambda topic: topic.name,
        columns={
            "name": lambda topic: topic.name,
            "partitions": lambda topic: topic.partition_count,
            "records": lambda topic: topic.record_count,
            "size": lambda topic: topic.size_bytes,
            "rate": lambda topic: topic.records_per_s,
            "problems": lambda topic: topic.leaderless_count * 1000 + topic.under_replicated_count,
        },
        default_sort="name",
    )
    sparks = {
        topic.name: snapshot.history.points("topic", topic.name, "records_per_s")
        for topic in listed.rows
    }
    return page(
        request,
        "topics.html",
        section="topics",
        listed=listed,
        sparks=sparks,
        with_internal=with_internal,
        is_selecting=may_delete and request.query_params.get("select") == "1",
        internal_count=sum(topic.is_internal for topic in snapshot.topics.values()),
    )


async def topic(request: Request) -> Response:
    """Show a topic: its partitions, rates, sizes and groups."""
    snapshot = collector_of(request).snapshot
    found = topic_of(request, snapshot)
    partitions = await page_of(
        found.partitions,
        ListQuery.of(request.query_params),
        name=lambda row: f"{row.partition:010d}",
        columns=_partition_columns(),
        default_sort="partition",
    )
    return page(
        request,
        "topic.html",
        section="topics",
        topic=found,
        tab="partitions",
        listed=partitions,
        groups=[snapshot.groups[name] for name in found.groups if name in snapshot.groups],
        **_plots(snapshot, found),
    )


async def topic_configs(request: Request) -> Response:
    """Show a topic's configs."""
    collector = collector_of(request)
    found = topic_of(request, collector.snapshot)
    answer = await asked(details.configs(collector, "topic", found.name))
    return page(
        request,
        "topic_configs.html",
        section="topics",
        topic=found,
        tab="configs",
        configs=chosen_configs(answer, request.query_params),
    )


async def topic_written(request: Request) -> Response:
    """Show how many records were written in a range of time, by partition and in total."""
    collector = collector_of(request)
    found = topic_of(request, collector.snapshot)
    ranges = _ranges(console_of(request).clock.now_ms())
    texts = {
        name: request.query_params.get(name, "").strip()[:_MOST_TIME] for name in ("from", "until")
    }
    chosen = texts if any(texts.values()) else ranges[0][1]
    answer: Answer[WrittenRanges]
    try:
        times = _times(chosen, console_of(request).clock.now_ms())
    except ValueError as error:
        answer = Answer(None, str(error))
    else:
        answer = await asked(written_between(collector.client, found.name, *times))
    listed = await page_of(
        [] if answer.value is None else answer.value.ranges,
        ListQuery.of(request.query_params),
        name=lambda row: f"{row.partition:010d}",
        columns={"partition": lambda row: row.partition, "count": lambda row: row.offsets},
        default_sort="partition",
    )
    return page(
        request,
        "topic_written.html",
        section="topics",
        topic=found,
        tab="written",
        ranges=ranges,
        chosen=chosen,
        failure=answer.failure,
        listed=listed,
        total=None if answer.value is None else sum(row.offsets for row in answer.value.ranges),
        leaderless=None if answer.value is None else _leaderless_text(answer.value.leaderless),
    )


def _leaderless_text(partitions: Sequence[int]) -> str:
    """Return a sentence on partitions that are not counted, or nothing."""
    numbers = few_of([str(partition) for partition in partitions], _MOST_NAMED)
    if len(partitions) == 1:
        return f"Partition {numbers} has no leader and is not counted."
    return f"Partitions {numbers} have no leader and are not counted." if partitions else ""


def _ranges(now_ms: int) -> list[tuple[str, dict[str, str]]]:
    """Return titles of usual ranges, and their values of the form; days are in UTC."""
    today = datetime.fromtimestamp(now_ms / 1000, UTC).date()
    yesterday = today - timedelta(days=1)
    return [
        ("Last hour", {"from": "1h", "until": ""}),
        ("Today (UTC)", {"from": f"{today}", "until": ""}),
        ("Yesterday (UTC)", {"from": f"{yesterday}", "until": f"{today}"}),
        ("Last 7 days", {"from": "7d", "until": ""}),
    ]


def _times(values: Mapping[str, str], now_ms: int) -> tuple[int, int | None]:
    """Return the times of a range.

    Raises:
        ValueError: A time is missing or invalid; the message is for the viewer.
    """
    from_ms, until_ms = (time_of(values, name, now_ms) for name in ("from", "until"))
    if from_ms is None:
        raise ValueError("“From” is missing: write a time such as 2026-11-22T10:00, or 2h")
    if until_ms is not None and until_ms < from_ms:
        raise ValueError("the range ends before it begins")
    return from_ms, until_ms


def _plots(snapshot: ClusterSnapshot, topic: TopicInfo) -> dict[str, Any]:
    history = snapshot.history
    bars = [
        (f"partition {row.partition}", float(row.size_bytes or 0))
        for row in topic.partitions[:_MOST_BARS]
    ]
    return {
        "rate_plot": line_plot(
            [PlotLine("records", history.points("topic", topic.name, "records_per_s"))],
            title="Records written per second",
            text_of=rate,
        ),
        "bytes_plot": line_plot(
            [PlotLine("bytes", history.points("topic", topic.name, "bytes_per_s"), "b")],
            title="Bytes written per second",
            text_of=size_rate,
            is_binary=True,
        ),
        "size_plot": line_plot(
            [PlotLine("size", history.points("topic", topic.name, "size_bytes"), "c")],
            title="Size with all replicas",
            text_of=size,
            is_binary=True,
        ),
        "skew_plot": bar_plot(bars, title="Size of each partition", text_of=size, is_binary=True),
        "most_bars": _MOST_BARS,
    }
