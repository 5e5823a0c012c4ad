"""Steps about the configs of groups, which need not exist: valid and invalid changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from compat_tests.lockstep.topics import Topics
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from compat_tests.lockstep.kind import Moves

_GROUP: Final = 32
_SET, _DELETE, _APPEND, _SUBTRACT = range(4)
# Without blanks: Apache Kafka stores a number with blanks, and its group coordinator then fails.
_VALUES: Final[dict[str, tuple[str, ...]]] = {
    "consumer.session.timeout.ms": ("45000", "60000", "44999", "60001", "0", "x", ""),
    "consumer.heartbeat.interval.ms": ("5000", "15000", "4999", "15001", "-1"),
    "consumer.assignment.interval.ms": ("0", "15000", "15001", "2147483648"),
    "share.session.timeout.ms": ("50000", "60001"),
    "share.heartbeat.interval.ms": ("6000", "1"),
    "share.record.lock.duration.ms": ("20000", "999", "70000"),
    "share.delivery.count.limit": ("2", "1", "11"),
    "share.auto.offset.reset": ("earliest", "by_duration:P1DT2H", "never"),
    "share.isolation.level": ("read_committed", "dirty"),
    "streams.session.timeout.ms": ("50000", "1"),
    "streams.num.standby.replicas": ("1", "3", "-1"),
    "streams.initial.rebalance.delay.ms": ("5", "-5"),
    "no.such.config": ("1",),
}


class GroupConfigs(Topics):
    """Moves on configs of groups."""

    def alter_group_configs(self) -> Moves:
        changes: list[dict[str, Any]] = [
            {"name": name, "config_operation": _SET, "value": self.random.choice(_VALUES[name])}
            for name in self.some([*_VALUES], 1, 3)
        ]
        for change in changes:
            if self.maybe(0.3):
                change.update(config_operation=_DELETE, value=None)
        if self.maybe(0.05):
            changes.append(changes[0])
        if self.maybe(0.08):
            changes[0]["config_operation"] = self.random.choice((_APPEND, _SUBTRACT, 4))
        resource = {"resource_type": _GROUP, "resource_name": self._name(), "configs": changes}
        yield from self._change(ApiKey.INCREMENTAL_ALTER_CONFIGS, resource)

    def replace_group_configs(self) -> Moves:
        configs = [
            {"name": name, "value": self.random.choice(_VALUES[name])}
            for name in self.some([*_VALUES], 0, 2)
        ]
        resource = {"resource_type": _GROUP, "resource_name": self._name(), "configs": configs}
        yield from self._change(ApiKey.ALTER_CONFIGS, resource)

    def describe_group_configs(self) -> Moves:
        keys = None if self.maybe(0.2) else self.some([*_VALUES], 0, 4)
        resource = {"resource_type": _GROUP, "resource_name": self._name()}
        request = {"resources": [{**resource, "configuration_keys": keys}]}
        yield from self.ask(
            ApiKey.DESCRIBE_CONFIGS, {**request, "include_synonyms": self.maybe(0.5)}
        )

    def _change(self, key: ApiKey, resource: dict[str, Any]) -> Moves:
        is_trial = self.maybe(0.2)
        answer = yield from self.ask(key, {"resources": [resource], "validate_only": is_trial})
        if answer.is_good and not is_trial:
            yield from self.until_applied(self.any_topic())

    def _name(self) -> str:
        if self.maybe(0.05):
            return self.random.choice(("", "é"))
        return f"{self.prefix}g{self.random.randint(1, 3)}"
