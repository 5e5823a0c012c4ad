"""Brokers that register, serve, stop, fail and return, and the leaders meanwhile."""

import pytest

from tests.support.coordinators.controller_kit import InstantController
from tests.support.coordinators.kit import broker, partition_of
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.metadata_records import RecordType, metadata_record
from wirebroker.coordinator.controller.features.feature_control import feature_level
from wirebroker.coordinator.controller.image.cluster_image import NO_LEADER

SESSION_MS = 9_000  # broker.session.timeout.ms
ELR = feature_level("eligible.leader.replicas.version", 1)
LEVELS = feature_level("metadata.version", 30)


def state(controller, name="t", index=0):
    partition = partition_of(controller.image, name, index)
    return partition.leader, partition.isr, partition.leader_epoch


def kinds(controller):
    return [record.type.name for record in controller.records]


def restart(controller, node_id, **fields):
    return controller.register(node_id, incarnation_id=bytes([77]) * 16, **fields)


def test_the_broker_epoch_is_the_offset_of_the_registration():
    controller = InstantController(LEVELS)
    before = controller.image.offset
    assert controller.register(1) == {"broker_epoch": before}
    node = controller.image.brokers[1]
    assert (node.epoch, node.fenced, node.rack) == (before, True, None)
    assert node.endpoints["P"].port == 1


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"cluster_id": "another"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
        ({"log_dirs": []}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": [bytes(16)]}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": [bytes(15) + b"\x63"]}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": [bytes([3]) * 16] * 2}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": [bytes([1]) * 15 + b"\x09"]}, ErrorCode.INVALID_REGISTRATION),
        ({"features": []}, ErrorCode.UNSUPPORTED_VERSION),
    ],
)
def test_registration_with_invalid_fields_is_refused(fields, code):
    controller = InstantController(LEVELS)
    controller.register(1)
    assert controller.register(2, **fields) == {"error_code": code}
    assert 2 not in controller.image.brokers


def test_second_live_broker_with_the_same_id_is_refused():
    controller = InstantController(LEVELS)
    controller.serve(1)
    assert restart(controller, 1) == {"error_code": ErrorCode.DUPLICATE_BROKER_REGISTRATION}
    epoch = controller.image.brokers[1].epoch
    # a repeated request of the same incarnation
    assert controller.register(1) == {"broker_epoch": epoch}
    controller.now_ms = SESSION_MS + 1
    assert restart(controller, 1)["broker_epoch"] > epoch


def test_restarted_controller_accepts_its_own_broker_once():
    controller = InstantController(LEVELS, broker(1), node_id=1)
    assert "broker_epoch" in controller.register(1)
    assert restart(controller, 1) == {"error_code": ErrorCode.DUPLICATE_BROKER_REGISTRATION}
    controller.now_ms = 10**9
    assert restart(controller, 1) == {"error_code": ErrorCode.DUPLICATE_BROKER_REGISTRATION}


def test_a_broker_serves_when_it_has_followed_its_own_registration():
    controller = InstantController(LEVELS)
    epoch = controller.register(1)["broker_epoch"]
    late = controller.heartbeat(1, current_metadata_offset=epoch - 1)
    assert late == {"is_caught_up": False, "is_fenced": True, "should_shut_down": False}
    assert controller.heartbeat(1, want_fence=True)["is_fenced"]
    assert not controller.heartbeat(1)["is_fenced"]
    assert controller.image.brokers[1].is_active
    assert controller.heartbeat(1)
    assert not controller.records


def test_a_heartbeat_of_another_incarnation_is_stale():
    controller = InstantController(LEVELS)
    controller.serve(1)
    stale = {"error_code": ErrorCode.STALE_BROKER_EPOCH}
    assert controller.heartbeat(1, broker_epoch=0) == stale
    assert controller.ask(ApiKey.BROKER_HEARTBEAT, broker_id=9, broker_epoch=0) == stale


def test_a_single_broker_leads_two_epochs_above_after_a_stop_and_after_a_kill():
    controller = InstantController(LEVELS, node_id=1)
    controller.serve(1)
    controller.create("t", [1])
    for expected in (2, 4):
        controller.heartbeat(1, want_shut_down=True)
        assert state(controller)[:2] == (NO_LEADER, (1,))
        assert controller.heartbeat(1, want_shut_down=True)["should_shut_down"]
        controller.rules.sessions.begin(controller.image, 0)  # both start
        restart(controller, 1)
        controller.heartbeat(1)
        assert state(controller) == (1, (1,), expected)
    controller.rules.sessions.begin(controller.image, 0)
    controller.register(1, incarnation_id=bytes([78]) * 16)
    assert kinds(controller) == ["PARTITION_CHANGE", "REGISTER_BROKER"]
    controller.heartbeat(1)
    assert state(controller) == (1, (1,), 6)
    assert partition_of(controller.image, "t").partition_epoch == 6


def test_a_clean_stop_gives_leaderships_away_before_the_broker_is_fenced():
    controller = InstantController(LEVELS)
    controller.serve(1)
    controller.create("t", [1])
    answer = controller.heartbeat(1, want_shut_down=True)
    assert (answer["should_shut_down"], answer["is_fenced"]) == (False, False)
    changes = [(record.type.name, record.version) for record in controller.records]
    assert changes == [("BROKER_REGISTRATION_CHANGE", 1), ("PARTITION_CHANGE", 2)]
    node = controller.image.brokers[1]
    assert (node.fenced, node.in_controlled_shutdown) == (False, True)
    assert controller.heartbeat(1, want_shut_down=True)["should_shut_down"]
    assert kinds(controller) == ["BROKER_REGISTRATION_CHANGE"]
    assert controller.image.brokers[1].fenced


def test_broker_leading_nothing_may_stop_at_once():
    controller = InstantController(LEVELS)
    controller.serve(1)
    assert controller.heartbeat(1, want_shut_down=True)["should_shut_down"]
    assert controller.image.brokers[1].fenced
    assert controller.heartbeat(1, want_shut_down=True)["should_shut_down"]
    assert not controller.records


def test_stopping_broker_that_leads_again_loses_leadership_again():
    controller = InstantController(LEVELS)
    controller.serve(1)
    controller.create("t", [1])
    for _ in range(2):
        controller.heartbeat(1, want_shut_down=True)
    controller.heartbeat(1)  # it is serving after all
    assert state(controller)[0] == 1
    assert not controller.heartbeat(1, want_shut_down=True)["should_shut_down"]
    assert kinds(controller) == ["PARTITION_CHANGE"]
    assert controller.heartbeat(1, want_shut_down=True)["should_shut_down"]


def test_broker_stops_after_new_leaders_have_caught_up():
    controller = InstantController(LEVELS)
    controller.serve(1, 2)
    controller.create("t", [1, 2])
    stale_offset = controller.image.offset - 1
    controller.heartbeat(1, want_shut_down=True)
    assert state(controller) == (2, (2,), 1)
    assert not controller.heartbeat(1, want_shut_down=True)["should_shut_down"]
    controller.heartbeat(2, current_metadata_offset=stale_offset)
    assert not controller.heartbeat(1, want_shut_down=True)["should_shut_down"]
    controller.heartbeat(2)
    assert controller.heartbeat(1, want_shut_down=True)["should_shut_down"]


def test_controllers_own_broker_counts_as_caught_up():
    controller = InstantController(LEVELS, node_id=2)
    controller.serve(1, 2)
    controller.create("t", [1, 2])
    assert not controller.heartbeat(1, want_shut_down=True)["should_shut_down"]
    assert state(controller) == (2, (2,), 1)
    assert controller.heartbeat(1, want_shut_down=True)["should_shut_down"]


def test_returning_broker_leads_only_leaderless_partitions():
    controller = InstantController(LEVELS)
    controller.serve(1, 2)
    controller.create("t", [1, 2], [2, 1])
    controller.create("alone", [1])
    controller.now_ms = SESSION_MS + 1
    restart(controller, 1)
    assert [state(controller, index=index)[:2] for index in range(2)] == [(2, (2,))] * 2
    assert state(controller, "alone")[:2] == (NO_LEADER, (1,))
    controller.heartbeat(1)
    assert [state(controller, index=index)[0] for index in range(2)] == [2, 2]
    assert state(controller, "alone")[0] == 1


def test_a_broker_that_asks_to_be_fenced_leads_no_more():
    controller = InstantController(LEVELS)
    controller.serve(1, 2)
    controller.create("t", [1, 2])
    assert controller.heartbeat(1, want_fence=True)["is_fenced"]
    assert state(controller) == (2, (2,), 1)
    assert kinds(controller) == ["PARTITION_CHANGE", "BROKER_REGISTRATION_CHANGE"]


def test_unregistered_broker_is_in_no_isr():
    controller = InstantController(LEVELS)
    controller.serve(1, 2)
    controller.create("t", [1, 2])
    assert controller.ask(ApiKey.UNREGISTER_BROKER, broker_id=1) == {}
    assert state(controller) == (2, (2,), 1)
    assert set(controller.image.brokers) == {2}
    answer = controller.ask(ApiKey.UNREGISTER_BROKER, broker_id=1)
    assert answer["error_code"] == ErrorCode.BROKER_ID_NOT_REGISTERED


def controllers(level=33):
    """Return the active controller 3 of a cluster in which 3 and 4 are registered."""
    controller = InstantController(feature_level("metadata.version", level), node_id=3)
    controller.write(
        [
            metadata_record(RecordType.REGISTER_CONTROLLER, controller_id=controller_id)
            for controller_id in (3, 4)
        ]
    )
    return controller


def test_a_controller_that_does_not_come_back_is_unregistered():
    controller = controllers()
    assert controller.ask(ApiKey.UNREGISTER_CONTROLLER, controller_id=4) == {}
    assert kinds(controller) == ["UNREGISTER_CONTROLLER"]
    assert set(controller.image.controllers) == {3}


@pytest.mark.parametrize(
    ("level", "node_id", "error"),
    [
        (33, 3, ErrorCode.INVALID_REQUEST),
        (33, 5, ErrorCode.CONTROLLER_ID_NOT_REGISTERED),
        (32, 4, ErrorCode.UNSUPPORTED_VERSION),
        (32, 5, ErrorCode.UNSUPPORTED_VERSION),
    ],
)
def test_a_controller_that_cannot_be_unregistered_stays(level, node_id, error):
    controller = controllers(level)
    answer = controller.ask(ApiKey.UNREGISTER_CONTROLLER, controller_id=node_id)
    assert answer["error_code"] == error
    assert answer["error_message"]
    assert set(controller.image.controllers) == {3, 4}


def test_broker_sessions_expire_without_heartbeats():
    controller = InstantController(LEVELS, node_id=3)
    controller.serve(1, 2, 3)
    sessions = controller.rules.sessions
    controller.now_ms = SESSION_MS - 1
    controller.heartbeat(2)
    timers, image = sessions.timers, controller.image
    assert timers.take_due(SESSION_MS - 1) is None
    assert timers.take_due(SESSION_MS) == 1
    assert [sessions.is_silent(broker_id, image, SESSION_MS) for broker_id in (1, 2, 3)] == [
        1,
        0,
        0,
    ]
    assert sessions.look_at(1, image, SESSION_MS)
    assert timers.take_due(SESSION_MS + 999) is None
    controller.ask(ApiKey.UNREGISTER_BROKER, broker_id=1)
    assert timers.take_due(SESSION_MS + 1_000) == 1
    assert not sessions.look_at(1, controller.image, SESSION_MS + 1_000)
    assert timers.take_due(2 * SESSION_MS - 2) is None
    assert timers.take_due(2 * SESSION_MS - 1) == 2
    assert not timers


# Eligible leader replicas (KIP-966)


def test_with_eligible_leader_replicas_the_last_replica_leaves_the_isr():
    controller = InstantController(LEVELS, ELR)
    controller.serve(1)
    controller.create("t", [1])
    controller.heartbeat(1, want_shut_down=True)
    partition = partition_of(controller.image, "t")
    assert (partition.leader, partition.isr) == (NO_LEADER, ())
    assert (partition.eligible_leader_replicas, partition.last_known_elr) == ((1,), (1,))
    controller.heartbeat(1, want_shut_down=True)
    epoch = controller.image.brokers[1].epoch
    restart(controller, 1, previous_broker_epoch=epoch)
    controller.heartbeat(1)
    partition = partition_of(controller.image, "t")
    assert (partition.leader, partition.isr, partition.leader_recovery_state) == (1, (1,), 0)
    assert (partition.eligible_leader_replicas, partition.last_known_elr) == ((), ())


def test_unclean_broker_leaves_elr_but_last_known_leader_leads():
    controller = InstantController(LEVELS, ELR)
    controller.serve(1)
    controller.create("t", [1])
    controller.now_ms = SESSION_MS + 1
    restart(controller, 1)  # it does not know its previous epoch: an unclean stop
    partition = partition_of(controller.image, "t")
    assert (partition.isr, partition.eligible_leader_replicas) == ((), ())
    assert partition.last_known_elr == (1,)
    controller.heartbeat(1)
    partition = partition_of(controller.image, "t")
    assert (partition.leader, partition.isr, partition.leader_recovery_state) == (1, (1,), 1)
