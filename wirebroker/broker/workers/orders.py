"""Settings of each worker: those of all, and the differences.

    worker 1    node n       --port        the controller, at a port after the last worker's
    worker 2    node n+1     --port + 1    a member
    worker N    node n+N-1   --port + N-1  a member

Ports in use are skipped; for 0 the system chooses. A restarted worker keeps its ports.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from wirebroker.broker.worker_layout import WorkerDirectories
from wirebroker.broker.workers.controller_login import controller_login, is_protected
from wirebroker.codecs.json_text import parse_json
from wirebroker.config import Config, StartError
from wirebroker.config.quorum import is_controller_alone, is_member
from wirebroker.config.rows.row import SecretText, with_secrets
from wirebroker.net.listeners.ready_lines import shown_address

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_CONTROLLER_NAMES: Final = "controller.listener.names"
_PROTOCOLS: Final = "listener.security.protocol.map"
# Field of an encoded order: the names of secret flags.
_HIDDEN: Final = "hidden_flags"
_LOOPBACK: Final = "127.0.0.1"
_GREATEST_PORT: Final = 65535
_MOST_TRIED: Final = 1000
_ADDRESS: Final = re.compile(r"(?:[^:/]+://)?(?P<host>\[[^\]]*\]|[^:/\[\]]*):(?P<port>\d+)")
# Internal topics' replication factors, with their min.isr.
_INTERNAL_TOPIC_CONFIGS: Final = {
    "offsets.topic.replication.factor": None,
    "transaction.state.log.replication.factor": "transaction.state.log.min.isr",
    "share.coordinator.state.topic.replication.factor": "share.coordinator.state.topic.min.isr",
}
_MOST_REPLICAS: Final = 3


class Ports(Protocol):
    """The ports of this machine."""

    def is_free(self, host: str, port: int) -> bool:
        """Return whether a port can be bound; an empty host means all interfaces."""
        ...

    def any_free(self, host: str) -> int:
        """Return a port that can be bound."""
        ...


class WorkerConfig(NamedTuple):
    """Arguments of a worker process.

    Attributes:
        worker: Its number, from 1.
        flags: Settings that override file and environment.
        first_users: Values of --add-scram.
    """

    worker: int
    node_id: int
    flags: Mapping[str, str]
    file: str | None
    data_directory: str | None
    first_users: tuple[str, ...] = ()

    def encode(self) -> bytes:
        """Encode it as a line."""
        hidden = [name for name, text in self.flags.items() if isinstance(text, SecretText)]
        return json.dumps({**self._asdict(), _HIDDEN: hidden}).encode() + b"\n"

    @classmethod
    def decode(cls, line: bytes) -> WorkerConfig:
        """Decode an encoded order."""
        fields = parse_json(line)
        flags = with_secrets(fields.pop("flags"), fields.pop(_HIDDEN))
        order = cls(**fields, flags=flags)
        return order._replace(first_users=tuple(order.first_users))


class WorkerConfigs:
    """Creates the orders of `count` workers.

    `user_config` is `config` without the single-node profile.

    Raises:
        StartError: The workers cannot have their own controller.
    """

    def __init__(
        self,
        config: Config,
        user_config: Config,
        *,
        count: int,
        flags: Mapping[str, str],
        file: str | None,
        data_directory: str | None,
        ports: Ports,
    ) -> None:
        if is_member(config) or is_controller_alone(config):
            raise StartError(
                "--workers needs process.roles=broker,controller: the first worker runs the "
                "controller of the others",
                "omit process.roles or --workers",
            )
        self._config = config
        self._flags = dict(flags)
        self._count = count
        self._file = file
        self._is_one_directory = data_directory is not None
        self._ports = ports
        self._controllers = {
            name.upper() for name in config.list(_CONTROLLER_NAMES) or ("CONTROLLER",)
        }
        named = (*config.list("listeners"), *config.list("wirebroker.http.listeners"))
        self._used_ports = {_port_of(item.strip()) for item in named}
        self._controller = ""
        self.directories = WorkerDirectories(config.log_directories)
        self._shared = self._shared_settings(user_config)

    @property
    def first_node(self) -> int:
        """Node id of worker 1."""
        return self._config.node_id

    def first(self, first_users: Sequence[str] = ()) -> WorkerConfig:
        """Return the order of worker 1, which runs the controller."""
        items = [item.strip() for item in self._config.list("listeners")]
        if not self._names_controller:
            port = _port_of(items[0])
            controller_port = self._free_port(_LOOPBACK, port + self._count) if port else 0
            items.append(f"{min(self._controllers)}://{_LOOPBACK}:{controller_port}")
        items = [self._with_port(item, 0) for item in items]
        self._controller = next(
            _reached_at(item) for item in items if _name_of(item) in self._controllers
        )
        settings = {"process.roles": "broker,controller", "listeners": ",".join(items)}
        return self._order(1, settings)._replace(first_users=tuple(first_users))

    def member(self, worker: int) -> WorkerConfig:
        """Return the order of another worker; call it after `first`."""
        worker_offset = worker - 1
        settings = {
            "process.roles": "broker",
            "controller.quorum.bootstrap.servers": self._controller,
        }
        before = self._broker_listeners("listeners")
        listeners = [self._with_port(item, worker_offset) for item in before]
        settings["listeners"] = ",".join(listeners)
        advertised = self._broker_listeners("advertised.listeners")
        if advertised:
            changed = {
                _port_of(old): _port_of(new) for old, new in zip(before, listeners, strict=True)
            }
            settings["advertised.listeners"] = ",".join(
                _with(item, changed.get(port) or port + worker_offset)
                if (port := _port_of(item))
                else item
                for item in advertised
            )
        http = self._config.list("wirebroker.http.listeners")
        if http:
            addresses = (self._with_port(item, worker_offset) for item in http)
            settings["wirebroker.http.listeners"] = ",".join(addresses)
        return self._order(worker, settings)

    def _order(self, worker: int, settings: Mapping[str, str]) -> WorkerConfig:
        node_id = self.first_node + worker - 1
        own = {"node.id": str(node_id), "broker.id": str(node_id)}
        directories = self.directories.of(worker)
        if not self._is_one_directory:
            own["log.dirs"] = ",".join(directories)
        home = self._config.optional_str("metadata.log.dir")
        if home:
            own["metadata.log.dir"] = self.directories.within(home, worker)
        chosen = {**self._shared, **settings, **own}
        provided = [name for name in chosen if self._config.is_provided(name)]
        flags = {**self._flags, **with_secrets(chosen, provided)}
        data_directory = directories[0] if self._is_one_directory else None
        return WorkerConfig(worker, node_id, flags, self._file, data_directory)

    def _shared_settings(self, user_config: Config) -> dict[str, str]:
        settings = {_CONTROLLER_NAMES: ",".join(sorted(self._controllers))}
        settings |= self._controller_protocol(user_config)
        for factor_name, minimum_name in _INTERNAL_TOPIC_CONFIGS.items():
            requested = _number(user_config, factor_name) or _MOST_REPLICAS
            replicas = min(requested, self._count)
            settings[factor_name] = str(replicas)
            if minimum_name is not None:
                in_sync = _number(user_config, minimum_name) or replicas - (replicas > 1)
                settings[minimum_name] = str(min(in_sync, replicas))
        return settings

    def _controller_protocol(self, user_config: Config) -> dict[str, str]:
        """Return the security settings of an added controller listener."""
        protocols = {
            name.strip().upper(): protocol.strip()
            for name, _, protocol in (
                item.partition(":") for item in user_config.str(_PROTOCOLS).split(",")
            )
        }
        controller_name = min(self._controllers)
        # Kafka's sample files map it to PLAINTEXT, which admits every local user.
        is_open = protocols.get(controller_name, "PLAINTEXT").upper() == "PLAINTEXT"
        has_login = is_open and not self._names_controller and is_protected(self._config)
        if not has_login and not user_config.is_set(_PROTOCOLS):
            return {}
        for name in sorted(self._controllers):
            protocols.setdefault(name, "PLAINTEXT")
        if has_login:
            protocols[controller_name] = "SASL_PLAINTEXT"
        protocol_map = ",".join(f"{name}:{protocol}" for name, protocol in protocols.items())
        return {_PROTOCOLS: protocol_map} | (
            controller_login(self._config, controller_name) if has_login else {}
        )

    @property
    def _names_controller(self) -> bool:
        return any(_name_of(item) in self._controllers for item in self._config.list("listeners"))

    def _broker_listeners(self, name: str) -> list[str]:
        items = (item.strip() for item in self._config.list(name))
        return [item for item in items if _name_of(item) not in self._controllers]

    def _with_port(self, item: str, worker_offset: int) -> str:
        """Return an address with the port of the worker `worker_offset` places after the first."""
        host, port = _host_of(item), _port_of(item)
        if not port:
            return _with(item, self._ports.any_free(host))
        return _with(item, self._free_port(host, port + worker_offset)) if worker_offset else item

    def _free_port(self, host: str, port: int) -> int:
        """Return the first free port from `port` on that is not another worker's."""
        for candidate in range(port, min(port + _MOST_TRIED, _GREATEST_PORT + 1)):
            if candidate not in self._used_ports and self._ports.is_free(host, candidate):
                self._used_ports.add(candidate)
                return candidate
        return self._ports.any_free(host)


def _reached_at(listener: str) -> str:
    """Return host:port of a listener for clients on this machine."""
    host = _host_of(listener)
    if host in {"", "0.0.0.0", "::"}:  # noqa: S104
        host = _LOOPBACK
    return shown_address(host, _port_of(listener))


def _host_of(item: str) -> str:
    match = _ADDRESS.fullmatch(item)
    return match["host"].strip("[]") if match else ""


def _port_of(item: str) -> int:
    match = _ADDRESS.fullmatch(item)
    return int(match["port"]) if match else 0


def _with(item: str, port: int) -> str:
    return f"{item.rpartition(':')[0]}:{port}"


def _name_of(listener: str) -> str:
    return listener.partition("://")[0].strip().upper()


def _number(user_config: Config, name: str) -> int | None:
    value = user_config.set_or_default(name) if user_config.is_set(name) else None
    return value if isinstance(value, int) else None
