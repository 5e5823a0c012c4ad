"""Listeners: the addresses to open, from `listeners` and related settings.

    listeners=INSIDE://:9092,OUTSIDE://0.0.0.0:9094
    advertised.listeners=INSIDE://broker1:9092,OUTSIDE://kafka.example.org:443
    listener.security.protocol.map=INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT

Listeners in controller.listener.names are the controller's; a broker that joins others must not
open any.

Source: Kafka's KafkaConfig and SocketServerConfigs (rules), EndPoint (format).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.config.lookup import PROTOCOLS
from wirebroker.config.quorum import is_controller_alone, is_member, voters_of
from wirebroker.config.rows.row import ConfigError

if TYPE_CHECKING:
    from wirebroker.config.security.outgoing import OutgoingSecurity
    from wirebroker.config.security.sasl import SaslSettings
    from wirebroker.config.security.tls import TlsSettings
    from wirebroker.config.values import Config

# Kafka's SocketServerConfigs.URI_PARSE_REGEXP; Java's dot excludes line ends.
_LISTENER = re.compile(
    r"([^:/\n\r\x85\u2028\u2029]+)://"
    r"(?:\[([0-9a-zA-Z\-%._:]*)\]|([0-9a-zA-Z\-%._]*)):(-?[0-9]{1,6})"
)
_EVERYWHERE: Final = ("", "0.0.0.0", "::")  # noqa: S104


class Address(NamedTuple):
    """A host and port; an empty host means every interface, port 0 a free port."""

    host: str
    port: int


class ListenerConfig(NamedTuple):
    """One listener; host and port as in Address, IPv6 without brackets.

    Attributes:
        name: In capitals, as in Kafka.
        advertised: The address for clients; None for the address at which their connection arrived.
            Port 0 means the bound port.
        sasl: None without SASL.
        tls: None for plain text.
    """

    name: str
    host: str
    port: int
    protocol: str
    advertised: Address | None
    sasl: SaslSettings | None = None
    tls: TlsSettings | None = None

    @property
    def is_open(self) -> bool:
        """Whether clients need neither SASL nor a certificate."""
        has_certificates = self.tls is not None and self.tls.client_auth == "required"
        return self.sasl is None and not has_certificates

    @property
    def protocol_number(self) -> int:
        """The security protocol's number in registrations."""
        return PROTOCOLS.index(self.protocol)


def listeners_of(config: Config) -> tuple[ListenerConfig, ...]:
    """Return the broker's listeners in their configured order.

    Raises:
        ConfigError: A listener is invalid.
    """
    all_listeners, controller = _all_listeners(config), _controller_names(config)
    broker_listeners = tuple(
        listener for listener in all_listeners if listener.name not in controller
    )
    if is_controller_alone(config):
        if broker_listeners:
            raise ConfigError(
                f"listeners: {broker_listeners[0].name} is not in controller.listener.names: with "
                "process.roles=controller, name it there or remove it"
            )
        if (config.optional_str("inter.broker.listener.name") or "").upper() in controller:
            raise ConfigError(
                "inter.broker.listener.name is one of controller.listener.names: brokers do not "
                "connect to it; remove the setting"
            )
        return ()
    if not broker_listeners:
        raise ConfigError(
            "listeners has no listener for clients: add one, such as PLAINTEXT://:9092"
        )
    _check_inter_broker(config, list(broker_listeners))
    return broker_listeners


def controller_listeners_of(config: Config) -> tuple[ListenerConfig, ...]:
    """Return the listeners of this node's controller.

    Raises:
        ConfigError: A listener is invalid.
    """
    if is_member(config):
        return ()
    controller = _controller_names(config)
    listeners = tuple(
        listener for listener in _all_listeners(config) if listener.name in controller
    )
    if not listeners and is_controller_alone(config):
        raise ConfigError(
            "process.roles=controller needs a listener: add one and name it in "
            "controller.listener.names"
        )
    return listeners


def _controller_names(config: Config) -> set[str]:
    return {name.upper() for name in config.list("controller.listener.names")}


def _all_listeners(config: Config) -> tuple[ListenerConfig, ...]:
    addresses = parse_addresses("listeners", config.list("listeners"))
    _check_ports(addresses)
    controller = _controller_names(config)
    protocols = _protocol_map(config, controller)
    _check_controller(config, controller, addresses, protocols)
    advertised = _advertised(config, addresses.keys() - controller, controller)
    listeners: list[ListenerConfig] = []
    for name, address in addresses.items():
        protocol = _protocol(name, protocols)
        sasl = tls = None
        if protocol.startswith("SASL_"):
            from wirebroker.config.security.sasl import sasl_settings  # noqa: PLC0415

            sasl = sasl_settings(config, name)
        if protocol.endswith("SSL"):
            from wirebroker.config.security.tls import tls_settings  # noqa: PLC0415

            tls = tls_settings(config, name, protocol)
        listeners.append(ListenerConfig(name, *address, protocol, advertised.get(name), sasl, tls))
    return tuple(listeners)


def parse_addresses(config_name: str, items: tuple[str, ...]) -> dict[str, Address]:
    """Parse NAME://host:port items; names become upper case.

    Raises:
        ConfigError: An item is invalid, or a name is repeated.
    """
    addresses: dict[str, Address] = {}
    for item in items:
        match = _LISTENER.fullmatch(item)
        if match is None:
            printable_item = item if item.isprintable() else ascii(item)
            raise ConfigError(
                f"{config_name}: {printable_item} cannot be used: write NAME://host:port"
            )
        name, port = match.group(1).upper(), int(match.group(4))
        if not 0 <= port <= 65535:
            raise ConfigError(f"{config_name}: {item} cannot be used: the port must be 0 to 65535")
        if name in addresses:
            raise ConfigError(f"{config_name}: {name} occurs twice")
        addresses[name] = Address(match.group(2) or match.group(3) or "", port)
    return addresses


def is_wildcard(host: str) -> bool:
    """Return whether a host means every interface."""
    return host in _EVERYWHERE


def is_auto(config: Config) -> bool:
    """Return whether each client gets the address at which its connection arrived."""
    return config.list("advertised.listeners") in (("auto",), ())


def _advertised(config: Config, names: set[str], controller: set[str]) -> dict[str, Address]:
    if is_auto(config):
        return {}
    advertised = parse_addresses("advertised.listeners", config.list("advertised.listeners"))
    for name, address in advertised.items():
        if name not in names | controller:
            raise ConfigError(f"advertised.listeners: {name} is not one of listeners")
        if is_wildcard(address.host):
            raise ConfigError(
                f"advertised.listeners: {name} needs an address that clients can reach, "
                f"not '{address.host}'"
            )
    return advertised


def _protocol_map(config: Config, controller: set[str]) -> dict[str, str]:
    name_of_map = "listener.security.protocol.map"
    protocols = {} if config.is_set(name_of_map) else dict.fromkeys(controller, "PLAINTEXT")
    for item in config.str(name_of_map).split(","):
        name, colon, protocol = (part.strip() for part in item.partition(":"))
        if not item.strip():
            continue
        if not colon or protocol.upper() not in PROTOCOLS:
            raise ConfigError(
                f"{name_of_map}: {item.strip()} cannot be used: write NAME: and one of "
                f"{', '.join(PROTOCOLS)}"
            )
        protocols[name.upper()] = protocol.upper()
    return protocols


def _check_controller(
    config: Config,
    controller: set[str],
    addresses: dict[str, Address],
    protocols: dict[str, str],
) -> None:
    if is_member(config):
        for name in sorted(controller & addresses.keys()):
            raise ConfigError(
                f"listeners: {name} is in controller.listener.names: with process.roles=broker "
                "other nodes open it, remove it here"
            )
        for name in sorted(controller):
            _protocol(name, protocols)
        return
    for name in sorted(controller - addresses.keys()):
        raise ConfigError(
            f"listeners has no {name}, which controller.listener.names contains: add one, such as "
            f"{name}://:9093, or remove the name"
        )
    if not controller and voters_of(config).keys() - {config.node_id}:
        raise ConfigError(
            "controller.quorum.voters names other nodes, which need a listener of this controller: "
            "add one to listeners, such as CONTROLLER://:9093, and name it in "
            "controller.listener.names"
        )
    for name in sorted(controller & addresses.keys() - protocols.keys()):
        raise ConfigError(
            f"listeners: {name} is not in listener.security.protocol.map: add {name}:PLAINTEXT"
        )


def _protocol(name: str, protocols: dict[str, str]) -> str:
    protocol = protocols.get(name)
    if protocol is None:
        raise ConfigError(
            f"listeners: {name} is not in listener.security.protocol.map: add {name}:PLAINTEXT"
        )
    return protocol


def _check_ports(addresses: dict[str, Address]) -> None:
    """Refuse a port of two listeners, unless one is IPv4 and the other IPv6."""
    listeners_by_port: dict[int, list[tuple[str, str]]] = {}
    for name, (host, port) in addresses.items():
        others = listeners_by_port.setdefault(port, [])
        if port and any((":" in other) == (":" in host) for _, other in others):
            raise ConfigError(f"listeners: {others[0][0]} and {name} share port {port}")
        others.append((name, host))


def inter_broker_listener(config: Config) -> str:
    """Return the name of the listener for other brokers; it may not exist."""
    by_protocol = config.str("security.inter.broker.protocol")
    return (config.optional_str("inter.broker.listener.name") or by_protocol).upper()


def between_brokers(config: Config) -> OutgoingSecurity:
    """Return the security of connections to other brokers.

    Raises:
        ConfigError: A setting is missing or not supported.
    """
    from wirebroker.config.security.outgoing import outgoing_security  # noqa: PLC0415

    name = inter_broker_listener(config)
    mechanism = config.str("sasl.mechanism.inter.broker.protocol")
    protocol = _protocol_map(config, set()).get(name, "PLAINTEXT")
    return outgoing_security(config, listener=name, protocol=protocol, mechanism=mechanism)


def to_controllers(config: Config) -> OutgoingSecurity:
    """Return the security of connections to controllers in other processes.

    Raises:
        ConfigError: A setting is missing or not supported.
    """
    from wirebroker.config.security.outgoing import outgoing_security  # noqa: PLC0415

    names = config.list("controller.listener.names")
    name = names[0].upper() if names else "CONTROLLER"
    mechanism = config.str("sasl.mechanism.controller.protocol")
    protocol = _protocol_map(config, {name}).get(name, "PLAINTEXT")
    return outgoing_security(config, listener=name, protocol=protocol, mechanism=mechanism)


def has_peers(config: Config) -> bool:
    """Return whether this node connects to others."""
    return is_member(config) or bool(controller_listeners_of(config))


def opens_tls(config: Config) -> bool:
    """Return whether connections to other nodes would use TLS."""
    names = {inter_broker_listener(config), *_controller_names(config)}
    protocols = _protocol_map(config, _controller_names(config))
    return any(protocols.get(name, "").endswith("SSL") for name in names)


def _check_inter_broker(config: Config, listeners: list[ListenerConfig]) -> None:
    by_name, by_protocol = "inter.broker.listener.name", "security.inter.broker.protocol"
    is_named = config.optional_str(by_name) is not None
    if is_named and config.is_set(by_protocol):
        raise ConfigError(f"{by_name} and {by_protocol} are both set: give one of them")
    listener_name = inter_broker_listener(config)
    listener = next((candidate for candidate in listeners if candidate.name == listener_name), None)
    if listener is None and (is_named or config.is_set(by_protocol)):
        name = by_name if is_named else by_protocol
        value = config.str(by_name) if is_named else listener_name
        raise ConfigError(f"{name}: {value} is not an advertised listener")
    if listener is not None and listener.sasl is not None:
        from wirebroker.config.security.sasl import check_between_brokers  # noqa: PLC0415

        check_between_brokers(config, listener.name, listener.sasl.mechanisms)
