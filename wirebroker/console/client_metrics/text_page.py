r"""Samples of a metrics page in Prometheus' text format.

    kafka_server_quota_byte_rate{resource="Produce",user="anna"} 1024.0

Only the samples with known names are parsed: a page may have 100,000 others.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.base.client_metric_names import ALL

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# The most samples to keep of a page.
MOST_SAMPLES: Final = 10_000
_MOST_LABEL_CHARACTERS: Final = 300
_SAMPLE: Final = re.compile(r"([A-Za-z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)(?:\s+-?\d+)?\s*")
_LABEL: Final = re.compile(r'([A-Za-z_]\w*)\s*=\s*"((?:[^"\\]|\\.)*)"')
_ESCAPED: Final = re.compile(r"\\(.)")
_ESCAPES: Final = {"n": "\n"}
_NAMES: Final = frozenset(name.encode() for name in ALL)


class ClientSample(NamedTuple):
    """A sample; label names are in lower case without underscores, so all spellings are equal."""

    name: str
    labels: Mapping[str, str]
    value: float


class ClientSamples(NamedTuple):
    """The known samples of a page; `is_cut` is true if more were found than are kept."""

    samples: list[ClientSample]
    is_cut: bool


def client_samples(lines: Iterable[bytes]) -> ClientSamples:
    """Return the samples with known names; lines in another form are skipped."""
    samples: list[ClientSample] = []
    for line in lines:
        if line[:1] == b"#" or _name_of(line) not in _NAMES:
            continue
        sample = _sample(line.decode("utf-8", "replace"))
        if sample is None:
            continue
        if len(samples) == MOST_SAMPLES:
            return ClientSamples(samples, is_cut=True)
        samples.append(sample)
    return ClientSamples(samples, is_cut=False)


def _name_of(line: bytes) -> bytes:
    end = line.find(b"{")
    return line[:end] if end >= 0 else line.partition(b" ")[0]


def _sample(line: str) -> ClientSample | None:
    match = _SAMPLE.fullmatch(line.strip())
    if match is None:
        return None
    try:
        value = float(match[3])
    except ValueError:
        return None
    labels = {
        name.replace("_", "").lower(): _unescaped(text)[:_MOST_LABEL_CHARACTERS]
        for name, text in _LABEL.findall(match[2] or "")
    }
    return ClientSample(match[1], labels, value if math.isfinite(value) else math.nan)


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda match: _ESCAPES.get(match[1], match[1]), text)
