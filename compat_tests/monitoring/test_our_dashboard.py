"""The dashboard's file sets what Grafana's defaults would get wrong."""

from __future__ import annotations

import json
import re

from compat_tests.monitoring.our_dashboard import DASHBOARD, our_panels


def test_all_value_of_variables_does_not_match_empty_label():
    """Like Apache Kafka, a broker also reports sums over topics without that label."""
    variables = json.loads(DASHBOARD.read_text(encoding="utf-8"))["templating"]["list"]
    all_values = [variable["allValue"] for variable in variables if variable.get("includeAll")]
    assert len(all_values) == 2
    assert not [pattern for pattern in all_values if re.fullmatch(pattern, "")]


def test_stat_panels_are_not_red_for_healthy_values():
    """Grafana's default steps color 80 of anything red: partitions, groups, connections."""
    at_80 = {
        panel.title: next(colour for threshold, colour in reversed(panel.steps) if threshold <= 80)
        for panel in our_panels()
        if panel.kind == "stat"
    }
    assert {title for title, colour in at_80.items() if colour not in {"text", "green"}} == {
        "State",
        "Under-replicated",
        "Without leader",
    }


def test_graphs_have_legends_and_start_at_zero():
    lines = [panel for panel in our_panels() if panel.kind == "timeseries"]
    assert len(lines) > 10
    assert not [panel.title for panel in lines if panel.least != 0]
    assert all(target.legend for panel in our_panels() for target in panel.targets)


def test_broker_states_are_shown_as_text():
    (state,) = [panel for panel in our_panels() if panel.title == "State"]
    assert state.texts["3"] == "running"
