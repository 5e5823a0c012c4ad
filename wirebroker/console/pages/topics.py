"""The list of topics, and one topic: partitions, groups, configs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wirebroker.console.model import details
from wirebroker.console.pages.config_list import chosen_configs
from wirebroker.console.pages.page import asked, collector_of, page, topic_of
from wirebroker.console.view.formats import rate, size, size_rate
from wirebroker.console.view.paging import ListQuery, page_of
from wirebroker.console.view.plots import PlotLine, bar_plot, line_plot

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request
    from starlette.responses import Response

    from wirebroker.console.model.snapshot import ClusterSnapshot
    from wirebroker.console.model.topic_info import PartitionInfo, TopicInfo

# Bars of the partition skew; more cannot be told apart.
_MOST_BARS: Final = 200


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
