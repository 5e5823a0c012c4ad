"""Actions on delivery services and on a broker in test mode."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import urllib.request
from functools import partial
from typing import TYPE_CHECKING, Any

from compat_tests.console.actions.action import BrowserAction
from compat_tests.console.actions.action_cluster import TEST_TOKEN
from tests.support.tools.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from compat_tests.console.actions.action_cluster import ActionCluster

_HOUR_MS = 3_600_000


# --- the delivery service


@contextlib.contextmanager
def _pending_record(
    delivered: int, cluster: ActionCluster, name: str
) -> Iterator[Callable[[], bool]]:
    """Let a record wait for an hour; the action ends the wait, and may deliver it."""
    cluster.ensure_delivery()
    stock = cluster.stock
    stock.create_topic(name, {0: [1]})
    headers = [("deliver-to", name.encode()), ("deliver-after", b"1h")]
    stock.write("deliver", b"a book", headers=headers)
    eventually(lambda: _is_pending(cluster, name))
    yield lambda: not _is_pending(cluster, name) and stock.count(name) == delivered


def _is_pending(cluster: ActionCluster, target: str) -> bool:
    """Return whether `delivery pending` lists a record for a topic."""
    words = ("delivery", "pending", "--topic", target, "--output", "json")
    command = [sys.executable, "-m", "wirebroker", *words, "--bootstrap", cluster.bootstrap]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return bool(json.loads(done.stdout)["records"])


@contextlib.contextmanager
def _dead_letters(cluster: ActionCluster, name: str) -> Iterator[Callable[[], bool]]:
    cluster.ensure_delivery()
    stock, letters = cluster.stock, f"{name}.dead-letters"
    for topic in (name, letters):
        stock.create_topic(topic, {0: [1]})
    for value in (b"one", b"two"):
        headers = [("__dlq.errors.topic", name.encode()), ("__dlq.errors.message", b"too early")]
        stock.write(letters, value, headers=headers)
    # A transaction's end marker has an offset, too.
    yield lambda: stock.count(name) >= 2


DELIVERY_ACTIONS = (
    BrowserAction(
        "deliver-now",
        page="delivery",
        link="Deliver now the record for {name}",
        plan="it is delivered at once",
        command="delivery deliver-now",
        result="sent to the service",
        arrange=partial(_pending_record, 2),
    ),
    BrowserAction(
        "cancel-delivery",
        page="delivery",
        link="Cancel the record for {name}",
        plan="the record is lost",
        command="delivery cancel",
        result="sent to the service",
        arrange=partial(_pending_record, 0),
    ),
    BrowserAction(
        "redrive",
        page="delivery?q={name}",
        link="Redrive {name}.dead-letters",
        plan="each dead letter is sent to the topics that they come from",
        command="dlq redrive",
        result="{name}: 2 records sent",
        arrange=_dead_letters,
    ),
)


# --- the test mode


def _control(cluster: ActionCluster, method: str, path: str, **body: Any) -> Any:
    """Send a request to the test mode's HTTP interface, and return its response."""
    request = urllib.request.Request(
        f"{cluster.test_mode.url}/test/v1/{path}",
        json.dumps(body).encode() if body else None,
        {"Authorization": f"Bearer {TEST_TOKEN}"},
        method=method,
    )
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.load(response)


@contextlib.contextmanager
def _clock(
    is_changed: Callable[[dict[str, Any]], bool], cluster: ActionCluster, _name: str
) -> Iterator[Callable[[], bool]]:
    """Start with the machine's time."""
    _control(cluster, "POST", "clock", reset=True)
    try:
        yield lambda: is_changed(_control(cluster, "GET", "clock"))
    finally:
        _control(cluster, "POST", "clock", reset=True)


def _is_hours_ahead(hours: int, clock: dict[str, Any]) -> bool:
    return bool(clock["passed_ms"] + clock["jumped_ms"] >= hours * _HOUR_MS)


def _is_stopped(clock: dict[str, Any]) -> bool:
    return clock["frozen_ms"] is not None


@contextlib.contextmanager
def _faults(
    before: int, after: int, cluster: ActionCluster, name: str
) -> Iterator[Callable[[], bool]]:
    """Start with some faults of a client id that no client has."""
    _control(cluster, "DELETE", "faults")
    try:
        for _ in range(before):
            _control(cluster, "POST", "faults", kind="disconnect", client_id=name)
        yield lambda: len(_control(cluster, "GET", "faults")) == after
    finally:
        _control(cluster, "DELETE", "faults")


TEST_MODE_ACTIONS = tuple(
    action._replace(needs_test_mode=True, always_allowed="the test mode is not part of Kafka")
    for action in (
        BrowserAction(
            "advance-clock",
            page="testing",
            link="Advance",
            values={"amount": "2", "unit": "hours"},
            plan="Advance the broker's clock by 2 h",
            command="curl -X POST",
            result="the broker's clock shows",
            arrange=partial(_clock, partial(_is_hours_ahead, 2)),
        ),
        BrowserAction(
            "set-clock",
            page="testing",
            link="Set",
            values={"time": "2090-01-02T03:04:05Z"},
            plan="an earlier time moves only the wall clock",
            command="curl -X POST",
            result="the broker's clock shows 2090",
            arrange=partial(_clock, partial(_is_hours_ahead, 1000)),
        ),
        BrowserAction(
            "run-clock",
            page="testing",
            link="Stop",
            plan="running → stopped",
            command="curl -X POST",
            result="the broker's clock shows",
            arrange=partial(_clock, _is_stopped),
        ),
        BrowserAction(
            "add-fault",
            page="testing",
            link="Set a fault",
            values={"fault": "delay", "delay_ms": "5", "client_id": "{name}", "times": "1"},
            plan="client_id: {name}",
            command="curl -X POST",
            result="is set",
            arrange=partial(_faults, 0, 1),
        ),
        BrowserAction(
            "remove-faults",
            page="testing",
            link="Remove all",
            plan="disconnect {name}",
            command="curl -X DELETE",
            result="2 faults removed",
            arrange=partial(_faults, 2, 0),
        ),
    )
)
