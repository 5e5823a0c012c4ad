"""The dashboard's file sets what Grafana's defaults would get wrong."""

from __future__ import annotations

import json
import re

from compat_tests.monitoring.our_dashboard import DASHBOARD, our_panels


def test_all_topics_are_not_their_total_too():
    """Like Apache Kafka, a broker also reports sums over topics without that label."""
    variables = json.loads(DASHBOARD.read_text(encoding="utf-8"))["templating"]["list"]
    all_values = [each["allValue"] for each in variables if each.get("includeAll")]
    assert len(all_values) == 2
    assert not [each for each in all_values if re.fullmatch(each, "")]


def test_healthy_numbers_are_not_red():
    """Grafana's default steps color 80 of anything red: partitions, groups, connections."""
    at_80 = {
        panel.title: next(colour for least, colour in reversed(panel.steps) if least <= 80)
        for panel in our_panels()
        if panel.kind == "stat"
    }
    assert {title for title, colour in at_80.items() if colour not in {"text", "green"}} == {
        "State",
        "Under-replicated",
        "Without leader",
    }


def test_lines_have_names_and_begin_at_zero():
    lines = [panel for panel in our_panels() if panel.kind == "timeseries"]
    assert len(lines) > 10
    assert not [panel.title for panel in lines if panel.least != 0]
    assert all(target.legend for panel in our_panels() for target in panel.targets)


def test_states_are_told_in_words():
    (state,) = [panel for panel in our_panels() if panel.title == "State"]
    assert state.texts["3"] == "running"
