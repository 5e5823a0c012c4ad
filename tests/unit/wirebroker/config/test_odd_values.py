"""Each config with empty, blank, too long or too large values is read or raises ConfigError.

A value that is read can be described and altered, and gives listeners.
"""

from __future__ import annotations

import contextlib

import pytest

from tests.support.brokers.servers import client_of, running
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.messages import encode_response
from wirebroker.config import Config, ConfigError
from wirebroker.config.listeners.listeners import listeners_of
from wirebroker.config.lookup import listener_config
from wirebroker.config.rows.row import Mutability
from wirebroker.config.table import ROWS
from wirebroker.net.settings import NetworkSettings

LONG = "x" * 40_000
VALUES = {
    "empty": "",
    "blank": "  ",
    "comma": ",",
    "commas": " , ,",
    "colon": ":",
    "NUL": "\0",
    "long": LONG,
    "long list": "1," * 20_000,
    "many digits": "9" * 5_000,
    "infinite": "1e400",
    "NaN": "NaN",
    "negative": "-1",
    "int32": "2147483647",
    "int64": "9223372036854775807",
    "other digits": "\u0663",
    "placeholder": "${x:y:z}",
}
BROKER = {"resource_type": 4, "resource_name": "1"}
CHANGEABLE = [name for name, row in ROWS.items() if row.mutability is not Mutability.READ_ONLY]
# Reading one of these starts nothing; a NUL in them used to reach the file system.
REFUSED = [
    ("log.dirs", "/a,/b\0", "a path must not contain a NUL character"),
    ("log.dir", "\0", "a path must not contain a NUL character"),
    ("metadata.log.dir", "\0", "a path must not contain a NUL character"),
    ("broker.rack", LONG, "it must not be longer than 32767 bytes"),
    ("offsets.topic.compression.codec", "5", "it must be at most 4"),
]


@pytest.mark.parametrize(("name", "text", "words"), REFUSED)
def test_malformed_values_are_refused_without_a_traceback(name, text, words):
    with pytest.raises(ConfigError, match=words):
        Config({name: text})


@pytest.mark.parametrize("label", VALUES)
def test_each_config_accepts_or_refuses_each_odd_value(label):
    read = 0
    for name in ROWS:
        for set_name in (name, listener_config("PLAINTEXT", name)):
            with contextlib.suppress(ConfigError):
                config = Config({set_name: VALUES[label]})
                listeners_of(config)
                NetworkSettings.from_config(config)
                read += 1
    assert read, "some config takes any value"


@pytest.mark.parametrize("name", ["super.users", "sasl.enabled.mechanisms", "listeners"])
def test_value_too_long_for_a_response_is_described_as_null(name):
    text = {"super.users": f"User:{LONG}", "sasl.enabled.mechanisms": "PLAIN," * 8_000}.get(
        name, "PLAINTEXT://:1," * 4_000
    )
    config = Config({name: text.rstrip(",")})
    rows = [
        description._asdict() | {"synonyms": [row._asdict() for row in description.synonyms]}
        for description in config.describe_broker()
    ]
    result = {**BROKER, "error_code": 0, "error_message": None, "configs": rows}
    assert encode_response(ApiKey.DESCRIBE_CONFIGS, 4, {"results": [result]})
    (row,) = (row for row in rows if row["name"] == name)
    assert row["value"] is None or len(row["value"]) < len(text)


@pytest.mark.parametrize("label", VALUES)
async def test_alter_configs_with_an_odd_value_gets_a_response(label, tmp_path):
    text = VALUES[label][:32_767]
    codes = set()
    async with running(tmp_path) as server, client_of(server) as client:
        for name in CHANGEABLE:
            for set_name in (name, listener_config("PLAINTEXT", name)):
                entry = {"name": set_name, "config_operation": 0, "value": text}
                request = {
                    "resources": [{**BROKER, "configs": [entry]}],
                    "validate_only": True,
                }
                answer = await client.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request)
                codes |= {response.error_code for response in answer.responses}
    assert codes <= {ErrorCode.NONE, ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_CONFIG}
