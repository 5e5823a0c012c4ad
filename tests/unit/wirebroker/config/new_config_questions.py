"""Prints, as JSON, the behavior of a project copy that has two more configs (test_new_config.py).

python -m tests.unit.wirebroker.config.new_config_questions FOLDER
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.brokers.servers import client_of, running
from tests.support.protocol.requests import create_topic
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.config import ConfigError, TopicSettings
from wirebroker.config.docs import as_markdown, as_text
from wirebroker.config.hints import with_hint
from wirebroker.config.sources.sources import load_config

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.support.protocol.raw_client import RawClient

NAME = "wirebroker.new.thing"
TOPIC, BROKER = 2, 4


async def described(client: RawClient, kind: int, name: str) -> list[list[Any]]:
    """Return the name, value, read-only flag and source of the new configs."""
    resource = {"resource_type": kind, "resource_name": name, "configuration_keys": None}
    answer = await client.ask(ApiKey.DESCRIBE_CONFIGS, 4, {"resources": [resource]})
    return [
        [config.name, config.value, config.read_only, config.config_source]
        for config in answer.results[0].configs
        if "new.thing" in config.name
    ]


async def change(client: RawClient, value: str) -> int:
    entries = [{"name": NAME, "config_operation": 0, "value": value}]
    resource = {"resource_type": BROKER, "resource_name": "", "configs": entries}
    answer = await client.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, {"resources": [resource]})
    code: int = answer.responses[0].error_code
    return code


async def of_a_broker(path: Path) -> dict[str, Any]:
    """Return the new configs in a running broker, before and after a change."""
    settings = {NAME: "50", "log.new.thing.ms": "60"}
    async with running(path, settings=settings) as server, client_of(server) as client:
        before = await described(client, BROKER, "1")
        await create_topic(client, "t", new_thing_ms="70")
        codes = [await change(client, "51"), await change(client, "0")]
        return {
            "before": before,
            "topic": await described(client, TOPIC, "t"),
            "codes": codes,
            "after": await described(client, BROKER, "1"),
        }


def value(
    folder: Path,
    file: str | None = "",
    environment: Mapping[str, str] | None = None,
    flags: Mapping[str, str] | None = None,
) -> Any:
    path = None
    if file is not None:
        path = folder / "server.properties"
        path.write_text(file)
    try:
        config = load_config(file=path, environment=environment or {}, flags=flags or {})
    except ConfigError as error:
        return str(error)
    return [config.int(NAME), *config.warnings()]


def main(folder: Path) -> None:
    answers = asyncio.run(of_a_broker(folder / "data"))
    answers |= {
        "without a file": value(folder, None),
        "default": value(folder),
        "file": value(folder, f"{NAME}=7"),
        "environment": value(folder, "", {"KAFKA_WIREBROKER_NEW_THING": "8"}),
        "flag": value(folder, flags={NAME: "9"}),
        "refused": value(folder, flags={NAME: "0"}),
        "hint": with_hint(f"{NAME}s"),
        "text": [line for line in as_text().splitlines() if "new.thing" in line],
        "docs": [line for line in as_markdown().splitlines() if "new.thing" in line],
        "settings": TopicSettings().new_thing_ms,  # type: ignore[attr-defined]  # of the copy
    }
    sys.stdout.write(json.dumps(answers))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    main(parser.parse_args().folder)
