"""Settings of roles, voters and listeners, and which of them Apache Kafka 4.4.0 refuses.

compat_tests/scripts/test_quorum_settings.py asks Apache Kafka.
"""

from __future__ import annotations

from typing import Final, NamedTuple

COMBINED: Final = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.quorum.voters": "1@localhost:9093",
    "listeners": "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
    "controller.listener.names": "CONTROLLER",
}
CONTROLLER: Final = COMBINED | {
    "process.roles": "controller",
    "listeners": "CONTROLLER://localhost:9093",
}
BROKER: Final = COMBINED | {
    "process.roles": "broker",
    "node.id": "2",
    "listeners": "PLAINTEXT://localhost:9092",
}
NONE: Final = None  # the setting is removed


class Case(NamedTuple):
    """Settings that differ from valid ones.

    Attributes:
        kafka: Words of Apache Kafka's refusal; empty if it accepts them.
        ours: Words of this project's refusal; empty if it accepts them.
    """

    base: dict[str, str]
    changes: dict[str, str | None]
    kafka: str = ""
    ours: str = ""

    @property
    def settings(self) -> dict[str, str]:
        merged = {**self.base, **self.changes}
        return {name: value for name, value in merged.items() if value is not None}

    def __str__(self) -> str:
        changes = " ".join(f"{name}={value}" for name, value in self.changes.items())
        return f"{self.base['process.roles']} {changes}"


VOTERS: Final = "controller.quorum.voters"
SERVERS: Final = "controller.quorum.bootstrap.servers"
AUTO_JOIN: Final = "controller.quorum.auto.join.enable"
NAMES: Final = "controller.listener.names"
ADVERTISED: Final = "advertised.listeners"
INTER_BROKER: Final = "inter.broker.listener.name"
MAP: Final = "listener.security.protocol.map"
THREE: Final = "1@localhost:9093,2@c2:9093,3@c3:9093"
BOTH_MAPPED: Final = "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT"

NO_QUORUM: Final = "either controller.quorum.bootstrap.servers must contain"
NO_NAMES: Final = 'Missing required configuration "controller.listener.names"'
IN_LISTENERS: Final = "must only contain values appearing in the 'listeners' configuration"
NO_BROKER_LISTENER: Final = "There must be at least one broker advertised listener."
NO_PROTOCOL: Final = "No security protocol defined for listener"
UNROUTABLE: Final = "cannot use the nonroutable meta-address 0.0.0.0"

ROLES: Final = (
    Case(COMBINED, {}),
    Case(CONTROLLER, {}),
    Case(BROKER, {}),
    Case(COMBINED, {"process.roles": "broker,x"}, "Invalid value x", "it must be broker,contr"),
    Case(COMBINED, {"process.roles": ""}, "must not be empty", "it must be broker,controller"),
    Case(BROKER, {"process.roles": "broker,broker"}),
    Case(COMBINED, {"node.id": "-1"}, "Value must be at least 0", "it must be at least 0"),
    Case(COMBINED, {"broker.id": "2"}, "must be set to the same value", "set only one of them"),
    Case(BROKER, {AUTO_JOIN: "true"}, "is only supported when", "is not a controller"),
    Case(CONTROLLER, {VOTERS: NONE, SERVERS: "localhost:9093", AUTO_JOIN: "true"}),
    Case(BROKER, {"broker.heartbeat.interval.ms": "5000"}),
)
QUORUMS: Final = (
    Case(COMBINED, {VOTERS: THREE}),
    Case(CONTROLLER, {VOTERS: THREE}),
    Case(BROKER, {VOTERS: "1@c1:9093,3@[::1]:9093"}),
    Case(COMBINED, {VOTERS: THREE, SERVERS: "c2:9093"}),
    Case(COMBINED, {VOTERS: NONE, SERVERS: "localhost:9093,c2:9093"}),
    # A single node needs no settings.
    Case(COMBINED, {VOTERS: NONE}, NO_QUORUM),
    Case(CONTROLLER, {VOTERS: NONE}, NO_QUORUM),
    Case(BROKER, {VOTERS: NONE}, NO_QUORUM, "needs controllers to join"),
    Case(COMBINED, {VOTERS: "2@c2:9093"}, "1 must be included", "does not name node.id=1"),
    Case(CONTROLLER, {VOTERS: "2@c2:9093"}, "1 must be included", "does not name node.id=1"),
    Case(BROKER, {VOTERS: "2@c2:9093"}, "2 must not be included", "choose another node.id"),
    Case(COMBINED, {VOTERS: "1"}, "in the form `{id}@{host}:{port}`", "write id@host:port"),
    Case(COMBINED, {VOTERS: "x@c:1"}, "Failed to parse voter ID", "write id@host:port"),
    Case(COMBINED, {VOTERS: "1@c"}, "Failed to parse host name", "write host:port"),
    Case(COMBINED, {VOTERS: "1@c:x"}, "Failed to parse host name", "write host:port"),
    # No controller can be reached at this address.
    Case(COMBINED, {VOTERS: "1@0.0.0.0:9093"}, "", "write host:port"),
    Case(COMBINED, {VOTERS: NONE, SERVERS: "0.0.0.0:9093"}, "", "write host:port"),
    Case(COMBINED, {VOTERS: "1@localhost:9093,1@c:9094"}),
    Case(COMBINED, {VOTERS: "1@localhost:9093,1@localhost:9093"}),
    Case(COMBINED, {VOTERS: NONE, SERVERS: "c"}, "Failed to parse host name", "write host:port"),
    Case(COMBINED, {VOTERS: NONE, SERVERS: "c:x"}, "Failed to parse host name", "write host:port"),
    Case(COMBINED, {VOTERS: NONE, SERVERS: "localhost:9093,localhost:9093"}),
)
LISTENERS: Final = (
    # A controller without others needs no listener, and a broker finds controllers without a name.
    Case(COMBINED, {NAMES: NONE, "listeners": BROKER["listeners"]}, NO_NAMES),
    Case(BROKER, {NAMES: NONE}, NO_NAMES),
    Case(
        COMBINED,
        {NAMES: NONE, VOTERS: THREE, "listeners": BROKER["listeners"]},
        NO_NAMES,
        "need a listener of this controller",
    ),
    Case(
        CONTROLLER,
        {NAMES: NONE, "listeners": BROKER["listeners"]},
        NO_NAMES,
        "PLAINTEXT is not in controller.listener.names",
    ),
    Case(
        COMBINED,
        {NAMES: "OTHER", MAP: f"OTHER:PLAINTEXT,{BOTH_MAPPED}"},
        "must contain at least one value appearing in the 'listeners' configuration",
        "listeners has no OTHER",
    ),
    Case(COMBINED, {NAMES: "CONTROLLER,OTHER"}, IN_LISTENERS, "listeners has no OTHER"),
    Case(CONTROLLER, {NAMES: "CONTROLLER,OTHER"}, IN_LISTENERS, "listeners has no OTHER"),
    Case(COMBINED, {NAMES: "CONTROLLER,CONTROLLER"}),
    Case(
        CONTROLLER,
        {"listeners": COMBINED["listeners"]},
        "must only contain KRaft controller listeners",
        "PLAINTEXT is not in controller.listener.names",
    ),
    Case(
        COMBINED,
        {"listeners": CONTROLLER["listeners"]},
        NO_BROKER_LISTENER,
        "listeners has no listener for clients",
    ),
    Case(
        BROKER,
        {"listeners": COMBINED["listeners"]},
        "must not contain a value appearing in the 'listeners' configuration",
        "other nodes open it, remove it here",
    ),
    Case(
        BROKER,
        {MAP: "PLAINTEXT:PLAINTEXT"},
        "Controller listener with name CONTROLLER defined in controller.listener.names not found",
        "CONTROLLER is not in listener.security.protocol.map",
    ),
    Case(
        COMBINED,
        {MAP: "PLAINTEXT:PLAINTEXT"},
        NO_PROTOCOL,
        "CONTROLLER is not in listener.security.protocol.map",
    ),
    Case(CONTROLLER, {ADVERTISED: "CONTROLLER://c1:9093"}),
    Case(COMBINED, {ADVERTISED: "PLAINTEXT://b1:9092"}),
    Case(COMBINED, {ADVERTISED: "PLAINTEXT://b1:9092,CONTROLLER://c1:9093"}),
    Case(BROKER, {ADVERTISED: "PLAINTEXT://b1:9092,CONTROLLER://c1:9093"}),
    # Clients get the address that they connected to.
    Case(COMBINED, {ADVERTISED: "CONTROLLER://c1:9093"}, NO_BROKER_LISTENER),
    Case(COMBINED, {ADVERTISED: "OTHER://b1:9092"}, NO_PROTOCOL, "OTHER is not one of listeners"),
    Case(COMBINED, {ADVERTISED: "PLAINTEXT://0.0.0.0:9092"}, UNROUTABLE, "needs an address"),
    Case(CONTROLLER, {ADVERTISED: "CONTROLLER://0.0.0.0:9093"}, UNROUTABLE, "needs an address"),
    Case(CONTROLLER, {"listeners": "CONTROLLER://0.0.0.0:9093"}),
    Case(CONTROLLER, {"listeners": "CONTROLLER://:9093"}),
    Case(
        COMBINED,
        {"listeners": "PLAINTEXT://:9092,CONTROLLER://:9092"},
        "Each listener must have a different port",
        "PLAINTEXT and CONTROLLER share port 9092",
    ),
    Case(
        COMBINED,
        {INTER_BROKER: "CONTROLLER", MAP: BOTH_MAPPED},
        "inter.broker.listener.name must be a listener name defined in advertised.listeners",
        "CONTROLLER is not an advertised listener",
    ),
    Case(
        CONTROLLER,
        {INTER_BROKER: "CONTROLLER", MAP: BOTH_MAPPED},
        "must not contain an explicitly set inter.broker.listener.name",
        "brokers do not connect to it",
    ),
)
CASES: Final = (*ROLES, *QUORUMS, *LISTENERS)
