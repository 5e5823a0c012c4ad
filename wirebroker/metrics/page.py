"""The text that Prometheus reads: families of samples, each with its type and its help.

    # HELP kafka_log_log_size Bytes of a log.
    # TYPE kafka_log_log_size gauge
    kafka_log_log_size{partition="0",topic="orders"} 1024

Written by hand: prometheus-client takes 70 ms for 18,000 samples where this takes 15
(docs/decisions/0017); its parser reads the page in the tests. Writing yields after every so many
samples, so that a large page is written in slices.

Source: Prometheus' text format, version 0.0.4.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.base.metric_field import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from wirebroker.base.clock import Steps
    from wirebroker.base.metric_field import Histogram
    from wirebroker.metrics.rows import Fact, ShownRow

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
# Samples between two looks at the time: about 0.3 ms.
_CHUNK: Final = 500

_ESCAPES: Final = {ord("\\"): "\\\\", ord("\n"): "\\n", ord('"'): '\\"'}
# What kminion calls the labels that the others share.
_KMINION_LABELS: Final = {
    "consumergroup": "group_id",
    "partition": "partition_id",
    "topic": "topic_name",
}

# Names and values, in the order in which they are written.
Labels = tuple[tuple[str, str], ...]


class LabelTexts(NamedTuple):
    """Labels as they are written, once for all rows of a thing: `{a="b"}`, or nothing.

    Attributes:
        usual: In all dialects but one.
        kminion: In kminion's.
    """

    usual: str
    kminion: str


def label_texts(labels: Labels) -> LabelTexts:
    """Return labels as they are written."""
    return LabelTexts(
        _written(labels),
        _written((_KMINION_LABELS.get(name, name), value) for name, value in labels),
    )


class Page:
    """One page, growing."""

    __slots__ = ("_dialects", "_families")

    def __init__(self, dialects: Iterable[str]) -> None:
        self._dialects = frozenset(dialects)
        # Name -> its lines: all of a family stand together, whoever adds to it.
        self._families: dict[str, list[str]] = {}

    def add(
        self, rows: Iterable[ShownRow[Fact]], things: Sequence[tuple[LabelTexts, Fact]]
    ) -> Steps[None]:
        """Add what rows tell of things.

        Args:
            rows: A table.
            things: What it is about, with what they are told apart by.
        """
        for row in rows:
            read = row.read
            for name, dialect in row.names(self._dialects):
                lines = self._family(name, row.kind, row.doc)
                for start in range(0, len(things), _CHUNK):
                    for texts, fact in things[start : start + _CHUNK]:
                        value = read(fact)
                        if value is not None:
                            text = texts.kminion if dialect == "kminion" else texts.usual
                            lines.append(f"{name}{text} {value}\n")
                    yield

    def add_one(self, name: str, kind: Kind, doc: str, labels: Labels, value: float) -> None:
        """Add a single number."""
        self._family(name, kind, doc).append(f"{name}{_written(labels)} {value}\n")

    def add_histogram(self, name: str, doc: str, histogram: Histogram) -> None:
        """Add a histogram: how many values were at most as large as each bound."""
        *up_to, count = accumulate(histogram.counts)
        counts = zip(histogram.bounds, up_to, strict=True)
        self.add_counts(name, doc, (), counts, total=histogram.total, count=count)

    def add_counts(
        self,
        name: str,
        doc: str,
        labels: Labels,
        counts: Iterable[tuple[float, int]],
        *,
        total: float,
        count: int,
    ) -> None:
        """Add a histogram by its counts.

        Args:
            name: Of the family.
            doc: One sentence.
            labels: Of this histogram.
            counts: Bounds, ascending, each with how many values were at most as large.
            total: The sum of all values.
            count: The number of all values.
        """
        lines = self._family(name, Kind.HISTOGRAM, doc)
        for bound, up_to in (*counts, ("+Inf", count)):
            lines.append(f"{name}_bucket{_written((*labels, ('le', str(bound))))} {up_to}\n")
        written = _written(labels)
        lines.append(f"{name}_sum{written} {total}\n{name}_count{written} {count}\n")

    def text(self) -> bytes:
        """Return the page; families without samples are left out."""
        found = (lines for lines in self._families.values() if len(lines) > 1)
        return "".join(line for lines in found for line in lines).encode()

    def _family(self, name: str, kind: Kind, doc: str) -> list[str]:
        lines = self._families.get(name)
        if lines is None:
            doc = doc.replace("\\", "\\\\").replace("\n", "\\n")
            # As in the rules that these names come from; parsers expect counters to say so.
            is_plain = kind is Kind.COUNTER and not name.endswith("_total")
            head = f"# HELP {name} {doc}\n# TYPE {name} {'untyped' if is_plain else kind.value}\n"
            lines = self._families[name] = [head]
        return lines


def _written(labels: Iterable[tuple[str, str]]) -> str:
    inside = ",".join(f'{name}="{value.translate(_ESCAPES)}"' for name, value in labels)
    return f"{{{inside}}}" if inside else ""
