from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from wirebroker.console.view.formats import compact, size
from wirebroker.console.view.plots import (
    PlotLine,
    bar_plot,
    line_plot,
    meter,
    nice_ceiling,
    sparkline,
    thinned,
)

HOSTILE = '"><script>alert(1)</script>'


@pytest.mark.parametrize(("value", "ceiling"), [(0, 1), (1, 1), (1.2, 2), (22, 25), (340, 500)])
def test_axes_end_at_round_numbers(value, ceiling):
    assert nice_ceiling(value) == ceiling


def test_axes_of_sizes_are_round_in_binary_units():
    assert nice_ceiling(3 << 20, is_binary=True) == 5 << 20
    assert nice_ceiling(1000, is_binary=True) == 1000


def test_a_plot_says_in_words_what_it_shows():
    points = [(1000, 5.0), (2000, 90.0), (3000, 20.0)]
    root = ET.fromstring(line_plot([PlotLine("lag", points)], title="Lag", text_of=compact))
    assert root.get("aria-label") == "Lag: lag now 20, highest 90"
    assert len(root.findall("g")) == len(points)


def test_a_plot_without_two_times_says_so():
    assert "no measurements yet" in line_plot([PlotLine("a", [])], title="Lag", text_of=compact)


def test_a_long_line_keeps_its_highest_points():
    points = [(time, 1.0) for time in range(5000)]
    points[3333] = (3333, 99.0)
    drawn = thinned(points)
    assert len(drawn) <= 240
    assert (3333, 99.0) in drawn


@pytest.mark.parametrize(
    "plot",
    [
        line_plot([PlotLine(HOSTILE, [(1, 1.0), (2, 2.0)])], title=HOSTILE, text_of=compact),
        bar_plot([(HOSTILE, 3.0)], title=HOSTILE, text_of=size, is_binary=True),
        sparkline([(1, 1.0), (2, 0.0)], title=HOSTILE),
        meter(40, title=HOSTILE),
    ],
)
def test_names_in_plots_are_escaped(plot):
    assert "<script" not in plot
    assert ET.fromstring(plot).tag == "svg"


def test_bars_of_nothing_but_zeros_can_be_drawn():
    root = ET.fromstring(bar_plot([("p 0", 0.0), ("p 1", 0.0)], title="Size", text_of=size))
    assert [bar.get("height") for bar in root.findall("rect")] == ["0.0", "0.0"]
