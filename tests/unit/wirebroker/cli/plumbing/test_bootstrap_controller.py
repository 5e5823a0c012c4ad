"""Verbs that work with controllers (`--bootstrap-controller`), also without brokers."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from tests.support.brokers.servers import ThreadedServer, config_of
from tests.support.replicas.memory_peers import Peers
from tests.support.tools.ports import HOST, free_ports
from wirebroker.cli import main as cli
from wirebroker.cli.plumbing import running
from wirebroker.client.cluster.voter_states import SILENT_STEP
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.net.client.settings import PeerAddress

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
    assert error.endswith(f" ({node[1]}: no common version of METADATA)\n")


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
    assert error.endswith(
        " Start them, each on its own directory, or set their addresses with"
        " --bootstrap-controller HOST:PORT\n"
    )


@pytest.mark.parametrize("verb", ["cluster", "quorum"])
def test_unreachable_leader_is_no_lost_majority(verb, monkeypatch, capsys) -> None:
    # Controller 2 names controller 1 as the leader, which does not run.
    addresses = [PeerAddress("c1", 9093), PeerAddress("c2", 9093)]
    peers = Peers(addresses[1])
    controllers = [
        {"broker_id": number, "host": address.host, "port": address.port}
        for number, address in enumerate(addresses, 1)
    ]
    described = {"endpoint_type": 2, "controller_id": 1, "brokers": controllers}
    peers[addresses[1]].answers[ApiKey.DESCRIBE_CLUSTER] = lambda request: request.answer(described)
    way = SimpleNamespace(dialer=peers, handshake=None)
    monkeypatch.setattr(running, "way_to_cluster", lambda _settings: way)
    cli.run([verb, "--bootstrap-controller", str(addresses[1]), "--timeout", "1"])
    output = "".join(capsys.readouterr())
    assert "cannot reach controller 1 at its advertised address c1:9093" in output
    assert SILENT_STEP not in output


@pytest.mark.parametrize("verb", ["cluster", "quorum"])
def test_quorum_without_a_leader_needs_a_majority(verb, monkeypatch, capsys) -> None:
    address = PeerAddress("c2", 9093)
    peers = Peers(address)
    controller = {"broker_id": 2, "host": address.host, "port": address.port}
    described = {"endpoint_type": 2, "controller_id": -1, "brokers": [controller]}
    answers = peers[address].answers
    answers[ApiKey.DESCRIBE_CLUSTER] = lambda request: request.answer(described)
    answers[ApiKey.DESCRIBE_QUORUM] = lambda request: request.answer(
        {"error_code": ErrorCode.NOT_LEADER_OR_FOLLOWER}
    )
    way = SimpleNamespace(dialer=peers, handshake=None)
    monkeypatch.setattr(running, "way_to_cluster", lambda _settings: way)
    cli.run([verb, "--bootstrap-controller", str(address), "--timeout", "1"])
    assert f"next: {SILENT_STEP}" in "".join(capsys.readouterr())
