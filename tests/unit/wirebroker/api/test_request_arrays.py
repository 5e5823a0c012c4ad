"""The cost of arrays in requests: names that are repeated, numerous or very long.

The arrays of all served requests come from the protocol's schemas. They have their full size only
with --nightly, else an eighth.
"""

from __future__ import annotations

import contextlib
import gc
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.brokers.furnished_broker import FurnishedBroker, furnished_broker
from tests.support.harness.request_sizes import EIGHTH, LARGEST, RequestSizes
from tests.support.harness.turn_work import TurnWork
from tests.support.protocol.raw_client import request_frame
from tests.support.protocol.request_arrays import Place, at_or_none, places, renamed
from tests.support.protocol.sample_requests import at, with_elements
from wirebroker.base.clock import next_turn
from wirebroker.base.gc_tuning import collect_frozen
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import Iterator


PARTITIONS = 200
REPEATED = 500
LONG = 32_000
# For RequestSizes.of, as are the calls.
SOME = 4_000
MANY = 19_000

# A slice of 5 ms (clock.Slices) makes a quarter of these calls. Code that does not yield makes at
# most seven per element; a Produce of 20,000 mostly refused partitions makes sixteen.
MOST_CALLS = 7 * MANY
MOST_CALLS_OF_PRODUCE = 16 * MANY
MOST_LINES = 20_000
LINES_OF_NOTHING = 5
LINES_OF_A_PRODUCED_TOPIC = 45


class Asker:
    def __init__(self, broker: FurnishedBroker, sizes: RequestSizes) -> None:
        self.sizes = sizes
        self.server = broker.server
        self.samples = broker.samples
        self.work = TurnWork(broker.server.watch)
        self._broker = broker

    def answer(self, place: Place, body: dict[str, Any]) -> bytes:
        frame = request_frame(place.key, place.version, body)
        self.server.call(self.work.begin())
        try:
            answer = self.exchange(frame)
        finally:
            self.server.call(self.work.end())
        return answer

    def exchange(self, frame: bytes) -> bytes:
        """Send a request on a separate connection, which the broker may close."""
        with self._broker.client() as client:
            return client.exchange(frame)

    def lines_of(self, place: Place, body: dict[str, Any]) -> int:
        """Return the lines that the broker runs in its longest turn of a request."""
        frame = request_frame(place.key, place.version, body)
        self.server.call(self.work.begin_lines())
        self.exchange(frame)
        self.server.call(self.work.end())
        return self.work.largest


@pytest.fixture(scope="module")
def asker(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Iterator[Asker]:
    sizes = LARGEST if pytestconfig.getoption("--nightly") else EIGHTH
    directory = tmp_path_factory.mktemp("data")
    with sizes.limits(), furnished_broker(directory, partitions=PARTITIONS) as broker:
        yield Asker(broker, sizes)


PLACES = places()


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_a_name_that_is_repeated_is_answered_once(asker: Asker, place: Place) -> None:
    """A response does not repeat a thing for each time that the request names it."""
    for names_all in (False, True):
        body = asker.samples.body(place.key, place.version, names_all=names_all)
        element = next(iter(at_or_none(body, place.path) or ()), None)
        if element is None:
            continue
        once = asker.answer(place, body)
        work_once = asker.work.total
        often = asker.answer(place, with_elements(body, place.path, [element] * REPEATED))
        assert len(often) <= len(once) + 120 * REPEATED
        assert asker.work.total < work_once + 400 * REPEATED


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_many_names_are_served_in_slices(asker: Asker, place: Place) -> None:
    body = asker.samples.body(place.key, place.version)
    element = at(body, place.path)[0]
    # Produce may name 20,000 partitions, and any number of topics.
    is_produce = place.key is ApiKey.PRODUCE
    count = asker.sizes.of(MANY // 2 if is_produce else MANY)
    elements = [renamed(element, number) for number in range(count)]
    asker.answer(place, with_elements(body, place.path, elements))
    most_calls = asker.sizes.of(MOST_CALLS_OF_PRODUCE if is_produce else MOST_CALLS)
    assert asker.work.largest <= most_calls


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_long_names_are_served_in_slices(asker: Asker, place: Place) -> None:
    body = asker.samples.body(place.key, place.version)
    element = at(body, place.path)[0]
    elements = [renamed(element, number, length=LONG) for number in range(10)]
    assert asker.lines_of(place, with_elements(body, place.path, elements)) < MOST_LINES


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_many_elements_with_empty_arrays_are_served_in_slices(asker: Asker, place: Place) -> None:
    """Elements whose own arrays are empty: the loop over the elements must yield as well."""
    body = asker.samples.body(place.key, place.version)
    element = at(body, place.path)[0]
    if not isinstance(element, dict) or not any(isinstance(e, list) for e in element.values()):
        return
    empty = {name: [] if isinstance(e, list) else e for name, e in element.items()}
    # As many as are decoded in a thread; for Produce, as many as it may name.
    is_produce = place.key is ApiKey.PRODUCE
    count = asker.sizes.of(MANY if is_produce else 2 * MANY)
    elements = [renamed(empty, number) for number in range(count)]
    line_limit = count * (LINES_OF_A_PRODUCED_TOPIC if is_produce else LINES_OF_NOTHING)
    assert asker.lines_of(place, with_elements(body, place.path, elements)) <= line_limit


@pytest.fixture(scope="module")
def uncollected(asker: Asker) -> Iterator[None]:
    gc.collect()
    gc.freeze()
    gc.disable()
    yield
    gc.enable()
    collect_frozen()


@pytest.mark.usefixtures("uncollected")
@pytest.mark.parametrize("place", PLACES, ids=str)
@pytest.mark.parametrize("share", [1, 2], ids=["whole", "half"])
def test_requests_leave_no_garbage_cycles(asker: Asker, place: Place, share: int) -> None:
    """A cycle may stay forever (gc_tuning.py): an error with its frames and their locals."""
    body = asker.samples.body(place.key, place.version)
    element = at(body, place.path)[0]
    count = asker.sizes.of(SOME)
    elements = [renamed(element, number) for number in range(count)]
    frame = request_frame(place.key, place.version, with_elements(body, place.path, elements))
    content = frame[4 : len(frame) // share]
    with contextlib.suppress(AssertionError, ConnectionError):  # the broker closes the connection
        asker.exchange(len(content).to_bytes(4) + content)
    asker.server.call(next_turn())
    assert gc.collect() < count // 4
