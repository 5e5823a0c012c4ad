"""The controller as a state machine: decisions, replay, and reactions to expired sessions."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.coordinators.kit import CONFIG, broker, image_of, new_topic, one_broker, request
from wirebroker.base.clock import in_one_go
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import KafkaError
from wirebroker.codecs.metadata_records import RecordType, metadata_record
from wirebroker.coordinator.controller.controller import Controller
from wirebroker.coordinator.controller.controller_machine import ControllerMachine, SilentBroker
from wirebroker.coordinator.controller.requests.request import ControllerRequest
from wirebroker.coordinator.operation import ControllerResult
from wirebroker.coordinator.outcome import Moment

SESSION_MS = 9_000  # broker.session.timeout.ms


def _machine(image: Any) -> ControllerMachine:
    """Return a controller on node 100 whose log accepts records unchanged."""
    machine = ControllerMachine(Controller(CONFIG, node_id=100), image, _Log(image.offset))
    assert not machine.on_loaded(Moment(0, 0)).records
    return machine


class _Log:
    """A log of this end; the quorum appends `interruptions` control records during encoding."""

    def __init__(self, end_offset: int, interruptions: int = 0) -> None:
        self.end_offset = end_offset
        self.interruptions = interruptions

    def encode(self, records):
        base_offset = self.end_offset
        if self.interruptions:
            self.interruptions -= 1
            self.end_offset += 1
        yield
        end_offset = base_offset + len(records)
        return SimpleNamespace(base_offset=base_offset, end_offset=end_offset, records=records)


def test_an_operation_runs_again_after_a_control_record_of_the_quorum() -> None:
    image = one_broker()
    log = _Log(image.offset + 2, interruptions=1)
    machine = ControllerMachine(Controller(CONFIG, node_id=100), image, log)
    runs: list[int] = []

    def operation(newest, _now):
        runs.append(newest.offset)
        yield
        return ControllerResult(newest.offset, [metadata_record(RecordType.NO_OP)])

    decision = _decide(machine, operation)
    assert runs == [image.offset + 2, image.offset + 3]
    [(_, answer)] = decision.answers
    [change] = decision.records
    assert (answer, change.encoded.base_offset) == (runs[-1], runs[-1])
    assert change.image.offset == runs[-1] + 1


def _decide(machine: ControllerMachine, operation: Any, now_ms: int = 0) -> Any:
    return in_one_go(machine.decide(operation, "a token", Moment(0, now_ms)))


def _create(machine: ControllerMachine, name: str) -> Any:
    body = request(topics=[new_topic(name, 2)])
    return machine.rules.operation(ControllerRequest(ApiKey.CREATE_TOPICS, 7, body))


def test_decision_changes_nothing_until_it_is_applied() -> None:
    machine = _machine(one_broker())
    before = machine.image
    decision = _decide(machine, _create(machine, "t"))
    [change] = decision.records
    assert machine.image is before
    assert len(change.encoded.records) == 3
    assert change.image.offset == before.offset + 3
    assert change.change.created == {"t"}
    machine.apply(decision.records, -1)
    assert machine.image is change.image
    [(token, answer)] = decision.answers
    assert (token, answer["topics"][0].get("error_code", 0)) == ("a token", 0)
    assert not _decide(machine, _create(machine, "t")).records


def test_an_operation_that_raises_changes_nothing() -> None:
    machine = _machine(one_broker())
    before = machine.image
    body = SimpleNamespace(broker_id=9, broker_epoch=1)
    heartbeat = ControllerRequest(ApiKey.BROKER_HEARTBEAT, 0, body)
    with pytest.raises(KafkaError):
        _decide(machine, machine.rules.operation(heartbeat))
    assert machine.image is before


def test_silent_broker_is_fenced_with_retries() -> None:
    machine = _machine(image_of(broker(1), broker(2, log_directories=())))
    rules, ends = machine.rules, Moment(0, SESSION_MS)
    rules.sessions.touch(2, 5, 1)
    event = machine.timers.take_due(SESSION_MS)
    assert machine.on_timer(event, ends).effects == [SilentBroker(1, 5)]
    assert machine.timers.take_due(SESSION_MS) is None
    again = Moment(0, SESSION_MS + 1_000)
    assert machine.timers.take_due(again.monotonic_ms) == 2
    assert machine.timers.take_due(again.monotonic_ms) == 1
    decision = _decide(machine, partial(rules.fence, 1, 5), again.monotonic_ms)
    machine.apply(decision.records, -1)
    assert machine.image.brokers[1].fenced
    assert machine.on_timer(1, again).effects == ()
    assert not machine.image.brokers[2].fenced


def test_new_term_gives_active_brokers_a_full_session() -> None:
    machine = _machine(one_broker())
    machine.on_loaded(Moment(0, 5_000))
    assert machine.timers.take_due(5_000 + SESSION_MS - 1) is None
    assert machine.timers.take_due(5_000 + SESSION_MS) == 1
    assert not machine.on_unloaded().answers
