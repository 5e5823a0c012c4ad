import asyncio

import pytest

from tests.support.replicas.memory_peers import SETTINGS, Clock, Peers, seeded, turns
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.messages import decode_response, encode_response, response_message
from wirebroker.net.client.active_controller import (
    ActiveController,
    DeniedByControllersError,
    NotControllersError,
    has_error,
)
from wirebroker.net.client.errors import (
    CannotConnectError,
    ConnectionLostError,
    RequestTimedOutError,
    UnsupportedVersionError,
)
from wirebroker.net.client.settings import PeerAddress

ONE, TWO, THREE = (PeerAddress(f"c{number}", 9093) for number in (1, 2, 3))
CONTROLLERS = (ONE, TWO, THREE)
OLD = PeerAddress("old", 9093)


class Quorum:
    """Three controllers, one of which is active.

    Attributes:
        active: The active controller according to each address.
        served: The controllers that have served requests.
    """

    def __init__(self) -> None:
        self.peers = Peers(*CONTROLLERS, OLD)
        self.active: dict[PeerAddress, PeerAddress | None] = dict.fromkeys(CONTROLLERS, ONE)
        self.served: list[PeerAddress] = []
        for address in CONTROLLERS:
            peer = self.peers[address]
            peer.answers[ApiKey.DESCRIBE_CLUSTER] = self._describe(address)
            peer.answers[ApiKey.BROKER_HEARTBEAT] = self._serve(address)
        self.active[OLD] = OLD
        self.peers[OLD].answers[ApiKey.BROKER_HEARTBEAT] = self._serve(OLD)

    def elect(self, address, *, known_to=CONTROLLERS):
        self.active.update(dict.fromkeys(known_to, address))

    def _describe(self, address):
        def describe(request):
            assert request.body.endpoint_type == 2
            brokers = [
                {"broker_id": number, "host": controller.host, "port": controller.port}
                for number, controller in enumerate(CONTROLLERS, 1)
            ]
            active = self.active[address]
            number = -1 if active is None else CONTROLLERS.index(active) + 1
            request.answer(
                {
                    "endpoint_type": 2,
                    "cluster_id": "the-cluster",
                    "controller_id": number,
                    "brokers": brokers,
                }
            )

        return describe

    def _serve(self, address):
        def serve(request):
            if self.active[address] == address:
                self.served.append(address)
                request.answer({"error_code": 0})
            else:
                request.answer({"error_code": ErrorCode.NOT_CONTROLLER})

        return serve

    def refuse_descriptions(self):
        """Refuse DescribeCluster, but not Fetch: the node has only ClusterAction."""
        for address in CONTROLLERS:
            answers = self.peers[address].answers
            answers[ApiKey.DESCRIBE_CLUSTER] = lambda request: request.answer(
                {"error_code": ErrorCode.CLUSTER_AUTHORIZATION_FAILED}
            )
            answers[ApiKey.FETCH] = self._respond_to_fetch(address)

    def _respond_to_fetch(self, address):
        def respond(request):
            assert request.body.topics[0].partitions[0].current_leader_epoch == 0
            active = self.active[address]
            partition: dict[str, object] = {"partition_index": 0}
            partition["error_code"] = ErrorCode.FENCED_LEADER_EPOCH
            if active is None:
                partition["current_leader"] = {"leader_id": -1, "leader_epoch": 2}
                request.answer({"responses": [{"partitions": [partition]}]})
                return
            number = CONTROLLERS.index(active) + 1
            partition["current_leader"] = {"leader_id": number, "leader_epoch": 2}
            endpoint = {"node_id": number, "host": active.host, "port": active.port}
            request.answer(
                {"responses": [{"partitions": [partition]}], "node_endpoints": [endpoint]}
            )

        return respond

    def way_to_it(self, *bootstrap: PeerAddress, more=()) -> ActiveController:
        return ActiveController(
            bootstrap,
            dialer=self.peers,
            settings=SETTINGS,
            clock=Clock(),
            random=seeded(),
            more=lambda: more,
        )


def heartbeat(controller, timeout_s=5.0, **options):
    return controller.request(ApiKey.BROKER_HEARTBEAT, {}, timeout_s=timeout_s, **options)


async def test_any_controller_leads_to_the_active_one():
    quorum = Quorum()
    controller = quorum.way_to_it(THREE)
    await heartbeat(controller)
    assert quorum.served == [ONE]
    assert (controller.controller_id, controller.cluster_id) == (1, "the-cluster")
    await heartbeat(controller)
    assert quorum.peers[ONE].dials == 1
    await controller.close()


async def test_new_active_controller_is_found_after_not_controller():
    quorum = Quorum()
    controller = quorum.way_to_it(*CONTROLLERS)
    await heartbeat(controller)
    quorum.elect(TWO)
    await heartbeat(controller)
    assert quorum.served == [ONE, TWO]
    await controller.close()


async def test_node_that_may_not_describe_the_cluster_finds_the_active_controller():
    quorum = Quorum()
    quorum.refuse_descriptions()
    quorum.elect(None, known_to=(THREE,))
    controller = quorum.way_to_it(TWO, THREE)
    await heartbeat(controller)
    assert quorum.served == [ONE]
    assert (controller.controller_id, controller.cluster_id) == (1, None)
    quorum.elect(TWO)
    await heartbeat(controller)
    assert quorum.served == [ONE, TWO]
    await controller.close()


async def test_new_active_controller_is_found_after_a_disconnect():
    quorum = Quorum()
    controller = quorum.way_to_it(ONE)  # the others are known from its response
    await heartbeat(controller)
    quorum.peers[ONE].refuses = ConnectionRefusedError(111, "refused")
    quorum.peers[ONE].link.drop()
    quorum.elect(TWO)
    await heartbeat(controller)
    assert quorum.served == [ONE, TWO]
    await controller.close()


async def test_later_known_controllers_are_asked_last():
    quorum = Quorum()
    later: list[PeerAddress] = []
    quorum.peers[OLD].answers[ApiKey.DESCRIBE_CLUSTER] = quorum._describe(THREE)
    quorum.active[OLD] = None
    controller = quorum.way_to_it(OLD, more=later)
    quorum.elect(None)
    quorum.elect(TWO, known_to=(TWO,))
    with pytest.raises(RequestTimedOutError):
        await heartbeat(controller, timeout_s=0.2)
    later.append(TWO)
    await heartbeat(controller)
    assert quorum.served == [TWO]
    await controller.close()


async def test_newer_controller_information_overrides_a_lagging_one():
    quorum = Quorum()
    controller = quorum.way_to_it(*CONTROLLERS)
    await heartbeat(controller)
    quorum.peers[ONE].hangs = True
    quorum.peers[ONE].link.drop()
    quorum.elect(TWO, known_to=(TWO,))
    controller.forget(ONE)
    # A hanging controller does not use up the full 2 s of its request timeout.
    await heartbeat(controller, timeout_s=1.8)
    assert quorum.served == [ONE, TWO]
    await controller.close()


async def test_an_election_is_waited_for():
    quorum = Quorum()
    quorum.elect(None)
    controller = quorum.way_to_it(*CONTROLLERS)
    request = asyncio.create_task(heartbeat(controller))
    await turns(50)
    assert not request.done()
    quorum.elect(THREE)
    await request
    assert quorum.served == [THREE]
    await controller.close()


async def test_failed_search_reports_the_last_responses():
    quorum = Quorum()
    quorum.elect(None)
    controller = quorum.way_to_it(ONE, PeerAddress("nowhere", 9093))
    with pytest.raises(RequestTimedOutError) as caught:
        await heartbeat(controller, timeout_s=1)  # enough for a busy machine
    assert "c1:9093: no controller is active" in str(caught.value)
    assert "nowhere:9093: no listener" in str(caught.value)
    assert not caught.value.may_have_arrived
    with pytest.raises(CannotConnectError, match="no controller is active"):
        await controller.find(1.0)
    await controller.close()


async def test_request_is_repeated_even_if_it_may_have_been_executed():
    quorum = Quorum()
    controller = quorum.way_to_it(ONE)
    answers = quorum.peers[ONE].answers
    serve = answers[ApiKey.BROKER_HEARTBEAT]

    def drop_once(request):
        answers[ApiKey.BROKER_HEARTBEAT] = serve
        request.link.drop()

    answers[ApiKey.BROKER_HEARTBEAT] = drop_once
    await heartbeat(controller)
    assert quorum.served == [ONE]
    answers[ApiKey.BROKER_HEARTBEAT] = drop_once
    with pytest.raises(ConnectionLostError) as caught:
        await heartbeat(controller, is_repeatable=False)
    assert caught.value.may_have_arrived
    await controller.close()


async def test_permanent_error_is_reported_at_once():
    quorum = Quorum()
    del quorum.peers[ONE].versions[ApiKey.BROKER_HEARTBEAT]
    controller = quorum.way_to_it(ONE)
    with pytest.raises(UnsupportedVersionError):
        await heartbeat(controller)
    await controller.close()


async def test_concurrent_requests_share_one_search():
    quorum = Quorum()
    controller = quorum.way_to_it(THREE)
    await asyncio.gather(*(heartbeat(controller) for _ in range(5)))
    looked = [
        request for request in quorum.peers[THREE].link.asked if request.key.name != "API_VERSIONS"
    ]
    assert len(looked) == 1
    await controller.close()


async def test_removed_controllers_are_no_longer_used():
    quorum = Quorum()
    controller = quorum.way_to_it(ONE)
    answers = quorum.peers[ONE].answers
    describe_present = answers[ApiKey.DESCRIBE_CLUSTER]
    answers[ApiKey.DESCRIBE_CLUSTER] = lambda request: request.answer(
        {
            "endpoint_type": 2,
            "cluster_id": "the-cluster",
            "controller_id": 4,
            "brokers": [{"broker_id": 4, "host": OLD.host, "port": OLD.port}],
        }
    )
    await heartbeat(controller)
    answers[ApiKey.DESCRIBE_CLUSTER] = describe_present
    assert quorum.served == [OLD]
    quorum.peers[OLD].answers[ApiKey.BROKER_HEARTBEAT] = lambda request: request.answer(
        {"error_code": ErrorCode.NOT_CONTROLLER}
    )
    await heartbeat(controller)
    assert quorum.served == [OLD, ONE]
    assert quorum.peers[OLD].link.is_closed
    await controller.close()


async def test_node_without_any_right_is_refused():
    quorum = Quorum()
    quorum.refuse_descriptions()
    quorum.peers[ONE].answers[ApiKey.FETCH] = lambda request: request.answer(
        {"error_code": ErrorCode.CLUSTER_AUTHORIZATION_FAILED}
    )
    controller = quorum.way_to_it(ONE)
    with pytest.raises(CannotConnectError, match="c1:9093: CLUSTER_AUTHORIZATION_FAILED"):
        await controller.find(1.0)
    await controller.close()


def refusal(error):
    """Return what responds to a request with an error."""

    def respond(request):
        request.answer({"error_code": error})

    return respond


@pytest.mark.parametrize(
    ("other_error", "is_denied"),
    [
        (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, True),
        # Its ACLs are not loaded.
        (ErrorCode.UNKNOWN_SERVER_ERROR, False),
    ],
)
async def test_denial_counts_if_all_reachable_controllers_deny(other_error, is_denied):
    quorum = Quorum()
    quorum.refuse_descriptions()
    errors = {ONE: ErrorCode.CLUSTER_AUTHORIZATION_FAILED, TWO: other_error}
    for address, error in errors.items():
        quorum.peers[address].answers[ApiKey.FETCH] = refusal(error)
    quorum.peers[THREE].refuses = OSError("connection refused")
    controller = quorum.way_to_it(*CONTROLLERS)
    with pytest.raises(CannotConnectError) as failed:
        await controller.find(1.0)
    assert isinstance(failed.value, DeniedByControllersError) is is_denied
    with pytest.raises(RequestTimedOutError) as timed_out:
        await heartbeat(controller, timeout_s=1)
    assert timed_out.value.is_denied is is_denied
    await controller.close()


async def test_error_of_the_queried_controller_is_reported():
    quorum = Quorum()
    quorum.peers[ONE].answers[ApiKey.DESCRIBE_CLUSTER] = lambda request: request.answer(
        {"error_code": ErrorCode.UNKNOWN_SERVER_ERROR, "error_message": "no"}
    )
    controller = quorum.way_to_it(ONE)
    with pytest.raises(CannotConnectError, match="c1:9093: UNKNOWN_SERVER_ERROR no"):
        await controller.find(1.0)
    await controller.close()


async def test_search_that_times_out_leaves_problems_to_concurrent_search():
    quorum = Quorum()
    quorum.elect(None)
    silent = quorum.peers[TWO]
    silent.answers[ApiKey.DESCRIBE_CLUSTER] = lambda _request: None
    controller = quorum.way_to_it(ONE, TWO)
    first = asyncio.ensure_future(controller.find(5.0))
    await turns(50)
    with pytest.raises(CannotConnectError) as second:
        await controller.find(0.0)
    assert "no controller is active" not in str(second.value)
    with pytest.raises(CannotConnectError, match="c1:9093: no controller is active"):
        await first
    await controller.close()


async def test_search_ends_at_its_timeout():
    quorum = Quorum()
    quorum.peers[ONE].hangs = True
    controller = quorum.way_to_it(ONE)
    with pytest.raises(CannotConnectError, match=r"no active controller found within 0\.01 s"):
        await controller.find(0.01)
    await controller.close()


async def test_not_controllers_error_needs_all_addresses_to_be_brokers():
    quorum = Quorum()
    for address in (ONE, TWO):
        quorum.peers[address].answers[ApiKey.DESCRIBE_CLUSTER] = lambda request: request.answer(
            {"error_code": ErrorCode.MISMATCHED_ENDPOINT_TYPE, "error_message": "no"}
        )
    quorum.active[THREE] = None
    controller = quorum.way_to_it(ONE, TWO)
    with pytest.raises(
        NotControllersError, match="c1:9093 is a client listener, not a controller listener"
    ):
        await controller.find(1.0)
    await controller.close()
    controller = quorum.way_to_it(ONE, TWO, THREE)
    with pytest.raises(CannotConnectError, match="no controller is active") as caught:
        await controller.find(1.0)
    assert not isinstance(caught.value, NotControllersError)
    quorum.active[THREE] = THREE
    assert (await controller.find(1.0)).address == THREE
    await controller.close()


async def test_broker_response_without_controllers_is_an_error():
    quorum = Quorum()
    quorum.peers[ONE].answers[ApiKey.DESCRIBE_CLUSTER] = lambda request: request.answer({})
    controller = quorum.way_to_it(ONE)
    with pytest.raises(CannotConnectError, match="its response does not describe controllers"):
        await controller.find(1.0)
    await controller.close()


def answer_of(key, fields):
    version = response_message(key).versions[-1]
    return decode_response(key, version, encode_response(key, version, fields))


@pytest.mark.parametrize(
    ("key", "fields", "is_there"),
    [
        (ApiKey.ENVELOPE, {"error_code": 41}, True),
        (ApiKey.ENVELOPE, {"error_code": 42}, False),
        (ApiKey.CREATE_TOPICS, {"topics": [{"name": "a", "error_code": 41}]}, True),
        (ApiKey.CREATE_TOPICS, {"topics": [{"name": "a", "error_code": 36}]}, False),
        (
            ApiKey.ALTER_PARTITION,
            {"topics": [{"partitions": [{}, {"error_code": 41}]}]},
            True,
        ),
    ],
)
def test_error_code_is_found_at_any_level_of_a_response(key, fields, is_there):
    assert has_error(answer_of(key, fields), ErrorCode.NOT_CONTROLLER) == is_there


async def test_abort_fails_a_pending_request_at_once():
    quorum = Quorum()
    controller = quorum.way_to_it(ONE)
    await heartbeat(controller)
    received = asyncio.Event()
    quorum.peers[ONE].answers[ApiKey.BROKER_HEARTBEAT] = lambda _: received.set()
    request = asyncio.create_task(heartbeat(controller, is_repeatable=False))
    await received.wait()
    controller.abort()
    with pytest.raises(ConnectionLostError, match="closed by us"):
        await request


async def test_controller_of_another_cluster_is_not_used():
    quorum = Quorum()
    controller = quorum.way_to_it(ONE)
    await heartbeat(controller)
    controller.cluster_id = "another-cluster"
    controller.forget(ONE)
    with pytest.raises(CannotConnectError, match="c1:9093 belongs to another cluster, the-cluster"):
        await controller.find(1.0)
    assert quorum.served == [ONE]


async def test_known_cluster_is_sent_to_nodes_that_refuse_descriptions():
    quorum = Quorum()
    controller = quorum.way_to_it(ONE)
    await heartbeat(controller)
    quorum.refuse_descriptions()
    controller.forget(ONE)
    await heartbeat(controller)
    (fetch,) = [request for request in quorum.peers[ONE].link.asked if request.key is ApiKey.FETCH]
    assert fetch.body.cluster_id == "the-cluster"
    await controller.close()


async def test_denial_counts_although_the_deadline_ends_the_last_lookup():
    quorum = Quorum()
    quorum.refuse_descriptions()
    controller = quorum.way_to_it(ONE)
    lookups = 0

    def count(request):
        nonlocal lookups
        lookups += 1
        if lookups == 1:
            refusal(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)(request)

    quorum.peers[ONE].answers[ApiKey.FETCH] = count
    with pytest.raises(RequestTimedOutError) as timed_out:
        await heartbeat(controller, timeout_s=1)
    assert lookups > 1
    assert timed_out.value.is_denied
    await controller.close()
