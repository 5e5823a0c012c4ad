"""Prometheus's text format: families of samples, each with its type and help.

    # HELP kafka_log_log_size Bytes of a log.
    # TYPE kafka_log_log_size gauge
    kafka_log_log_size{partition="0",topic="orders"} 1024

prometheus-client would be five times slower (docs/decisions/0017).

Source: Prometheus's text format, version 0.0.4.
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
# Samples per step: about 0.3 ms.
_CHUNK: Final = 500

_ESCAPES: Final = {ord("\\"): "\\\\", ord("\n"): "\\n", ord('"'): '\\"'}
_KMINION_LABELS: Final = {
    "consumergroup": "group_id",
    "partition": "partition_id",
    "topic": "topic_name",
}

# In output order.
Labels = tuple[tuple[str, str], ...]


class LabelTexts(NamedTuple):
    """Labels as text, `{a="b"}` or empty; `usual` is for all dialects but kminion."""

    usual: str
    kminion: str


def label_texts(labels: Labels) -> LabelTexts:
    """Return labels as text."""
    return LabelTexts(
        _written(labels),
        _written((_KMINION_LABELS.get(name, name), value) for name, value in labels),
    )


class Page:
    """A page under construction."""

    __slots__ = ("_dialects", "_families", "_names")

    def __init__(self, dialects: Iterable[str], names: Iterable[str] = ()) -> None:
        """`names` has the names of the metrics to write; by default all are written."""
        self._dialects = frozenset(dialects)
        self._names = frozenset(names)
        # A family's samples must be contiguous.
        self._families: dict[str, list[str]] = {}

    def add(
        self, rows: Iterable[ShownRow[Fact]], labeled_facts: Sequence[tuple[LabelTexts, Fact]]
    ) -> Steps[None]:
        """Add the samples of a table's rows for labeled facts."""
        for row in rows:
            read = row.read
            for name, dialect in row.names(self._dialects):
                lines = self._family(name, row.kind, row.doc)
                for start in range(0, len(labeled_facts), _CHUNK):
                    for texts, fact in labeled_facts[start : start + _CHUNK]:
                        value = read(fact)
                        if value is not None:
                            text = texts.kminion if dialect == "kminion" else texts.usual
                            lines.append(f"{name}{text} {value}\n")
                    yield

    def add_one(self, name: str, kind: Kind, doc: str, labels: Labels, value: float) -> None:
        """Add one sample."""
        self._family(name, kind, doc).append(f"{name}{_written(labels)} {value}\n")

    def add_histogram(self, name: str, doc: str, histogram: Histogram) -> None:
        """Add a histogram."""
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
        """Add a histogram by its ascending bounds, each with the number of values up to it."""
        lines = self._family(name, Kind.HISTOGRAM, doc)
        for bound, up_to in (*counts, ("+Inf", count)):
            lines.append(f"{name}_bucket{_written((*labels, ('le', str(bound))))} {up_to}\n")
        written = _written(labels)
        lines.append(f"{name}_sum{written} {total}\n{name}_count{written} {count}\n")

    def text(self) -> bytes:
        """Return the page without empty families."""
        names = self._names
        families = (
            lines
            for name, lines in self._families.items()
            if len(lines) > 1 and (not names or name in names)
        )
        return "".join(line for lines in families for line in lines).encode()

    def _family(self, name: str, kind: Kind, doc: str) -> list[str]:
        lines = self._families.get(name)
        if lines is None:
            doc = doc.replace("\\", "\\\\").replace("\n", "\\n")
            # Parsers require the suffix _total of counters; the exporters' rules use untyped, too.
            is_plain = kind is Kind.COUNTER and not name.endswith("_total")
            head = f"# HELP {name} {doc}\n# TYPE {name} {'untyped' if is_plain else kind.value}\n"
            lines = self._families[name] = [head]
        return lines


def _written(labels: Iterable[tuple[str, str]]) -> str:
    inside = ",".join(f'{name}="{value.translate(_ESCAPES)}"' for name, value in labels)
    return f"{{{inside}}}" if inside else ""
