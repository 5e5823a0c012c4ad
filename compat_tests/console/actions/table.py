"""All actions of the console, by the kind of change."""

from __future__ import annotations

from compat_tests.console.actions.access_actions import ACCESS_ACTIONS
from compat_tests.console.actions.group_actions import GROUP_ACTIONS, TRANSACTION_ACTIONS
from compat_tests.console.actions.placement_actions import PLACEMENT_ACTIONS
from compat_tests.console.actions.service_actions import DELIVERY_ACTIONS, TEST_MODE_ACTIONS
from compat_tests.console.actions.topic_actions import TOPIC_ACTIONS

# The action that kills brokers comes last.
ACTIONS = {
    action.kind: action
    for actions in (
        TOPIC_ACTIONS,
        GROUP_ACTIONS,
        ACCESS_ACTIONS,
        TRANSACTION_ACTIONS,
        DELIVERY_ACTIONS,
        TEST_MODE_ACTIONS,
        PLACEMENT_ACTIONS,
    )
    for action in actions
}
