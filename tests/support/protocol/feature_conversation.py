"""Requests about feature levels and min.insync.replicas, for a new broker of either kind.

wirebroker's responses are compared with those of Apache Kafka 4.4.0, which are recorded in
tests/unit/wirebroker/quorum/features_of_kafka.json. To record a fresh Apache Kafka:

    python -m tests.support.protocol.feature_conversation PORT >
        tests/unit/wirebroker/quorum/features_of_kafka.json
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any, Final

from tests.support.protocol.raw_client import BlockingClient
from tests.support.tools.waiting import eventually
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import Callable

    # (key, version, request fields) -> the response
    Ask = Callable[[ApiKey, int, dict[str, Any]], Any]

ELR: Final = "eligible.leader.replicas.version"
TRANSACTIONS: Final = "transaction.version"
METADATA: Final = "metadata.version"
QUORUM: Final = "kraft.version"
GROUPS: Final = "group.version"
SHARE: Final = "share.version"
STREAMS: Final = "streams.version"
# Placeholder for the highest metadata.version that the broker supports.
NEWEST: Final = "newest"
UPGRADE, SAFE, UNSAFE = 1, 2, 3
_BROKER: Final = 4
_SET, _DELETE = 0, 1

# version, updates (feature, level, upgrade type), validate_only
Update = tuple[int, list[tuple[str, Any, int]], bool]

_UPDATES: Final[list[Update]] = [
    *(
        (version, [(TRANSACTIONS, level, kind)], level == 1)
        for version in (0, 1, 2)
        for level, kind in ((1, UPGRADE), (1, SAFE), (2, UPGRADE), (2, SAFE))
    ),
    (2, [(TRANSACTIONS, 0, SAFE)], False),
    (2, [(TRANSACTIONS, 1, SAFE)], False),
    (2, [(TRANSACTIONS, 2, UPGRADE)], False),
    (2, [(TRANSACTIONS, 1, UNSAFE)], False),
    (1, [(TRANSACTIONS, 2, UPGRADE), (TRANSACTIONS, 2, UPGRADE)], False),
    (2, [(TRANSACTIONS, 3, UPGRADE)], False),
    (2, [(TRANSACTIONS, -1, SAFE)], False),
    (2, [("nonsense.version", 1, UPGRADE)], False),
    (2, [("nonsense.version", 0, SAFE)], False),
    (2, [(TRANSACTIONS, 2, 0)], False),
    (2, [(TRANSACTIONS, 2, 9)], False),
    (2, [(METADATA, 29, SAFE)], False),
    (2, [(METADATA, 29, UNSAFE)], False),
    (2, [(METADATA, 29, UPGRADE)], False),
    (2, [(METADATA, 99, UPGRADE)], False),
    (2, [(METADATA, 6, SAFE)], False),
    (2, [(METADATA, NEWEST, UPGRADE)], False),
    (2, [(METADATA, NEWEST, SAFE)], False),
    (2, [(QUORUM, 1, SAFE)], False),
    (2, [(QUORUM, 0, SAFE)], False),
    (2, [(QUORUM, 0, UPGRADE)], False),
    (2, [(QUORUM, 2, UPGRADE)], False),
    (2, [(ELR, 0, UPGRADE)], False),
    (2, [(ELR, 0, SAFE)], False),
    (2, [(ELR, 1, SAFE)], False),
    (2, [(ELR, 1, UPGRADE)], True),
    (2, [(ELR, 1, UPGRADE)], False),
    (2, [(ELR, 1, UPGRADE)], False),
    (2, [(ELR, 2, UPGRADE)], False),
    (2, [(ELR, 0, UNSAFE)], False),
    (2, [(ELR, 1, UPGRADE)], False),
    *(
        (2, [(feature, level, kind)], False)
        for feature in (GROUPS, SHARE, STREAMS)
        for level, kind in (
            *((0, UPGRADE), (0, SAFE), (0, SAFE), (1, SAFE), (1, UPGRADE)),
            *((0, UNSAFE), (1, UPGRADE), (2, UPGRADE), (3, UPGRADE), (1, SAFE)),
        )
    ),
    (2, [(SHARE, 2, UPGRADE)], False),
    (2, [(TRANSACTIONS, 1, SAFE), ("nonsense.version", 1, UPGRADE)], False),
    (1, [(TRANSACTIONS, 1, SAFE), (ELR, 1, UPGRADE)], False),
    (2, [(TRANSACTIONS, 1, SAFE), (TRANSACTIONS, 2, UPGRADE)], False),
    (1, [], False),
    (2, [], False),
]

_MINIMUM: Final = "min.insync.replicas"
# broker ("" for all), operation, value
_MINIMA: Final = [
    ("", _SET, "2"),
    ("", _DELETE, None),
    ("1", _SET, "2"),
    ("1", _DELETE, None),
    ("", _SET, "1"),
]


def hold(ask: Ask) -> list[dict[str, Any]]:
    """Send all requests; return them with their responses."""
    steps: list[dict[str, Any]] = [{"features": _features(ask)}, {"minimum": _minimum(ask)}]
    newest = _features(ask)["supported"][METADATA][1]
    for version, updates, is_trial in _UPDATES:
        levels = [
            (name, newest if level == NEWEST else level, kind) for name, level, kind in updates
        ]
        response = ask(ApiKey.UPDATE_FEATURES, version, _update_request(version, levels, is_trial))
        if not is_trial and _field(response, "error_code") == 0:
            _wait_for_levels(ask, {name: level for name, level, _ in levels if name != QUORUM})
        steps.append(
            {
                "version": version,
                "updates": [list(update) for update in updates],
                "validate_only": is_trial,
                "error_code": int(_field(response, "error_code")),
                "error_message": _field(response, "error_message"),
                "finalized": _features(ask)["finalized"],
            }
        )
    change: dict[str, Any]
    for name, operation, value in _MINIMA:
        change = {"name": _MINIMUM, "config_operation": operation, "value": value}
        response = ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, _resource(name, change))
        steps.append(_config_step(name, change, response))
    for name, config in (
        ("", {"name": "log.cleaner.threads", "value": "1"}),
        ("1", {"name": _MINIMUM, "value": "1"}),
    ):
        response = ask(ApiKey.ALTER_CONFIGS, 2, _resource(name, dict(config)))
        steps.append(_config_step(name, dict(config), response))
    return steps


def _wait_for_levels(ask: Ask, levels: dict[str, int]) -> None:
    """Wait until the broker has applied the records that the controller acknowledged."""

    def is_applied() -> bool:
        finalized = _features(ask)["finalized"]
        return all(finalized.get(name, 0) == level for name, level in levels.items())

    eventually(is_applied)


def _update_request(
    version: int, levels: list[tuple[str, int, int]], is_trial: bool
) -> dict[str, Any]:
    updates = [
        {"feature": name, "max_version_level": level}
        | ({"upgrade_type": kind} if version else {"allow_downgrade": kind != UPGRADE})
        for name, level, kind in levels
    ]
    request: dict[str, Any] = {"timeout_ms": 10_000, "feature_updates": updates}
    return request | ({"validate_only": is_trial} if version else {})


def _resource(name: str, change: dict[str, Any]) -> dict[str, Any]:
    resource = {"resource_type": _BROKER, "resource_name": name, "configs": [change]}
    return {"resources": [resource]}


def _config_step(name: str, change: dict[str, Any], response: Any) -> dict[str, Any]:
    [result] = _field(response, "responses")
    return {
        "broker": name,
        "change": change,
        "error_code": int(_field(result, "error_code")),
        "error_message": _field(result, "error_message"),
    }


def _features(ask: Ask) -> dict[str, dict[str, Any]]:
    request = {"client_software_name": "conversation", "client_software_version": "1"}
    response = ask(ApiKey.API_VERSIONS, 4, request)
    supported, finalized = (
        _field(response, "supported_features"),
        _field(response, "finalized_features"),
    )
    return {
        "supported": {
            _field(feature, "name"): [
                _field(feature, "min_version"),
                _field(feature, "max_version"),
            ]
            for feature in sorted(supported, key=lambda feature: str(_field(feature, "name")))
        },
        "finalized": {
            _field(feature, "name"): _field(feature, "max_version_level")
            for feature in sorted(finalized, key=lambda feature: str(_field(feature, "name")))
        },
    }


def _minimum(ask: Ask) -> dict[str, str]:
    """Return the dynamic configs of all brokers."""
    resource = {"resource_type": _BROKER, "resource_name": "", "configuration_keys": None}
    response = ask(ApiKey.DESCRIBE_CONFIGS, 4, {"resources": [resource]})
    [result] = _field(response, "results")
    return {_field(config, "name"): _field(config, "value") for config in _field(result, "configs")}


def _field(struct: Any, name: str) -> Any:
    return struct.get(name) if isinstance(struct, dict) else getattr(struct, name)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("port", type=int, metavar="PORT")
    steps = hold(BlockingClient(("127.0.0.1", parser.parse_args().port)).ask)
    lines = ",\n".join(f"  {json.dumps(step)}" for step in steps)
    sys.stdout.write(f"[\n{lines}\n]\n")
