"""Runs each docstring example of what `wirebroker.testing` exports, on an empty broker."""

from __future__ import annotations

import inspect

import pytest

from tests.support.harness.examples import check_example, examples_of
from wirebroker import testing

HANDLES = (
    *(testing.BrokerClock, testing.BrokerDelivery, testing.BrokerFaults),
    *(testing.SetFault, testing.Snapshot),
)
EXAMPLES = examples_of((testing.Broker, *testing.Broker.__bases__, *HANDLES), "Broker")


@pytest.fixture(scope="module")
def shared():
    with testing.Broker() as broker:
        yield broker


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_example_works(example, shared, capsys):
    shared.reset()
    check_example(example, {"broker": shared, "Broker": testing.Broker}, capsys)


def test_every_public_name_has_an_example():
    public = {
        name
        for name, member in inspect.getmembers(testing.Broker)
        if not name.startswith("_") and (inspect.isroutine(member) or isinstance(member, property))
    }
    assert public - {example.name.removeprefix("Broker.") for example in EXAMPLES} == set()


def test_exports_are_complete_and_exact():
    for name in testing.__all__:
        assert inspect.isclass(getattr(testing, name))
    with pytest.raises(AttributeError, match="no attribute 'Container'"):
        _ = testing.Container
