"""Malformed JSON in files, responses and requests: each reader rejects it as documented."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click
import pytest

from wirebroker.base.clock import SystemClock
from wirebroker.cli.kafka import delete_records
from wirebroker.cli.kafka.operators import leader_election
from wirebroker.client.replicas.reassignment_plan import read_plan
from wirebroker.config import ConfigError
from wirebroker.config.security.oauth import OAuthSettings
from wirebroker.coordinator.raft.model.election_state import decode_election_state
from wirebroker.http.message import HttpError, HttpRequest
from wirebroker.inspect.rows.small_file_rows import clean_shutdown_row, quorum_state_row
from wirebroker.security.tokens.strict_json import strict_object
from wirebroker.security.tokens.tokens import TokenChecks

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SPOILED = {
    "arrays": b"[" * 200_000,
    "objects": b'{"a":' * 200_000,
    "NaN": b'{"leaderEpoch": NaN, "brokerEpoch": NaN, "version": NaN, "keys": NaN}',
    "infinite": b'{"leaderEpoch": 1e400, "brokerEpoch": 1e400, "version": 1e400, "keys": 1e400}',
    "long": b'{"leaderEpoch": ' + b"9" * 5000 + b"}",
    "large": b'{"leaderEpoch": 1' + b"0" * 30 + b', "brokerEpoch": 1' + b"0" * 30
    + b', "version": 0, "data_version": 0, "keys": 1}',
    "lists": b'{"leaderEpoch": [], "brokerEpoch": [], "version": 0, "data_version": [], "keys": 1}',
    "list": b"[]",
    "number": b"5",
    "NULs": b"\0" * 100,
}  # fmt: skip


def keys_of(path):
    return TokenChecks(OAuthSettings(keys_file=path), SystemClock()).load()


READERS: Final[
    dict[str, tuple[Callable[[Path], Any], type[Exception] | tuple[type[Exception], ...]]]
] = {
    "quorum-state": (lambda path: decode_election_state(path.read_bytes()), ValueError),
    "clean shutdown row": (lambda path: clean_shutdown_row(path.read_bytes()), ValueError),
    "quorum-state row": (lambda path: quorum_state_row(path.read_bytes()), ValueError),
    "plan": (lambda path: read_plan(path.read_bytes().decode()), ValueError),
    "offsets to delete": (delete_records._read, click.UsageError),
    "partitions to elect": (leader_election._read, click.UsageError),
    "JSON Web Keys": (keys_of, ConfigError),
    "token": (lambda path: strict_object(path.read_bytes())["x"], (ValueError, KeyError)),
}


@pytest.mark.parametrize("content", SPOILED.values(), ids=SPOILED)
@pytest.mark.parametrize("reader", READERS)
def test_damaged_json_file_is_refused_with_a_clear_message(reader, content, tmp_path):
    path = tmp_path / "quorum-state"
    path.write_bytes(content)
    read, refusal = READERS[reader]
    with pytest.raises(refusal):
        read(path)


@pytest.mark.parametrize("name", ["arrays", "objects", "NaN", "infinite", "long", "NULs"])
def test_invalid_json_http_body_is_a_bad_request(name):
    with pytest.raises(HttpError, match="not JSON") as refused:
        HttpRequest("POST", "/", {}, {}, SPOILED[name]).json()
    assert refused.value.status == 400
