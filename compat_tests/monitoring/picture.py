"""`python -m compat_tests.monitoring.picture FILE.png`: draw our dashboard from real scrapes.

Clients use a broker for two minutes, while Prometheus scrapes it. The panels' expressions are then
evaluated and drawn like in Grafana, with the positions, colors, names and units of the file.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from compat_tests.monitoring.our_dashboard import our_panels
from compat_tests.monitoring.panels import LABELS
from compat_tests.monitoring.prometheus import Prometheus
from compat_tests.monitoring.traffic import Traffic
from tests.support.brokers.brokers import Wirebroker
from tests.support.tools.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes

    from compat_tests.monitoring.our_dashboard import Panel

    Series = list[dict[str, Any]]

WATCHED_S: Final = 120
# One of the groups is paused in this time and falls behind.
_REST: Final = (40.0, 70.0)
_GRID = 24
_INCHES = (15.0, 12.0)
_COLOURS = 160
_PAPER, _INK = "#181b1f", "#ccccdc"
_STATES = {"green": "#73bf69", "orange": "#ff9830", "red": "#f2495c", "text": _INK}
_LINES = ("#73bf69", "#f2cc0c", "#5794f2", "#ff9830", "#f2495c", "#b877d9", "#8ab8ff", "#c0d8ff")
_UNITS = {"cps": "c/s", "Bps": "B/s", "reqps": "req/s", "s": "s", "ms": "ms", "bytes": "B"}


def draw(file: Path, panels: list[Panel], ask: Callable[[str], Series]) -> None:
    """Draw panels as one PNG.

    Args:
        file: Output file.
        panels: To draw.
        ask: Returns an expression's series over the displayed time.
    """
    from matplotlib import pyplot
    from PIL import Image  # installed with matplotlib

    height = max(panel.place[1] + panel.place[3] for panel in panels)
    figure = pyplot.figure(figsize=_INCHES, facecolor="#111217", dpi=80)
    for panel in panels:
        left, top, width, panel_height = panel.place
        is_number = panel.kind == "stat"
        below = 0.3 if is_number else 1.7  # lines of legend
        inside = (
            (left + 0.9) / _GRID,
            (height - top - panel_height + below) / height,
            (width - 1.2) / _GRID,
            (panel_height - below - 0.9) / height,
        )
        axes = figure.add_axes(inside, facecolor=_PAPER)
        axes.set_title(panel.title, color=_INK, fontsize=10, loc="left")
        named_series = [
            (_name(target.legend, target.expression, series["metric"]), series["values"])
            for target in panel.targets
            for series in ask(target.expression)
        ]
        (_draw_number if is_number else _draw_lines)(axes, panel, named_series)
    figure.savefig(file)
    pyplot.close(figure)
    Image.open(file).convert("RGB").quantize(_COLOURS).save(file, optimize=True)


def _name(legend: str, expression: str, labels: dict[str, str]) -> str:
    """Return Grafana's name of a series: its legend, or else its labels or its expression."""
    if legend:
        return re.sub(r"\{\{\s*(\w+)\s*\}\}", lambda match: labels.get(match[1], ""), legend)
    labels_text = ", ".join(f'{name}="{value}"' for name, value in labels.items())
    return f"{{{labels_text}}}" if labels_text else expression


def _draw_number(axes: Axes, panel: Panel, named_series: list[tuple[str, Any]]) -> None:
    axes.set_xticks([])
    axes.set_yticks([])
    for _, points in named_series:
        value = points[-1][1]
        colour = next(
            step_color
            for threshold, step_color in reversed(panel.steps)
            if float(value) >= threshold
        )
        text = panel.texts.get(value, value)
        axes.text(0.5, 0.5, text, color=_STATES[colour], fontsize=24, ha="center", va="center")


def _draw_lines(axes: Axes, panel: Panel, named_series: list[tuple[str, Any]]) -> None:
    from matplotlib.ticker import FuncFormatter, PercentFormatter

    lines = []
    for number, (_, points) in enumerate(named_series):
        seconds = [at - points[-1][0] for at, _ in points]
        values = [float(value) for _, value in points]
        lines += axes.plot(seconds, values, color=_LINES[number % len(_LINES)])
    lowest, highest = axes.get_ylim()
    axes.set_ylim(
        lowest if panel.least is None else panel.least,
        1.1 * highest if panel.most is None else panel.most,
    )
    axes.set_xlim(-WATCHED_S, 0)
    axes.xaxis.set_major_formatter("{x:g} s")
    unit = _UNITS.get(panel.unit, "")
    axes.yaxis.set_major_formatter(
        PercentFormatter(1.0)
        if panel.unit == "percentunit"
        else FuncFormatter(lambda value, _: _short(value, unit))
    )
    axes.tick_params(colors=_INK, labelsize=7)
    axes.grid(color="#2c3038", linewidth=0.5)
    if lines:
        axes.legend(
            lines,
            [name for name, _ in named_series],
            facecolor=_PAPER,
            labelcolor=_INK,
            edgecolor=_PAPER,
            fontsize=7,
            loc="upper left",
            bbox_to_anchor=(0, -0.13),
            ncols=4,
            columnspacing=1.2,
            handlelength=1.2,
        )


def _short(value: float, unit: str) -> str:
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size and unit != "ms":
            return f"{value / size:g} {letter}{unit}"
    return f"{value:g} {unit}"


def main() -> int:
    """Run and observe a broker, and draw the dashboard."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path, metavar="FILE.png")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        target = f"127.0.0.1:{free_port()}"
        broker = Wirebroker(Path(folder) / "broker", {"wirebroker.http.listeners": target})
        broker.start()
        address = broker.bootstrap
        try:
            with (
                Traffic(address, reads=(0, 1), value=bytes(1000), rest=_REST),
                Traffic(address, "payments", "audit", reads=(0, 1), value=bytes(300)),
                Prometheus(Path(folder) / "prometheus", target, LABELS) as watching,
            ):
                time.sleep(WATCHED_S)  # the time that the picture shows
                until = watching.now()
                draw(
                    options.file,
                    our_panels(),
                    lambda expression: watching.query_range(expression, until - WATCHED_S, until),
                )
        finally:
            broker.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
