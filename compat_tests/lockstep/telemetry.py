"""Steps about client metrics (KIP-714): subscriptions and pushes of clients, honest and hostile.

An instance pushes at most once in its interval, which is longer than a run: no config makes it
shorter than ten minutes, except the default of five. So each instance sends
only a few requests, and new ones come all the time. Subscriptions are configs of the resource
CLIENT_METRICS. Names of configs have the run's prefix, but they apply to all clients: a run begins
and ends without them. Together they have one name of metrics: an id of subscriptions depends on the
order of names, which is a hash table's in Apache Kafka.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from compat_tests.lockstep.steps import call
from compat_tests.lockstep.topics import Topics
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from compat_tests.lockstep.kind import Moves
    from compat_tests.lockstep.steps import Expression

_CLIENT_METRICS = 16
_SET, _DELETE, _APPEND, _SUBTRACT = range(4)
_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")  # by number
_MOST_INSTANCES = 6
_VALUES: dict[str, tuple[str, ...]] = {
    "metrics": ("org.apache.kafka.", "", "*"),
    "interval.ms": ("600000", "3600000", "99", "3600001", "x", ""),
    "match": ("client_id=transcript", "client_id=.*", "client_software_name=x", "nonsense", "a=["),
    "no.such.config": ("1",),
}
# A gauge without points, as an exported message: fields of ResourceMetrics, ScopeMetrics, Metric.
_GAUGE = "0a0712050a030a0161"


@dataclass(slots=True)
class Instance:
    instance_id: bytes
    subscription: int = 0


class Telemetry(Topics):
    name = "telemetry"
    keys = frozenset(
        {
            ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
            ApiKey.PUSH_TELEMETRY,
            ApiKey.INCREMENTAL_ALTER_CONFIGS,
            ApiKey.DESCRIBE_CONFIGS,
            ApiKey.LIST_CONFIG_RESOURCES,
        }
    )

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.instances: list[Instance] = []
        self._configured: set[str] = set()

    def beginning(self) -> Moves:
        yield from self.create(1)

    def moves(self) -> list[tuple[int, Callable[[], Moves]]]:
        return [
            (14, self.subscribe),
            (20, self.push),
            (6, self.terminate),
            (6, self.push_bomb),
            (8, self.wrong_push),
            (3, self.without_id),
            (4, self.alter_config),
            (3, self.delete_config),
            (4, self.describe_config),
            (3, self.list_resources),
            (1, self.unserved_version),
        ]

    def ending(self) -> Moves:
        for name in sorted(self._configured):
            yield from self._clear(name)

    # -- clients -----------------------------------------------------------------------------

    def subscribe(self) -> Moves:
        """Get the subscription of a new instance, or once more that of another."""
        if not self.instances or self.maybe(0.7):
            instance_id = self.random.randbytes(16)
            self.instances.append(Instance(instance_id))
            del self.instances[:-_MOST_INSTANCES]
        instance = self.random.choice(self.instances)
        answer = yield from self.ask(
            ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
            {"client_instance_id": instance.instance_id},
            to=self._connection(),
        )
        if answer.is_good:
            instance.subscription = answer.number("subscription_id")

    def push(self) -> Moves:
        codec = self.random.randrange(len(_CODECS))
        yield from self._push(codec, call("packed", _CODECS[codec], bytes.fromhex(_GAUGE)))

    def terminate(self) -> Moves:
        yield from self._push(0, bytes.fromhex(_GAUGE), is_last=True)

    def push_bomb(self) -> Moves:
        """Push little that becomes much: more than the broker accepts."""
        codec = self.random.randrange(1, len(_CODECS))
        zeros = call("zeros", self.random.choice((1 << 20, 64 << 20)))
        yield from self._push(codec, call("packed", _CODECS[codec], zeros))

    def wrong_push(self) -> Moves:
        """Push with another subscription or compression, too much, or damaged bytes."""
        wrong: dict[str, Any] = self.random.choice(
            (
                {"subscription_id": 12345},
                {"compression_type": self.random.choice((-1, 5, 127))},
                {"metrics": call("zeros", 100_001)},
                {"metrics": call("zeros", 100_000)},
                {"metrics": b"\xff" * 20},
                {"metrics": b""},
                {"compression_type": self.random.choice((1, 2, 3, 4)), "metrics": b"damaged"},
            )
        )
        yield from self._push(0, bytes.fromhex(_GAUGE), wrong=wrong)

    def without_id(self) -> Moves:
        """Push with the reserved ids."""
        request = {
            "client_instance_id": bytes(15) + self.random.choice((b"\0", b"\1")),
            "subscription_id": 0,
            "compression_type": 0,
            "metrics": b"",
        }
        yield from self.ask(ApiKey.PUSH_TELEMETRY, request)

    # -- configs -----------------------------------------------------------------------------

    def alter_config(self) -> Moves:
        name = self._name()
        changes = [
            {"name": key, "config_operation": _SET, "value": self.random.choice(_VALUES[key])}
            for key in self.some([*_VALUES], maximum=3)
        ]
        if self.maybe(0.1):
            changes[0]["config_operation"] = self.random.choice((_APPEND, _SUBTRACT, 4))
        yield from self._alter(name, changes)

    def delete_config(self) -> Moves:
        changes = [
            {"name": key, "config_operation": _DELETE, "value": None}
            for key in self.some([*_VALUES][:3], maximum=3)
        ]
        yield from self._alter(self._name(), changes)

    def describe_config(self) -> Moves:
        keys = None if self.maybe(0.4) else self.some([*_VALUES])
        resource = {"resource_type": _CLIENT_METRICS, "resource_name": self._name()}
        request = {"resources": [{**resource, "configuration_keys": keys}]}
        yield from self.ask(
            ApiKey.DESCRIBE_CONFIGS, {**request, "include_synonyms": self.maybe(0.5)}
        )

    def list_resources(self) -> Moves:
        request = {"resource_types": self.random.choice(([16], [], [16, 32], [2, 4], [99], [0]))}
        yield from self.ask(ApiKey.LIST_CONFIG_RESOURCES, request)

    # -- parts -------------------------------------------------------------------------------

    def _push(
        self,
        codec: int,
        metrics: Expression | bytes,
        *,
        is_last: bool = False,
        wrong: Mapping[str, Any] | None = None,
    ) -> Moves:
        if not self.instances:
            return
        instance = self.random.choice(self.instances)
        request = {
            "client_instance_id": instance.instance_id,
            "subscription_id": instance.subscription,
            "terminating": is_last,
            "compression_type": codec,
            "metrics": metrics,
        }
        yield from self.ask(
            ApiKey.PUSH_TELEMETRY, {**request, **(wrong or {})}, to=self._connection()
        )

    def _connection(self) -> str:
        """Return a connection that stays open; brokers forget a client when its own ends."""
        return self.random.choice(("second", "third"))

    def _alter(self, name: str, changes: list[dict[str, Any]]) -> Moves:
        resource = {"resource_type": _CLIENT_METRICS, "resource_name": name, "configs": changes}
        request = {"resources": [resource], "validate_only": self.maybe(0.1)}
        answer = yield from self.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, request)
        if answer.is_good:
            self._configured.add(name)
            yield from self.until_applied(self.any_topic())

    def _clear(self, name: str) -> Moves:
        changes = [
            {"name": key, "config_operation": _DELETE, "value": None} for key in [*_VALUES][:3]
        ]
        resource = {"resource_type": _CLIENT_METRICS, "resource_name": name, "configs": changes}
        request = {"resources": [resource], "validate_only": False}
        yield from self.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, request)

    def _name(self) -> str:
        if self.maybe(0.05):
            return self.random.choice(("", "é"))
        return f"{self.prefix}metrics{self.random.randint(1, 3)}"
