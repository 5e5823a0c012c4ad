"""Errors for arguments of wrong types, for every public function of the kit."""

from __future__ import annotations

import inspect
import re
import socket
import typing
from typing import Any, cast

import pytest

from wirebroker import testing
from wirebroker.config import ConfigError, StartError
from wirebroker.testing import Broker, BrokerClock, BrokerFaults, Cluster, ClusterNode, SetFault
from wirebroker.testing.broker.broker import BrokerFactory
from wirebroker.testing.testcontainers import KafkaContainer, WirebrokerContainer

CLASSES = (
    *(Broker, BrokerClock, BrokerFaults, Cluster, ClusterNode, SetFault),
    *(BrokerFactory, KafkaContainer, WirebrokerContainer),
)
# Objects that fit no parameter.
WRONG = (object(), {1: 2}, [object()], 1j)
# Methods that a container inherits from testcontainers' class, and its network.
THEIRS = {"with_env", "with_cluster_id", "get_exposed_port"}
# Constructors that only the kit calls.
INSIDE = {(kind, "__init__") for kind in (BrokerClock, BrokerFaults, ClusterNode, SetFault)}
UNCHECKED = {"network"}


def public_functions():
    for kind in CLASSES:
        for name, member in inspect.getmembers(kind, inspect.isroutine):
            is_public = not name.startswith("_") or name in {"__init__", "__call__"}
            function = getattr(member, "__func__", member)
            if (kind, name) in INSIDE:
                continue
            if is_public and name not in THEIRS and inspect.isfunction(function):
                yield kind, name, function


def parameters():
    for kind, name, function in public_functions():
        if not function.__module__.startswith("wirebroker.testing"):
            continue
        for parameter in list(inspect.signature(function).parameters.values())[1:]:
            if parameter.name not in UNCHECKED:
                yield pytest.param(
                    kind, name, parameter.name, id=f"{kind.__name__}.{name}-{parameter.name}"
                )


def made_without_init(kind):
    return kind.__new__(kind)


@pytest.mark.parametrize(("kind", "name", "parameter"), list(parameters()))
def test_every_wrong_argument_is_named(kind, name, parameter):
    function = getattr(made_without_init(kind), name)
    fitting = {
        "api": "PRODUCE", "error": "NONE", "topic": "orders", "value": b"", "count": 1, "name": "t",
        "partitions": {"t": 1} if name == "create_topics" else 1, "group": "g", "client": "spark",
        "to": 0, "node": 0, "moment": 0, "snapshot": "x",
    }  # fmt: skip
    required = {
        declared.name: fitting[declared.name]
        for declared in inspect.signature(function).parameters.values()
        if declared.default is declared.empty and declared.kind is not declared.VAR_POSITIONAL
    }
    for wrong in WRONG:
        if parameter == "expected" and isinstance(wrong, dict):
            continue
        label = kind.__name__ if name.startswith("__") else name
        message = rf"^\w+\(\): {parameter} must be "
        arguments = required | {parameter: wrong}
        positional = [arguments.pop("expected")] if "expected" in arguments else []
        first = [arguments.pop("topic")] if positional else []
        with pytest.raises(TypeError, match=message) as caught:
            function(*first, *positional, **arguments)
        assert label in CLASS_NAMES or str(caught.value).startswith(f"{label}()")


CLASS_NAMES = {kind.__name__ for kind in CLASSES}


def test_all_public_parameters_are_checked():
    assert len(list(parameters())) > 90


@pytest.fixture(scope="module")
def broker():
    with Broker() as broker:
        yield broker


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda broker: broker.produce("o", {"a": 1}),
            "produce(): value must be text, bytes or None, not the dict {'a': 1}; encode it first,"
            " such as json.dumps(value)",
        ),
        (lambda broker: broker.produce("o", 5), "value must be text, bytes or None, not the int 5"),
        (lambda broker: broker.produce(7, "x"), "topic must be text, not the int 7"),
        (lambda broker: broker.produce("o", "x", key=3), "key must be text, bytes or None"),
        (lambda broker: broker.produce("o", "x", headers={"a": 1}), "headers must be a mapping"),
        (lambda broker: broker.produce("o", "x", headers=iter([1])), "headers must be a mapping"),
        (
            lambda broker: broker.produce("o", "x", partition="0"),
            "partition must be a whole number",
        ),
        (lambda broker: broker.produce("o"), "produce(): missing a required argument: 'value'"),
        (lambda broker: broker.produce("o", "x", tipic=1), "unexpected keyword argument 'tipic'"),
        (lambda broker: broker.wait_for("o", True), "count must be a whole number, not the bool"),
        (lambda broker: broker.wait_for("o", None), "count must be a whole number, not None"),
        (lambda broker: broker.create_topics("orders"), "partitions must be a mapping of topic"),
        (lambda broker: broker.create_topics({"a": "3"}), "partitions must be a mapping of topic"),
        (lambda broker: broker.create_topic("o", config={"a": None}), "config must be a mapping"),
        (
            lambda broker: broker.faults.error("PRODUCE", "NONE", topic={"orders": 1}),
            "error(): topic must be text, not the dict {'orders': 1}",
        ),
        (lambda broker: broker.faults.error(0, "NONE"), "api must be a name or an enum's member"),
        (lambda broker: broker.clock.advance(days="1"), "days must be a number, not the str '1'"),
        (
            lambda broker: Broker(config=cast("Any", [1])),
            "Broker(): config must be a mapping",
        ),
    ],
)
def test_misuse_gets_an_error_that_names_the_argument(broker, call, message):
    with pytest.raises(TypeError, match=re.escape(message)):
        call(broker)


def test_topics_may_be_a_list_of_names(broker):
    broker.create_topics(["orders", "payments"])
    assert broker.topics() == {"orders": 1, "payments": 1}


def test_values_may_be_any_bytes(broker):
    record = broker.produce("raw", bytearray(b"one"), key=memoryview(b"k"), headers=[("a", b"1")])
    assert (record.value, record.key, record.headers) == (b"one", b"k", (("a", b"1"),))


@pytest.mark.parametrize(
    "make",
    [
        lambda config: Broker(config=config).start(),
        lambda config: Broker.spawn(config=config).start(),
        lambda config: Cluster(nodes=1, config=config).start(),
    ],
    ids=["Broker", "Broker.spawn", "Cluster"],
)
def test_unknown_config_is_refused_with_a_python_message(make):
    message = "^config: num.partition; did you mean num.partitions.*: there is no such config$"
    with pytest.raises(ConfigError) as caught:
        make({"num.partition": 1})
    assert "--" not in str(caught.value)
    assert re.match(message.replace("; did", ".*did"), str(caught.value)), caught.value


@pytest.mark.parametrize("own_process", [False, True], ids=["same process", "own process"])
def test_start_failure_names_python_arguments(own_process, tmp_path):
    (tmp_path / "file").write_text("")
    with socket.create_server(("127.0.0.1", 0)) as occupied:
        port = occupied.getsockname()[1]
        with pytest.raises(StartError, match=r"choose another port \(port=; 0 picks a free one\)"):
            Broker(port=port, own_process=own_process).start()
    with pytest.raises(StartError, match=r"directory=") as caught:
        Broker(directory=tmp_path / "file", own_process=own_process).start()
    assert "--" not in str(caught.value)


def test_a_node_that_does_not_exist_is_named():
    with Cluster(nodes=1) as cluster:
        for node in (7, -1):
            with pytest.raises(ValueError, match=f"^node: there is no node {node}, only 0 to 0"):
                cluster.partition_network(node)
    with pytest.raises(RuntimeError, match="the cluster was not started"):
        Cluster(nodes=1).partition_network(0)


def test_type_hints_remain_readable():
    assert inspect.signature(Broker.produce).parameters["topic"].annotation == "str"
    assert typing.get_type_hints(testing.TopicRecord)["topic"] is str
