"""With a real Prometheus that scrapes a broker in use, dashboard queries return data."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from compat_tests.monitoring.our_dashboard import our_panels
from compat_tests.monitoring.panels import DASHBOARDS, EMPTY, LABELS, panels
from compat_tests.monitoring.picture import draw
from compat_tests.monitoring.prometheus import Prometheus, program
from compat_tests.monitoring.traffic import Traffic
from tests.support.brokers.brokers import Wirebroker
from tests.support.harness.project_files import ROOT
from tests.support.tools.ports import free_port
from tests.support.tools.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.long

ALERTS = ROOT / "docs" / "monitoring" / "alerts.yml"
PICTURE = ROOT / "docs" / "monitoring" / "dashboard.png"
# A rate needs two scrapes; the first may come too early.
PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """Run a broker in use, and a Prometheus that scrapes it."""
    folder = tmp_path_factory.mktemp("watched")
    target = f"127.0.0.1:{free_port()}"
    broker = Wirebroker(folder / "broker", {"wirebroker.http.listeners": target})
    broker.start()
    try:
        with (
            Traffic(broker.bootstrap),
            Prometheus(folder / "prometheus", target, LABELS, ALERTS) as watching,
        ):
            yield watching
    finally:
        broker.stop()


@pytest.mark.parametrize("dashboard", DASHBOARDS)
def test_each_panel_shows_something_or_is_known_not_to(prometheus: Prometheus, dashboard: str):
    waiting = dict(panels(dashboard))
    assert all(prometheus.query(waiting[title]) == [] for title in EMPTY if title in waiting)
    waiting = {title: asked for title, asked in waiting.items() if title not in EMPTY}

    def all_show() -> bool:
        for title in [title for title, asked in waiting.items() if prometheus.query(asked)]:
            del waiting[title]
        return not waiting

    try:
        eventually(all_show, timeout_s=PATIENCE_S)
    except AssertionError:
        pytest.fail(f"empty panels: {waiting}")


def test_lag_is_told_as_it_is(prometheus: Prometheus):
    eventually(
        lambda: bool(prometheus.query('kafka_consumergroup_lag{partition="0"} >= 0')),
        timeout_s=PATIENCE_S,
    )
    # Partition 1 is unread.
    (other,) = prometheus.query('kafka_consumergroup_lag{partition="1"}')
    assert other["value"][1] == "-1"
    assert prometheus.query('wirebroker_consumergroup_lag_seconds{partition="0"} < 60')


def test_our_dashboards_panels_show_something(prometheus: Prometheus):
    waiting = {
        (panel.title, number): target.expression
        for panel in our_panels()
        for number, target in enumerate(panel.targets)
    }
    assert len(waiting) > 10

    def all_show() -> bool:
        for place in [place for place, asked in waiting.items() if prometheus.query(asked)]:
            del waiting[place]
        return not waiting

    try:
        eventually(all_show, timeout_s=PATIENCE_S)
    except AssertionError:
        pytest.fail(f"empty panels: {waiting}")


def test_our_dashboard_counts_each_record_once(prometheus: Prometheus):
    (asked,) = next(panel.targets for panel in our_panels() if "Records in" in panel.title)
    total = asked.expression.replace("sum by (topic)", "sum").replace('topic=~".+"', 'topic=""')
    assert 'topic=""' in total
    both = f"sum({asked.expression}) / ({total})"
    eventually(lambda: bool(prometheus.query(f"{both} > 0")), timeout_s=PATIENCE_S)
    (share,) = prometheus.query(both)
    assert float(share["value"][1]) == pytest.approx(1)
    assert all(series["metric"]["topic"] for series in prometheus.query(asked.expression))


def test_our_dashboard_is_drawn(prometheus: Prometheus, tmp_path: Path):
    pytest.importorskip("matplotlib", reason="it is drawn with it (extra bench)")
    from PIL import Image

    asked: list[str] = []
    until = prometheus.now()

    def ask(expression: str) -> list[dict[str, Any]]:
        asked.append(expression)
        return prometheus.query_range(expression, until - 30, until)

    draw(tmp_path / "drawn.png", our_panels(), ask)
    assert asked == [each.expression for panel in our_panels() for each in panel.targets]
    with Image.open(tmp_path / "drawn.png") as picture, Image.open(PICTURE) as shown_in_docs:
        assert picture.size == shown_in_docs.size
        assert len(picture.convert("RGB").getcolors() or ()) > 10


def test_no_alert_of_ours_is_raised_by_a_healthy_broker(prometheus: Prometheus):
    eventually(
        lambda: all(rule["health"] == "ok" for rule in prometheus.rules()), timeout_s=PATIENCE_S
    )
    rules = prometheus.rules()
    assert len(rules) >= 8
    assert {rule["name"] for rule in rules if rule["state"] != "inactive"} == set()


def test_our_alerts_are_rules_that_prometheus_takes():
    done = subprocess.run(
        [program("promtool"), "check", "rules", str(ALERTS)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
