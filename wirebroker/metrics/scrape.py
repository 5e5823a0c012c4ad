"""The route /metrics: a walk through the broker, in slices, that writes one page.

    counts, led partitions, topics' traffic    from this node's replicas
    cluster                                    from the metadata
    groups and their lags                      from the coordinator's shards
    the table of metrics                       unchanged (base/metrics.py)

One scrape runs at a time.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from wirebroker.base import client_metric_names
from wirebroker.base.clock import Slices
from wirebroker.base.metric_field import Histogram, samples
from wirebroker.base.threads import Work, in_thread
from wirebroker.base.version import version_text
from wirebroker.http.message import HttpAnswer
from wirebroker.metrics.broker_rows import (
    BROKER_ROWS,
    BUILD_ROWS,
    DELAYED_OPERATIONS,
    PURGATORY_ROWS,
    BrokerCounts,
    BrokerPhase,
)
from wirebroker.metrics.client_rows import add_client_metrics
from wirebroker.metrics.cluster_page import add_cluster
from wirebroker.metrics.connection_rows import (
    MOST_QUOTA_SERIES,
    add_accept_rates,
    add_connections,
    add_quota_usage,
    client_dialects,
)
from wirebroker.metrics.disk_rows import add_cleaner, add_flushes
from wirebroker.metrics.group_lag import GroupLags
from wirebroker.metrics.group_page import add_groups, add_lags
from wirebroker.metrics.page import CONTENT_TYPE, Page, label_texts
from wirebroker.metrics.partition_rows import (
    ALL_TRAFFIC_ROWS,
    PARTITION_ROWS,
    TOPIC_ROWS,
    TRAFFIC_ROWS,
    LedPartition,
    LedTopic,
    is_at_least,
    is_under_least,
    is_under_replicated,
)
from wirebroker.metrics.process_facts import PROCESS_ROWS, read_process_facts
from wirebroker.metrics.raft_rows import add_raft
from wirebroker.metrics.recent_quantiles import RecentQuantiles
from wirebroker.metrics.request_rows import add_requests
from wirebroker.metrics.share_rows import add_share_partitions
from wirebroker.replica.traffic import TrafficSum

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from wirebroker.api.broker import Broker
    from wirebroker.base.clock import Clock
    from wirebroker.base.metrics import Metrics
    from wirebroker.config import Config
    from wirebroker.coordinator.controller.image.cluster_image import TopicImage
    from wirebroker.http.message import HttpRequest
    from wirebroker.http.routes import Routes
    from wirebroker.maintenance.compactor import Compactor
    from wirebroker.metrics.page import LabelTexts
    from wirebroker.net.connection_table import ConnectionTable
    from wirebroker.quorum.raft.raft_figures import RaftFigures
    from wirebroker.replica.partition import Partition

_NO_LABELS: Final = label_texts(())
# Over a shorter time the idle ratio means nothing.
_SHORTEST_IDLE_S: Final = 1.0


class Scraped(Protocol):
    """The parts of the server that a scrape needs."""

    config: Config
    clock: Clock
    metrics: Metrics
    broker: Broker | None  # None before it is opened
    compactor: Compactor | None

    @property
    def is_controller(self) -> bool:
        """See Server."""
        ...

    @property
    def connections(self) -> ConnectionTable | None:
        """See Server."""
        ...

    def raft_figures(self) -> RaftFigures:
        """See Server."""
        ...


def add_metrics(routes: Routes, server: Scraped) -> None:
    """Add the route."""
    scrape = Scrape(server)

    async def metrics(request: HttpRequest) -> HttpAnswer:
        names = request.fields.get("name[]", ())
        return HttpAnswer(await scrape.page(names), content_type=CONTENT_TYPE)

    routes.add("GET", "/metrics", metrics)


class Scrape:
    """Writes the pages of one broker."""

    __slots__ = ("_idle", "_lags", "_lock", "_loop_before", "_recent", "_server")

    def __init__(self, server: Scraped) -> None:
        self._server = server
        self._lock = asyncio.Lock()
        self._lags: GroupLags | None = None
        self._recent = RecentQuantiles(server.clock)
        self._idle = 1.0
        # When the idle time was last read, and the loop's working time by then.
        self._loop_before = server.clock.monotonic(), server.metrics.loop_hold_ms.total

    async def page(self, names: Collection[str] = ()) -> bytes:
        """Return the current page, or only the metrics with these names."""
        async with self._lock:
            server = self._server
            dialects = server.config.list("wirebroker.metrics.dialects")
            page = Page(dialects, names)
            slices = Slices(server.clock)
            await self._add_clients(page, client_dialects(dialects, names), slices)
            if names and client_metric_names.ALL.issuperset(names):
                return page.text()
            self._add_table(page)
            meters = server.metrics.request_meters
            await add_requests(page, meters, self._recent, dialects, slices)
            build = label_texts((("version", version_text()),))
            await slices.run(page.add(BUILD_ROWS, [(build, None)]))
            process = await in_thread(Work.UPKEEP, read_process_facts)
            if process is not None:
                await slices.run(page.add(PROCESS_ROWS, [(_NO_LABELS, process)]))
            counts = BrokerCounts(BrokerPhase.RECOVERY, idle=self._idle_now())
            if server.broker is not None:
                await self._add_broker(page, counts, server.broker, slices)
                add_flushes(page, server.broker, self._recent, dialects)
                if server.compactor is not None:
                    now_s = server.clock.monotonic()
                    await add_cleaner(page, server.broker, server.compactor, now_s, slices)
            self._recent.page_ends()
            await slices.run(page.add(BROKER_ROWS, [(_NO_LABELS, counts)]))
            return page.text()

    async def _add_clients(self, page: Page, dialects: Sequence[str], slices: Slices) -> None:
        """Add the metrics that a console reads often with `name[]`; they cost little."""
        server = self._server
        if server.connections is not None:
            await add_connections(page, server.connections.sessions(), dialects, slices)
            # In test mode the network keeps the system's clock, by which connections are counted.
            now_s = server.connections.clock.monotonic()
            rates = server.connections.quotas.address_rates(now_s, MOST_QUOTA_SERIES)
            add_accept_rates(page, rates)
        if server.broker is not None:
            quotas = server.broker.quotas
            now_ms = quotas.monotonic_s() * 1000
            await add_quota_usage(page, quotas.by_name(), now_ms, dialects, slices)

    def _idle_now(self) -> float:
        before, worked_before_ms = self._loop_before
        now, worked_ms = self._server.clock.monotonic(), self._server.metrics.loop_hold_ms.total
        if now - before >= _SHORTEST_IDLE_S:
            self._loop_before = now, worked_ms
            worked = (worked_ms - worked_before_ms) / 1000 / (now - before)
            self._idle = min(1.0, max(0.0, 1.0 - worked))
        return self._idle

    def _add_table(self, page: Page) -> None:
        dialects = self._server.config.list("wirebroker.metrics.dialects")
        for row, label, value in samples(self._server.metrics):
            for name in _names(row.name, dialects):
                if isinstance(value, Histogram):
                    page.add_histogram(name, row.doc, value)
                else:
                    labels = zip(row.label.split(","), label.split(","), strict=True)
                    page.add_one(name, row.kind, row.doc, tuple(labels) if row.label else (), value)

    async def _add_broker(
        self, page: Page, counts: BrokerCounts, broker: Broker, slices: Slices
    ) -> None:
        counts.state = (
            BrokerPhase.PENDING_CONTROLLED_SHUTDOWN if broker.is_stopping else BrokerPhase.RUNNING
        )
        counts.node_id = broker.node_id
        counts.fetch_sessions = len(broker.fetch_sessions)
        counts.fetch_session_partitions = broker.fetch_sessions.partition_count
        directories = broker.replicas.directories
        counts.offline_directories = sum(not directory.is_online for directory in directories)
        counts.cordoned_directories = sum(directory.is_cordoned for directory in directories)
        await self._add_partitions(page, counts, broker, slices)
        await add_cluster(
            page, broker.metadata.image, slices, is_controller=self._server.is_controller
        )
        await add_raft(page, self._server.raft_figures(), slices)
        await self._add_groups(page, counts, broker, slices)
        if broker.client_metrics is not None:
            await add_client_metrics(page, broker.client_metrics, slices)
        operations = [
            (label_texts((("delayedOperation", name),)), counts.waiting[name])
            for name in DELAYED_OPERATIONS
        ]
        await slices.run(page.add(PURGATORY_ROWS, operations))

    async def _add_partitions(
        self, page: Page, counts: BrokerCounts, broker: Broker, slices: Slices
    ) -> None:
        led: list[tuple[LabelTexts, LedPartition]] = []
        topics: list[tuple[LabelTexts, LedTopic]] = []
        traffic: list[tuple[LabelTexts, TrafficSum]] = []
        everything = TrafficSum()
        everything.add_sum(broker.replicas.deleted_traffic)
        for topic in list(broker.metadata.image.topics.values()):
            local_partitions, _ = broker.replicas.find(topic.name, b"", by_id=False)
            labels = label_texts((("topic", topic.name),))
            sums = TrafficSum()
            led_partitions: list[LedPartition] = []
            for partition in list(local_partitions.values()):
                sums.add(partition.traffic, partition.log)
                counts.waiting["Fetch"] += partition.waiting_fetches
                counts.waiting["Produce"] += partition.waiting_produces
                led_partition = _count_replica(topic, partition, counts)
                if led_partition is not None and partition.is_leader:
                    led_partitions.append(led_partition)
                    index = ("partition", str(partition.index))
                    led.append((label_texts((index, ("topic", topic.name))), led_partition))
                await slices.turn()
            if local_partitions:
                everything.add_sum(sums)
                traffic.append((labels, sums))
            if any(led_partition.partition.index == 0 for led_partition in led_partitions):
                topics.append((labels, _topic_facts(topic, led_partitions)))
            await slices.turn()
        await slices.run(page.add(PARTITION_ROWS, led))
        await slices.run(page.add(TOPIC_ROWS, topics))
        await slices.run(page.add(TRAFFIC_ROWS, [(_NO_LABELS, everything), *traffic]))
        await slices.run(page.add(ALL_TRAFFIC_ROWS, [(_NO_LABELS, everything)]))

    async def _add_groups(
        self, page: Page, counts: BrokerCounts, broker: Broker, slices: Slices
    ) -> None:
        kinds = await add_groups(page, counts, broker, slices)
        if self._lags is None:
            self._lags = GroupLags(broker)
        await add_lags(page, await self._lags.find(slices), kinds, slices)
        await add_share_partitions(page, broker, slices)


class _Named(NamedTuple):
    """A metric's name in the table and in Confluent's dialect."""

    ours: str
    confluent: str


# Prefixes that Confluent's rules replace.
_CONFLUENT: Final = (
    _Named(
        "kafka_network_requestmetrics_requests_total",
        "kafka_network_requestmetrics_requestspersec",
    ),
    _Named("kafka_server_socket_server_metrics_", "kafka_server_socketservermetrics_"),
)


def _names(name: str, dialects: Iterable[str]) -> list[str]:
    names = [name] if name.startswith("wirebroker_") or "strimzi" in dialects else []
    if "confluent" in dialects and not name.startswith("wirebroker_"):
        confluent_name = name
        for replacement in _CONFLUENT:
            confluent_name = confluent_name.replace(replacement.ours, replacement.confluent)
        names += [confluent_name] if confluent_name not in names else []
    return names


def _count_replica(
    topic: TopicImage, partition: Partition, counts: BrokerCounts
) -> LedPartition | None:
    """Count a replica; return it with its metadata, or None."""
    image = topic.partitions.get(partition.index)
    counts.partitions += 1
    counts.offline += not partition.directory.is_online
    if image is None:
        return None
    min_isr = min(partition.log.settings.min_insync_replicas, len(image.replicas))
    led_partition = LedPartition(partition, image, min_isr)
    if partition.is_leader:
        counts.led += 1
        counts.under_replicated += is_under_replicated(led_partition)
        counts.under_least += is_under_least(led_partition)
        counts.at_least += is_at_least(led_partition)
    return led_partition


def _topic_facts(topic: TopicImage, led_partitions: Sequence[LedPartition]) -> LedTopic:
    logs = [led_partition.partition.log for led_partition in led_partitions]
    return LedTopic(
        partition_count=len(topic.partitions),
        end_sum=sum(log.high_watermark for log in logs),
        start_sum=sum(log.log_start_offset for log in logs),
        bytes=sum(log.segments.size_bytes for log in logs),
    )
