"""Verbs that work with controllers (`--bootstrap-controller`), also without brokers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.support.brokers.servers import ThreadedServer, config_of
from tests.support.tools.ports import HOST, free_ports
from wirebroker.cli import main as cli

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """Run a node with both roles; return its listeners for clients and for controllers."""
    port, controller_port = free_ports(2)
    settings = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "listeners": f"PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{controller_port}",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": f"{HOST}:{controller_port}",
    }
    with ThreadedServer(config_of(tmp_path_factory.mktemp("data"), settings=settings)):
        yield f"{HOST}:{port}", f"{HOST}:{controller_port}"


@pytest.mark.parametrize(
    ("verb", "text"),
    [
        (["quorum"], "quorum leader 1, epoch "),
        (["quorum", "describe"], "quorum leader 1, epoch "),
        (["features", "list"], "kraft.version"),
        (["cluster"], ", controller 1\nCONTROLLER "),
        (["cluster", "info"], ", controller 1\nCONTROLLER "),
        (["features", "upgrade", "kraft.version=1", "--dry-run"], "kraft.version could have"),
    ],
)
def test_verb_works_with_a_controller(node, capsys, verb, text) -> None:
    address = f"{HOST}:1,{node[1]}"  # the first one does not run
    assert cli.run([*verb, "--bootstrap-controller", address]) == 0
    assert text in capsys.readouterr().out


def test_cluster_of_controllers_as_json(node, capsys) -> None:
    arguments = ["cluster", "--bootstrap-controller", node[1], "--output", "json"]
    assert cli.run(arguments) == 0
    cluster = json.loads(capsys.readouterr().out)
    port = int(node[1].rpartition(":")[2])
    assert cluster["controllers"] == [{"controller": 1, "host": HOST, "port": port}]
    assert (cluster["controller_id"], cluster["voters"]) == (1, [1])


def test_voters_are_changed_at_a_controller(node, capsys) -> None:
    arguments = ["quorum", "remove-voter", "1", "--yes", "--bootstrap-controller", node[1]]
    assert cli.run(arguments) == 1
    assert "controller 1 is the only voter" in capsys.readouterr().err


@pytest.mark.parametrize("verb", [["quorum"], ["topic", "list"]])
def test_controller_in_place_of_a_broker_is_named(node, capsys, verb) -> None:
    assert cli.run([*verb, "-b", node[1]]) == 1
    error = capsys.readouterr().err
    assert f"wirebroker: {node[1]} is a listener of controllers: set the address of a" in error
    assert "--bootstrap-controller" in error


def test_broker_in_place_of_a_controller_is_refused(node, capsys) -> None:
    assert cli.run(["quorum", "--bootstrap-controller", node[0]]) == 1
    assert "MISMATCHED_ENDPOINT_TYPE" in capsys.readouterr().err


def test_only_one_kind_of_address_is_accepted(node, capsys) -> None:
    assert cli.run(["quorum", "-b", node[0], "--bootstrap-controller", node[1]]) == 2
    assert "give one of --bootstrap and --bootstrap-controller" in capsys.readouterr().err


def test_unreachable_controller_is_named(capsys) -> None:
    assert cli.run(["quorum", "--bootstrap-controller", f"{HOST}:1", "--timeout", "1"]) == 1
    error = capsys.readouterr().err
    assert f"no controller responds at {HOST}:1: connection refused." in error
    assert "set its address with --bootstrap-controller HOST:PORT" in error
