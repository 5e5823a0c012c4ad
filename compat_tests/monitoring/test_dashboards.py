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

pytestmark = pytest.mark.nightly

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
def test_panels_show_data_except_known_empty_ones(prometheus: Prometheus, dashboard: str):
    waiting = dict(panels(dashboard))
    assert all(prometheus.query(waiting[title]) == [] for title in EMPTY if title in waiting)
    waiting = {title: expression for title, expression in waiting.items() if title not in EMPTY}

    def all_show() -> bool:
        for title in [
            title for title, expression in waiting.items() if prometheus.query(expression)
        ]:
            del waiting[title]
        return not waiting

    try:
        eventually(all_show, timeout_s=PATIENCE_S)
    except AssertionError:
        pytest.fail(f"empty panels: {waiting}")


def test_consumer_lag_is_correct(prometheus: Prometheus):
    eventually(
        lambda: bool(prometheus.query('kafka_consumergroup_lag{partition="0"} >= 0')),
        timeout_s=PATIENCE_S,
    )
    # Partition 1 is unread.
    (other,) = prometheus.query('kafka_consumergroup_lag{partition="1"}')
    assert other["value"][1] == "-1"
    assert prometheus.query('wirebroker_consumergroup_lag_seconds{partition="0"} < 60')


def test_panels_of_own_dashboard_show_data(prometheus: Prometheus):
    waiting = {
        (panel.title, number): target.expression
        for panel in our_panels()
        for number, target in enumerate(panel.targets)
    }
    assert len(waiting) > 10

    def all_show() -> bool:
        for key in [key for key, expression in waiting.items() if prometheus.query(expression)]:
            del waiting[key]
        return not waiting

    try:
        eventually(all_show, timeout_s=PATIENCE_S)
    except AssertionError:
        pytest.fail(f"empty panels: {waiting}")


def test_own_dashboard_counts_each_record_once(prometheus: Prometheus):
    (target,) = next(panel.targets for panel in our_panels() if "Records in" in panel.title)
    total = target.expression.replace("sum by (topic)", "sum").replace('topic=~".+"', 'topic=""')
    assert 'topic=""' in total
    ratio = f"sum({target.expression}) / ({total})"
    eventually(lambda: bool(prometheus.query(f"{ratio} > 0")), timeout_s=PATIENCE_S)
    (share,) = prometheus.query(ratio)
    assert float(share["value"][1]) == pytest.approx(1)
    assert all(series["metric"]["topic"] for series in prometheus.query(target.expression))


def test_own_dashboard_is_drawn(prometheus: Prometheus, tmp_path: Path):
    pytest.importorskip("matplotlib", reason="it is drawn with it (extra bench)")
    from PIL import Image

    queries: list[str] = []
    until = prometheus.now()

    def ask(expression: str) -> list[dict[str, Any]]:
        queries.append(expression)
        return prometheus.query_range(expression, until - 30, until)

    draw(tmp_path / "drawn.png", our_panels(), ask)
    assert queries == [target.expression for panel in our_panels() for target in panel.targets]
    with Image.open(tmp_path / "drawn.png") as picture, Image.open(PICTURE) as shown_in_docs:
        assert picture.size == shown_in_docs.size
        assert len(picture.convert("RGB").getcolors() or ()) > 10


def test_healthy_broker_raises_no_alert(prometheus: Prometheus):
    eventually(
        lambda: all(rule["health"] == "ok" for rule in prometheus.rules()), timeout_s=PATIENCE_S
    )
    rules = prometheus.rules()
    assert len(rules) >= 8
    assert {rule["name"] for rule in rules if rule["state"] != "inactive"} == set()


def test_prometheus_accepts_alert_rules():
    done = subprocess.run(
        [program("promtool"), "check", "rules", str(ALERTS)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
