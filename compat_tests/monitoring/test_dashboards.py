"""A real Prometheus scrapes a broker in use; what dashboards ask of it has answers."""

from __future__ import annotations

import json
import re
import subprocess
import threading
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from compat_tests.monitoring.panels import DASHBOARDS, EMPTY, LABELS, panels
from compat_tests.monitoring.prometheus import Prometheus, program
from compat_tests.topics import create
from tests.project_files import ROOT
from tests.support.brokers import Wirebroker
from tests.support.ports import free_port
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.long

ALERTS = ROOT / "docs" / "monitoring" / "alerts.yml"
DASHBOARD = ROOT / "docs" / "monitoring" / "dashboard.json"
# Two scrapes are the least of a rate; the first may come before there is anything.
PATIENCE_S = 60.0


class Traffic:
    """Produces, consumes and commits, a little at a time, until it is told to stop."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> None:
        create(self._bootstrap, "orders", partitions=2)
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _run(self) -> None:
        producer = Producer({"bootstrap.servers": self._bootstrap})
        settings = {"bootstrap.servers": self._bootstrap, "group.id": "billing"}
        consumer = Consumer({**settings, "auto.offset.reset": "earliest"})
        consumer.assign([TopicPartition("orders", 0, 0)])
        while not self._is_over.wait(0.1):
            for number in range(2):
                producer.produce("orders", b"v", partition=number)
            producer.flush(10)
            if consumer.poll(1) is not None:
                consumer.commit(asynchronous=False)
        consumer.close()


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """Run a broker in use, and Prometheus that watches it."""
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
    # Nobody has read partition 1.
    (other,) = prometheus.query('kafka_consumergroup_lag{partition="1"}')
    assert other["value"][1] == "-1"
    assert prometheus.query('wirebroker_consumergroup_lag_seconds{partition="0"} < 60')


def _without_variables(expression: str) -> str:
    return re.sub(r"\$[a-z]+", ".*", expression.replace("$__rate_interval", "10s"))


def test_our_dashboards_panels_show_something(prometheus: Prometheus):
    dashboard = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    waiting = {
        (panel["title"], number): _without_variables(target["expr"])
        for panel in dashboard["panels"]
        for number, target in enumerate(panel.get("targets", ()))
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
