"""Every action of the console in a browser, with and without SASL_SSL, users and ACLs.

`--broker apache` runs them on Apache Kafka. On the secured console an operator makes the changes
of operators and an admin the others, each with the least rights in Kafka of the role.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from compat_tests.conftest import new_topic_name
from compat_tests.console.actions.action_sites import OPEN, SECURED
from compat_tests.console.actions.action_steps import ActionSteps
from compat_tests.console.actions.table import ACTIONS
from compat_tests.console.console_site import SCREENSHOTS
from tests.support.tools.waiting import eventually
from wirebroker.console.changes.change import ConsoleRole
from wirebroker.console.changes.kinds.table import CHANGES

if TYPE_CHECKING:
    from compat_tests.console.actions.action import BrowserAction
    from compat_tests.console.actions.action_cluster import ActionCluster
    from compat_tests.console.actions.action_sites import ActionSites, ClusterVisit

# kafka-python leaves a socket open when a broker refuses a connection.
pytestmark = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
]

# Brokers of Apache Kafka apply a change after the response; a moved replica has to catch up.
_APPLIED_S = 60.0
_EACH_DAY = {
    ("create-topic", SECURED),
    ("reset-offsets", SECURED),
    ("let-consume", SECURED),
    ("set-user", OPEN),
    ("move-partition", OPEN),
    ("run-clock", OPEN),
}
_NIGHTLY = pytest.mark.nightly
_CASES = [
    pytest.param(kind, way, id=f"{kind}-{way}", marks=() if (kind, way) in _EACH_DAY else _NIGHTLY)
    for kind in ACTIONS
    for way in (OPEN, SECURED)
]
_REFUSED = [
    pytest.param(kind, id=kind, marks=_NIGHTLY)
    for kind, action in ACTIONS.items()
    if not action.always_allowed
]


def test_every_kind_of_change_is_an_action_here():
    assert ACTIONS.keys() == CHANGES.keys()


def skip_if_impossible(action: BrowserAction, broker_kind: str) -> None:
    if action.needs_test_mode and broker_kind == "apache":
        pytest.skip("Apache Kafka has no test mode")


def visit_of(sites: ActionSites, action: BrowserAction, way: str) -> ClusterVisit:
    role = action.change.role
    if way == OPEN:
        return sites.open_visit(is_test_mode=action.needs_test_mode)
    kafka_user = role.name.lower()
    return sites.secured_visit(role, kafka_user, is_test_mode=action.needs_test_mode)


def check_audit(entries: list[dict[str, Any]], action: BrowserAction, visit: ClusterVisit) -> None:
    """Check that the audit log has the change, with its author and without its secret.

    A record that is forwarded is also in the log of the other cluster.
    """
    clusters = {visit.cluster, action.values.get("cluster", visit.cluster)}
    assert {entry["cluster"] for entry in entries} == clusters
    assert not action.secret or action.secret not in str(entries)
    for cluster in clusters:
        begin, end = (entry for entry in entries if entry["cluster"] == cluster)
        assert (begin["event"], end["event"]) == ("begin", "end")
        assert {begin["kind"], end["kind"]} == {action.kind}
        assert (end["result"], end["via"]) == ("done", "browser")
        assert (begin["user"] or "") == (end["user"] or "") == visit.user
        assert action.secret or action.values.items() <= begin["values"].items()
        if cluster == visit.cluster:
            assert visit.kafka_user in begin["kafka_user"]


@pytest.mark.parametrize(("kind", "way"), _CASES)
def test_an_action_is_made(
    cluster: ActionCluster, sites: ActionSites, broker_kind: str, kind: str, way: str
):
    skip_if_impossible(ACTIONS[kind], broker_kind)
    name = new_topic_name()
    action = ACTIONS[kind].filled(name)
    visit = visit_of(sites, action, way)
    logged = len(visit.audited())
    with (
        action.arrange(cluster, name) as is_done,
        closing(ActionSteps(visit, action, SCREENSHOTS / broker_kind)) as steps,
    ):
        steps.open_form()
        steps.fill()
        if way == OPEN:
            steps.check_look("form")
        text = steps.show_plan()
        assert not steps.is_refused, text
        assert action.plan.lower() in text.lower()
        assert action.command in steps.command()
        assert not action.secret or action.secret not in text
        if way == OPEN:
            steps.check_look("plan")
        assert not is_done()
        assert action.result.lower() in steps.confirm().lower()
        eventually(is_done, timeout_s=_APPLIED_S)
        check_audit(visit.audited()[logged:], action, visit)
        assert steps.screen.errors == []


@pytest.mark.parametrize("kind", _REFUSED)
def test_an_action_needs_its_right_in_kafka(
    cluster: ActionCluster, sites: ActionSites, broker_kind: str, kind: str
):
    """The console's user may make the change, but its Kafka user has a lower role's rights."""
    name = new_topic_name()
    action = ACTIONS[kind].filled(name)
    role = action.change.role
    visit = sites.secured_visit(role, ConsoleRole(role - 1).name.lower())
    with (
        action.arrange(cluster, name) as is_done,
        closing(ActionSteps(visit, action, SCREENSHOTS / broker_kind)) as steps,
    ):
        steps.open_form()
        steps.fill()
        text = steps.show_plan()
        if not steps.is_refused:
            text = steps.confirm()
        assert "AUTHORIZATION_FAILED" in text
        assert not is_done()


@pytest.mark.nightly
@pytest.mark.parametrize("kind", [kind for kind in ACTIONS if CHANGES[kind].role > 2])
def test_an_action_of_an_admin_is_not_offered_to_an_operator(
    sites: ActionSites, broker_kind: str, kind: str
):
    visit = sites.secured_visit(ConsoleRole.OPERATOR, "admin")
    action = ACTIONS[kind].filled("any")
    with closing(ActionSteps(visit, action, SCREENSHOTS / broker_kind)) as steps:
        steps.screen.open(f"/c/{visit.cluster}/change/{kind}")
        steps.screen.page.get_by_text("this needs the role admin").wait_for()
        assert steps.screen.page.locator("form.change-form").count() == 0
