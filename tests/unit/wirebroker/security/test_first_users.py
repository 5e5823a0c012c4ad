"""Initial SCRAM users of a new cluster."""

from __future__ import annotations

import base64
import logging
from typing import TYPE_CHECKING

import pytest

from tests.support.brokers.servers import client_of, config_of
from tests.support.security.sasl_clients import log_in_scram, sasl_listener
from wirebroker.broker.server import Server
from wirebroker.cli import main as cli
from wirebroker.codecs.scram import salted_password
from wirebroker.config import ConfigError
from wirebroker.security.sasl.first_users import first_users

if TYPE_CHECKING:
    from pathlib import Path

    from wirebroker.codecs.metadata_records import MetadataRecord


async def logs_in(directory: Path, users: list[MetadataRecord], mechanism: str) -> bool:
    config = config_of(directory, settings=sasl_listener(mechanism))
    server = Server(config, first_users=users)
    await server.start()
    async with client_of(server) as client:
        answer = await log_in_scram(client, mechanism, "alice", "alice-secret")
    await server.stop()
    return answer.error_code == 0


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
async def test_new_cluster_starts_with_its_initial_users(tmp_path: Path, mechanism: str) -> None:
    users = first_users([f"{mechanism}=[name=alice,password=alice-secret]"])
    assert await logs_in(tmp_path, users, mechanism)
    assert await logs_in(tmp_path, [], mechanism)


async def test_existing_cluster_ignores_initial_users(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, logger="wirebroker")
    assert not await logs_in(tmp_path, [], "SCRAM-SHA-256")
    users = first_users(["SCRAM-SHA-256=[name=alice,password=alice-secret]"])
    assert not await logs_in(tmp_path, users, "SCRAM-SHA-256")
    assert "ignoring the initial users" in caplog.text


def test_salted_password_is_accepted() -> None:
    salt = base64.b64encode(b"salt").decode()
    salted = base64.b64encode(salted_password(1, "x", b"salt", 8192)).decode()
    text = f'SCRAM-SHA-256=[name=alice,iterations=8192,salt="{salt}",saltedpassword="{salted}"]'
    (with_salted,) = first_users([text])
    (plain,) = first_users([f"SCRAM-SHA-256=[name=alice,iterations=8192,salt={salt},password=x]"])
    assert with_salted == plain
    assert with_salted.body.salt == b"salt"


@pytest.mark.parametrize(
    "text",
    [
        "alice=hunter2",
        "SCRAM-SHA-1=[name=a,password=hunter2]",
        "SCRAM-SHA-256=[name=a]",
        "SCRAM-SHA-256=[name=a,password=]",
        'SCRAM-SHA-256=[name=a,password=""]',
        "SCRAM-SHA-256=[password=hunter2]",
        "SCRAM-SHA-256=[name=a,password=hunter2,saltedpassword=hunter2]",
        "SCRAM-SHA-256=[name=a,saltedpassword=hunter2]",
        "SCRAM-SHA-256=[name=a,salt=!,saltedpassword=hunter2]",
        "SCRAM-SHA-256=[name=a,password=hunter2,iterations=1]",
        "SCRAM-SHA-256=[name=a,password=hunter2,iterations=x]",
        "SCRAM-SHA-256=[name=a,hunter2]",
    ],
)
def test_invalid_user_is_refused_without_showing_it(text: str) -> None:
    with pytest.raises(ConfigError, match="--add-scram") as refused:
        first_users([text])
    assert "hunter2" not in str(refused.value)


def test_joining_broker_refuses_initial_users(capsys: pytest.CaptureFixture[str]) -> None:
    joins = {
        "process.roles": "broker",
        "node.id": "7",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": "127.0.0.1:1",
        "inter.broker.listener.name": "PLAINTEXT",
        "advertised.listeners": "PLAINTEXT://127.0.0.1:9092",
    }
    settings = [argument for pair in joins.items() for argument in ("--set", "=".join(pair))]
    user = "SCRAM-SHA-256=[name=a,password=x]"
    assert cli.run(["serve", *settings, "--add-scram", user]) == 2
    assert "--add-scram cannot be used" in capsys.readouterr().err


def test_user_may_be_named_only_once() -> None:
    user = "SCRAM-SHA-256=[name=a,password=x]"
    assert len(first_users([user, user.replace("256", "512")])) == 2
    with pytest.raises(ConfigError, match="twice"):
        first_users([user, user])
