"""wirebroker's dashboard as Grafana reads it: its panels, with variables substituted."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any, Final

from tests.support.harness.project_files import ROOT

DASHBOARD: Final = ROOT / "docs" / "monitoring" / "dashboard.json"
# Grafana's is at least four scrapes.
RATE_INTERVAL: Final = "10s"
# Grafana's default colors: 80 or more is red.
_GRAFANAS_STEPS: Final = ((-math.inf, "green"), (80.0, "red"))


@dataclass(slots=True, frozen=True)
class Target:
    """One expression of a panel, and the legend of its series."""

    expression: str
    legend: str


@dataclass(slots=True, frozen=True)
class Panel:
    """One panel.

    Attributes:
        kind: "stat" or "timeseries".
        place: Left, top, width and height; the dashboard is 24 wide.
        unit: Grafana's unit id.
        targets: Its expressions.
        steps: Lower bound and color of each range, lowest first.
        texts: Texts shown instead of values.
        least: Maximum start of the axis; None: the lowest value.
        most: Minimum end of the axis.
    """

    title: str
    kind: str
    place: tuple[int, int, int, int]
    unit: str
    targets: tuple[Target, ...]
    steps: tuple[tuple[float, str], ...]
    texts: dict[str, str]
    least: float | None
    most: float | None


def our_panels() -> list[Panel]:
    dashboard = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    all_values = {
        variable["name"]: variable["allValue"]
        for variable in dashboard["templating"]["list"]
        if variable.get("includeAll")
    }
    return [_panel(panel, all_values) for panel in dashboard["panels"]]


def _panel(content: dict[str, Any], all_values: dict[str, str]) -> Panel:
    defaults = content["fieldConfig"]["defaults"]
    position = content["gridPos"]
    return Panel(
        title=content["title"],
        kind=content["type"],
        place=(position["x"], position["y"], position["w"], position["h"]),
        unit=defaults["unit"],
        targets=tuple(
            Target(_with_all(target["expr"], all_values), target["legendFormat"])
            for target in content["targets"]
        ),
        steps=tuple(
            (-math.inf if step["value"] is None else float(step["value"]), step["color"])
            for step in defaults.get("thresholds", {}).get("steps", ())
        )
        or _GRAFANAS_STEPS,
        texts={
            value: mapped["text"]
            for mapping in defaults.get("mappings", ())
            for value, mapped in mapping["options"].items()
        },
        least=defaults.get("min"),
        most=defaults.get("max"),
    )


def _with_all(expression: str, all_values: dict[str, str]) -> str:
    for name, value in all_values.items():
        expression = expression.replace(f"${name}", value)
    return expression.replace("$__rate_interval", RATE_INTERVAL)
