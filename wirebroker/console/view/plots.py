"""Plots as SVG: lines over time, small lines for tables, bars.

Text has its own coordinates, in pixels and percent, so that it keeps its size when the plot is
stretched. Colors come from the style sheet, by class: a plot is readable in light and dark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from markupsafe import Markup, escape

from wirebroker.console.view.formats import duration, iso_time

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Points = Sequence[tuple[int, float]]

_WIDTH: Final = 1000  # units of the stretched part
_SPARK_WIDTH: Final = 96
_SPARK_HEIGHT: Final = 24
_PLOT_HEIGHT: Final = 150
_TOP: Final = 22
_BOTTOM: Final = 22
_KIB: Final = 1024
_STEPS: Final = (1, 2, 2.5, 5, 10)
# Names of so many bars fit below them.
_MOST_NAMED_BARS: Final = 12
# More points than this cannot be seen; the highest of each group is drawn.
_MOST_POINTS: Final = 240


class PlotLine(NamedTuple):
    """A named line; `kind` is its class in the style sheet: a, b or c."""

    name: str
    points: Points
    kind: str = "a"


def nice_ceiling(value: float, *, is_binary: bool = False) -> float:
    """Return the next round number: 1, 2, 2.5 or 5 times a power of ten.

    With `is_binary` it is round in KiB, MiB or a larger unit.
    """
    if value <= 0:
        return 1.0
    if is_binary and value >= _KIB:
        unit = _KIB
        while unit * _KIB <= value:
            unit *= _KIB
        return unit * nice_ceiling(value / unit)
    power = 1.0
    while power * 10 <= value:
        power *= 10
    while power > value:
        power /= 10
    return next(step * power for step in _STEPS if step * power >= value * 0.999_999)


def thinned(points: Points) -> list[tuple[int, float]]:
    """Return at most 240 points: of each group the highest."""
    if len(points) <= _MOST_POINTS:
        return list(points)
    size = -(-len(points) // _MOST_POINTS)
    return [
        max(points[start : start + size], key=lambda point: point[1])
        for start in range(0, len(points), size)
    ]


def line_plot(
    lines: Sequence[PlotLine],
    *,
    title: str,
    text_of: Callable[[float], str],
    is_binary: bool = False,
) -> Markup:
    """Return a plot of lines over time, from zero.

    `text_of` formats a value for labels; `is_binary` is for sizes.
    """
    drawn = [line._replace(points=thinned(line.points)) for line in lines]
    times = [time_ms for line in drawn for time_ms, _ in line.points]
    if len(set(times)) < 2:
        return _empty_plot(title)
    first_ms, last_ms = min(times), max(times)
    highest = max(value for line in drawn for _, value in line.points)
    ceiling = nice_ceiling(highest, is_binary=is_binary)
    parts = [
        f'<svg class="plot" role="img" width="100%" height="{_TOP + _PLOT_HEIGHT + _BOTTOM}"'
        f' aria-label="{escape(_summary(drawn, title, text_of))}">',
        *_grid(),
        f'<svg x="0" y="{_TOP}" width="100%" height="{_PLOT_HEIGHT}"'
        f' viewBox="0 0 {_WIDTH} {_PLOT_HEIGHT}" preserveAspectRatio="none">',
        *(_path(line, (first_ms, last_ms), ceiling, with_area=len(drawn) == 1) for line in drawn),
        "</svg>",
        *_levels(ceiling, text_of),
        *_hover(drawn, (first_ms, last_ms), text_of),
        *_time_labels(first_ms, last_ms),
        "</svg>",
    ]
    return Markup("".join(parts))  # noqa: S704 - built from numbers and escaped text


def sparkline(points: Points, *, title: str) -> Markup:
    """Return a small line for a table cell; empty without two points."""
    if len(points) < 2:
        return Markup("")
    drawn = thinned(points)
    first_ms, last_ms = drawn[0][0], drawn[-1][0]
    highest = max(value for _, value in drawn) or 1.0
    usable = _SPARK_HEIGHT - 4
    coordinates = " ".join(
        f"{(time_ms - first_ms) * _SPARK_WIDTH / max(1, last_ms - first_ms):.1f},"
        f"{2 + usable - value * usable / highest:.1f}"
        for time_ms, value in drawn
    )
    return Markup(  # noqa: S704 - numbers and escaped text
        f'<svg class="spark" role="img" viewBox="0 0 {_SPARK_WIDTH} {_SPARK_HEIGHT}"'
        f' width="{_SPARK_WIDTH}" height="{_SPARK_HEIGHT}" aria-label="{escape(title)}">'
        f'<polyline points="{coordinates}"/></svg>'
    )


def meter(value: float | None, *, title: str, is_high: bool = False) -> Markup:
    """Return a horizontal bar of 0 to 100 percent; `is_high` draws it as a warning."""
    if value is None:
        return Markup("")
    kind = "meter high" if is_high else "meter"
    return Markup(  # noqa: S704 - numbers and escaped text
        f'<svg class="{kind}" role="img" width="100%" height="8" aria-label="{escape(title)}">'
        f'<rect class="all" width="100%" height="8" rx="4"/>'
        f'<rect class="part" width="{max(0.0, min(100.0, value)):.1f}%" height="8" rx="4"/></svg>'
    )


def bar_plot(
    bars: Sequence[tuple[str, float]],
    *,
    title: str,
    text_of: Callable[[float], str],
    is_binary: bool = False,
) -> Markup:
    """Return vertical bars from zero, with a line at their mean, for the skew of partitions."""
    if not bars:
        return _empty_plot(title)
    highest = max(value for _, value in bars)
    ceiling = nice_ceiling(highest, is_binary=is_binary)
    mean = sum(value for _, value in bars) / len(bars)
    summary = f"{title}: highest {text_of(highest)}, mean {text_of(mean)}"
    level = _TOP + _PLOT_HEIGHT - mean * _PLOT_HEIGHT / ceiling
    parts = [
        f'<svg class="plot" role="img" width="100%" height="{_TOP + _PLOT_HEIGHT + _BOTTOM}"'
        f' aria-label="{escape(summary)}">',
        *_grid(),
        *_bars(bars, ceiling, text_of),
        f'<line class="mean" x1="0" x2="100%" y1="{level:.1f}" y2="{level:.1f}"/>',
        *_levels(ceiling, text_of),
        "</svg>",
    ]
    return Markup("".join(parts))  # noqa: S704 - numbers and escaped text


def _bars(
    bars: Sequence[tuple[str, float]], ceiling: float, text_of: Callable[[float], str]
) -> list[str]:
    slot = 100 / len(bars)
    is_few = len(bars) <= _MOST_NAMED_BARS
    gap = slot * (0.5 if is_few else 0.2)
    parts: list[str] = []
    for position, (name, value) in enumerate(bars):
        height = max(1.0, value * _PLOT_HEIGHT / ceiling) if value > 0 else 0.0
        parts.append(
            f'<rect class="bar" x="{position * slot + gap / 2:.3f}%" width="{slot - gap:.3f}%"'
            f' y="{_TOP + _PLOT_HEIGHT - height:.1f}" height="{height:.1f}">'
            f"<title>{escape(name)}: {escape(text_of(value))}</title></rect>"
        )
        if is_few:
            parts.append(
                f'<text class="label" x="{(position + 0.5) * slot:.3f}%" text-anchor="middle"'
                f' y="{_TOP + _PLOT_HEIGHT + 16}">{escape(name.rpartition(" ")[2])}</text>'
            )
    return parts


def _summary(lines: Sequence[PlotLine], title: str, text_of: Callable[[float], str]) -> str:
    parts = [
        f"{line.name} now {text_of(line.points[-1][1])},"
        f" highest {text_of(max(value for _, value in line.points))}"
        for line in lines
        if line.points
    ]
    return f"{title}: {'; '.join(parts)}"


def _grid() -> list[str]:
    levels = [_TOP + _PLOT_HEIGHT * share for share in (0.0, 0.5, 1.0)]
    return [
        f'<line class="grid" x1="0" x2="100%" y1="{level:.1f}" y2="{level:.1f}"/>'
        for level in levels
    ]


def _levels(ceiling: float, text_of: Callable[[float], str]) -> list[str]:
    return [
        f'<text class="label" x="0" y="{_TOP + _PLOT_HEIGHT * (1 - share) - 5:.1f}">'
        f"{escape(text_of(ceiling * share))}</text>"
        for share in (0.5, 1.0)
    ]


def _path(line: PlotLine, span_ms: tuple[int, int], ceiling: float, *, with_area: bool) -> str:
    first_ms, last_ms = span_ms
    coordinates = [
        f"{(time_ms - first_ms) * _WIDTH / (last_ms - first_ms):.1f},"
        f"{_PLOT_HEIGHT - value * _PLOT_HEIGHT / ceiling:.1f}"
        for time_ms, value in line.points
    ]
    if not coordinates:
        return ""
    path = f'<polyline class="line {line.kind}" points="{" ".join(coordinates)}"/>'
    if not with_area:
        return path
    start, end = coordinates[0].partition(",")[0], coordinates[-1].partition(",")[0]
    around = f"{start},{_PLOT_HEIGHT} {' '.join(coordinates)} {end},{_PLOT_HEIGHT}"
    return f'<polygon class="area {line.kind}" points="{around}"/>{path}'


def _hover(
    lines: Sequence[PlotLine], span_ms: tuple[int, int], text_of: Callable[[float], str]
) -> list[str]:
    """Return an invisible column for each time, whose title has the values."""
    first_ms, last_ms = span_ms
    values: dict[int, list[str]] = {}
    for line in lines:
        for time_ms, value in line.points:
            values.setdefault(time_ms, []).append(f"{line.name}: {text_of(value)}")
    width = 100 / max(1, len(values) - 1)
    parts: list[str] = []
    for time_ms, texts in sorted(values.items()):
        center = (time_ms - first_ms) * 100 / (last_ms - first_ms)
        left = max(0.0, center - width / 2)
        parts.append(
            f'<g class="hover"><rect x="{left:.2f}%" y="{_TOP}" width="{width:.2f}%"'
            f' height="{_PLOT_HEIGHT}"><title>{iso_time(time_ms)}\n'
            f"{escape(chr(10).join(texts))}</title></rect>"
            f'<line x1="{center:.2f}%" x2="{center:.2f}%" y1="{_TOP}"'
            f' y2="{_TOP + _PLOT_HEIGHT}"/></g>'
        )
    return parts


def _time_labels(first_ms: int, last_ms: int) -> list[str]:
    level = _TOP + _PLOT_HEIGHT + 16
    span_s = (last_ms - first_ms) / 1000
    return [
        f'<text class="label" x="0" y="{level}">{duration(span_s)} ago</text>',
        f'<text class="label" x="100%" y="{level}" text-anchor="end">now</text>',
    ]


def _empty_plot(title: str) -> Markup:
    return Markup(  # noqa: S704 - escaped
        '<div class="plot-empty" role="img"'
        f' aria-label="{escape(title)}: no measurements yet"><p>Measurements appear here after'
        " two refreshes.</p></div>"
    )
