"""CreateAcls and DeleteAcls: records, refusals, and filters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.coordinators.controller_kit import InstantController
from tests.support.coordinators.kit import image_of
from wirebroker.codecs.acls import ALLOW, ANY, LITERAL, MATCH, PREFIXED, Operation, Resource
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.metadata_records import RecordType
from wirebroker.config import Config
from wirebroker.config.rows.authorizer import STANDARD
from wirebroker.coordinator.controller.features.feature_control import feature_level
from wirebroker.coordinator.controller.image.cluster_image import to_records

if TYPE_CHECKING:
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage

_INVALID = ErrorCode.INVALID_REQUEST


def creation(**fields: Any) -> dict[str, Any]:
    return {
        "resource_type": Resource.TOPIC,
        "resource_name": "t",
        "resource_pattern_type": LITERAL,
        "principal": "User:a",
        "host": "*",
        "operation": Operation.READ,
        "permission_type": ALLOW,
        **fields,
    }


def wish(**fields: Any) -> dict[str, Any]:
    return {
        "resource_type_filter": ANY,
        "resource_name_filter": None,
        "pattern_type_filter": ANY,
        "principal_filter": None,
        "host_filter": None,
        "operation": ANY,
        "permission_type": ANY,
        **fields,
    }


@pytest.fixture
def controller() -> InstantController:
    made = InstantController(feature_level("metadata.version", 33))
    made.rules.use_config(Config({"authorizer.class.name": STANDARD}))
    return made


def names(image: ClusterImage) -> set[str]:
    return {entry.resource_name for entry in image.acls.values()}


def test_without_an_authorizer_nothing_is_changed():
    open_to_all = InstantController()
    answer = open_to_all.ask(ApiKey.CREATE_ACLS, creations=[creation(), creation()])
    assert [result["error_code"] for result in answer["results"]] == [54, 54]
    answer = open_to_all.ask(ApiKey.DELETE_ACLS, filters=[wish()])
    assert [result["error_code"] for result in answer["filter_results"]] == [54]
    assert not open_to_all.records


def test_existing_acl_is_not_written_again(controller):
    answer = controller.ask(ApiKey.CREATE_ACLS, creations=[creation(), creation()])
    assert answer == {"results": [{}, {}]}
    assert [record.type for record in controller.records] == [RecordType.ACCESS_CONTROL_ENTRY]
    answer = controller.ask(ApiKey.CREATE_ACLS, creations=[creation(), creation(host="1")])
    assert answer == {"results": [{}, {}]}
    assert [record.body.host for record in controller.records] == ["1"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"resource_name": ""},
        {"resource_type": 99},
        {"resource_pattern_type": 99},
        {"operation": 99},
        {"permission_type": 99},
        {"resource_type": Resource.CLUSTER},
        {"resource_type": ANY},
        {"resource_pattern_type": ANY},
        {"resource_pattern_type": MATCH},
        {"operation": ANY},
        {"permission_type": ANY},
        {"principal": "a"},
        {"host": ""},
        {"host": "10.0.0.0/33"},
        {"host": "nowhere/8"},
    ],
)
def test_invalid_acl_is_refused_individually(controller, wrong):
    answer = controller.ask(ApiKey.CREATE_ACLS, creations=[creation(**wrong), creation()])
    assert [result.get("error_code", 0) for result in answer["results"]] == [_INVALID, 0]
    assert len(controller.records) == 1


def test_ranges_of_addresses_need_their_metadata_version():
    host = "10.0.0.0/8"
    for level, code in ((31, ErrorCode.UNSUPPORTED_VERSION), (32, ErrorCode.NONE)):
        controller = InstantController(feature_level("metadata.version", level))
        controller.rules.use_config(Config({"authorizer.class.name": STANDARD}))
        answer = controller.ask(ApiKey.CREATE_ACLS, creations=[creation(host=host), creation()])
        assert [result.get("error_code", 0) for result in answer["results"]] == [code, 0]
    (error,) = controller.ask(ApiKey.CREATE_ACLS, creations=[creation(host="::/x")])["results"]
    expected = "Invalid CIDR notation '::/x': Could not parse [::/x] - invalid prefix length"
    assert error["error_message"] == expected


def test_filters_delete_the_matching_acls(controller):
    creations = [
        creation(resource_name="ab"),
        creation(resource_name="a", resource_pattern_type=PREFIXED),
        creation(resource_name="*"),
        creation(resource_name="b"),
    ]
    controller.ask(ApiKey.CREATE_ACLS, creations=creations)
    match_filter = wish(resource_name_filter="ab", pattern_type_filter=MATCH)
    answer = controller.ask(ApiKey.DELETE_ACLS, filters=[match_filter, wish(host_filter="1")])
    deleted = [
        {acl["resource_name"] for acl in result["matching_acls"]}
        for result in answer["filter_results"]
    ]
    assert deleted == [{"ab", "a", "*"}, set()]
    assert names(controller.image) == {"b"}


def test_acl_matching_two_filters_is_deleted_once(controller):
    controller.ask(ApiKey.CREATE_ACLS, creations=[creation()])
    answer = controller.ask(ApiKey.DELETE_ACLS, filters=[wish(), wish()])
    assert [len(result["matching_acls"]) for result in answer["filter_results"]] == [1, 1]
    assert len(controller.records) == 1
    assert not controller.image.acls
    assert not controller.image.acl_ids


def test_snapshot_keeps_acls(controller):
    controller.ask(ApiKey.CREATE_ACLS, creations=[creation(), creation(host="1")])
    image = controller.image
    again = image_of(*to_records(image))
    assert dict(again.acls) == dict(image.acls)
    assert dict(again.acl_ids) == dict(image.acl_ids)
