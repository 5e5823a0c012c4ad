"""The page of metrics, read back: what metrics/page.py writes, and no other's.

# HELP kafka_log_log_size Bytes of a log.
# TYPE kafka_log_log_size gauge
kafka_log_log_size{partition="0",topic="orders"} 1024
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_LABEL: Final = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_ESCAPED: Final = re.compile(r"\\(.)")
_MEANS: Final = {"n": "\n"}


@dataclass(slots=True)
class Family:
    """One metric.

    Attributes:
        name: As it is shown.
        doc: One sentence.
        kind: counter, gauge or histogram; untyped, which counters are whose names don't say so.
        samples: Names, labels and numbers; those of a histogram end in _bucket, _sum, _count.
    """

    name: str
    doc: str
    kind: str = ""
    samples: list[tuple[str, dict[str, str], float]] = field(
        default_factory=list[tuple[str, dict[str, str], float]]
    )


def families_of(page: bytes) -> Iterator[Family]:
    """Yield the metrics of a page, in its order."""
    family: Family | None = None
    # Groups may be named with what ends a line elsewhere.
    for line in page.decode().removesuffix("\n").split("\n"):
        if line.startswith("# HELP "):
            if family is not None:
                yield family
            _, _, name, doc = line.split(" ", 3)
            family = Family(name, _unescaped(doc))
            continue
        assert family is not None, "a page begins with a family's head"
        if line.startswith("# TYPE "):
            family.kind = line.rpartition(" ")[2]
        else:
            named, _, number = line.rpartition(" ")
            name, _, labels = named.partition("{")
            values = {found[1]: _unescaped(found[2]) for found in _LABEL.finditer(labels)}
            family.samples.append((name, values, float(number)))
    if family is not None:
        yield family


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    return _ESCAPED.sub(lambda found: _MEANS.get(found[1], found[1]), text)
