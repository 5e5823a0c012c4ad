"""Rows of the metric tables: a number, its meaning, and its name in each dialect.

    ShownRow("Bytes of a log.", lambda each: each.partition.log.segments.size_bytes,
             jmx="kafka_log_log_size")

Numbers with the same meaning share a row. The same number of another thing (a topic's bytes, and
all topics') has its own.

Dialects, each with the dashboards that expect it:

    exporter    danielqsj/kafka_exporter: Grafana 7589 and 721
    strimzi     Strimzi's rules for the JMX exporter
    confluent   Confluent's rules for the JMX exporter, Grafana Cloud's integration
    kminion     redpanda-data/kminion
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from wirebroker.base.metric_field import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

Fact = TypeVar("Fact")

DIALECTS: Final = ("exporter", "strimzi", "confluent", "kminion")
_OF_JMX: Final = ("strimzi", "confluent")


@dataclass(frozen=True, slots=True)
class ShownRow(Generic[Fact]):
    """One number of each thing of a kind.

    Attributes:
        read: Returns a thing's number; None if it has none now.
        exporter: The name in that dialect, or empty. Likewise the next three.
        jmx: The name in both dialects of the JMX exporter.
        own: The name in every dialect.
    """

    doc: str
    read: Callable[[Fact], float | None]
    kind: Kind = Kind.GAUGE
    exporter: str = ""
    strimzi: str = ""
    confluent: str = ""
    kminion: str = ""
    jmx: str = ""
    own: str = ""

    def names(self, dialects: Collection[str]) -> Iterator[tuple[str, str]]:
        """Yield the names in some dialects."""
        yielded: set[str] = set()
        if self.own:
            yield self.own, "own"
        for dialect in DIALECTS:
            name: str = getattr(self, dialect) or (self.jmx if dialect in _OF_JMX else "")
            if dialect in dialects and name and name not in yielded:
                yielded.add(name)
                yield name, dialect
