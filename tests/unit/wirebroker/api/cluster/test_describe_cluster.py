"""DescribeCluster: brokers, endpoint types, fenced brokers."""

import pytest

import wirebroker.api.cluster.describe_cluster  # noqa: F401 - registers the handler
from tests.support.coordinators.kit import broker
from tests.unit.wirebroker.api.api_kit import answer, make_broker
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode


def describe(version, node=None, **body):
    return answer(node or make_broker(), ApiKey.DESCRIBE_CLUSTER, version, **body)


@pytest.mark.parametrize("version", range(3))
def test_the_cluster_is_described_in_every_version(version):
    reply = describe(version)
    assert (reply.error_code, reply.cluster_id, reply.controller_id) == (
        0,
        "MkU3OEVBNTcwNTJENDM2Qk",
        1,
    )
    [node] = reply.brokers
    assert (node.broker_id, node.host, node.port, node.rack) == (1, "localhost", 9092, None)
    assert reply.cluster_authorized_operations == -(2**31)


def test_authorized_operations_are_returned_on_request():
    reply = describe(0, include_cluster_authorized_operations=True)
    assert reply.cluster_authorized_operations == 8096


def test_fenced_brokers_are_returned_on_request():
    node = make_broker(broker(2, fenced=True))
    assert [entry.broker_id for entry in describe(2, node).brokers] == [1]
    reply = describe(2, node, include_fenced_brokers=True)
    assert [(entry.broker_id, entry.is_fenced) for entry in reply.brokers] == [
        (1, False),
        (2, True),
    ]


def test_fenced_broker_is_not_returned_as_controller():
    reply = describe(1, make_broker(broker(1, fenced=True)))
    assert (reply.controller_id, reply.brokers) == (-1, [])


@pytest.mark.parametrize(
    ("endpoint_type", "code"),
    [
        (2, ErrorCode.MISMATCHED_ENDPOINT_TYPE),
        (0, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
        (9, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
    ],
)
def test_other_endpoint_types_are_refused(endpoint_type, code):
    reply = describe(2, endpoint_type=endpoint_type)
    assert (reply.error_code, reply.brokers, reply.cluster_id) == (code, [], "")
    assert reply.error_message


def test_request_for_controllers_is_refused_with_kafkas_message():
    reply = describe(1, endpoint_type=2)
    assert (reply.error_code, reply.error_message) == (
        ErrorCode.MISMATCHED_ENDPOINT_TYPE,
        "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type"
        " CONTROLLER",
    )
