"""Each example in the docstrings of what `wirebroker.testing` exports is run, on a clean broker."""

from __future__ import annotations

import doctest
import inspect

import pytest

from wirebroker import testing

FINDER = doctest.DocTestFinder(exclude_empty=False, recurse=True)
HANDLES = (testing.BrokerClock, testing.BrokerFaults, testing.SetFault, testing.Snapshot)
EXAMPLES = [
    each
    for part in (testing.Broker, *testing.Broker.__bases__, *HANDLES)
    for each in FINDER.find(part, "Broker")
    if each.examples
]


@pytest.fixture(scope="module")
def shared():
    with testing.Broker() as broker:
        yield broker


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_an_example_does_what_it_says(example, shared, capsys):
    shared.reset()
    example.globs = {"broker": shared, "Broker": testing.Broker}
    result = doctest.DocTestRunner(verbose=False).run(example, clear_globs=False)
    assert result.attempted
    assert not result.failed, capsys.readouterr().out


def test_whatever_is_public_has_an_example():
    public = {
        name
        for name, member in inspect.getmembers(testing.Broker)
        if not name.startswith("_") and (inspect.isroutine(member) or isinstance(member, property))
    }
    assert public - {each.name.removeprefix("Broker.") for each in EXAMPLES} == set()


def test_every_export_is_there_and_nothing_else():
    for name in testing.__all__:
        assert inspect.isclass(getattr(testing, name))
    with pytest.raises(AttributeError, match="no attribute 'Cluster'"):
        _ = testing.Cluster
