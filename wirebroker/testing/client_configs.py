"""What clients have to be told to reach a broker, each in its own words."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

ClientName: TypeAlias = Literal["confluent", "kafka-python", "aiokafka", "spark"]

_ADDRESS: Final[dict[str, str]] = {
    "confluent": "bootstrap.servers",
    "kafka-python": "bootstrap_servers",
    "aiokafka": "bootstrap_servers",
    "spark": "kafka.bootstrap.servers",
}


def client_config(client: str, bootstrap_servers: str) -> dict[str, str]:
    """Return the settings by which a client finds the broker.

    Args:
        client: One of ClientName.
        bootstrap_servers: `host:port`.

    Raises:
        ValueError: There is no client of that name.
    """
    if client not in _ADDRESS:
        known = ", ".join(_ADDRESS)
        raise ValueError(f"no client is called {client!r}; there are {known}")
    return {_ADDRESS[client]: bootstrap_servers}
