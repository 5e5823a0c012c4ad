"""Delegation tokens in the controller: creation, renewal, expiry, removal."""

from __future__ import annotations

import hmac
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.coordinators.controller_kit import InstantController
from tests.support.coordinators.kit import CONFIG
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.envelope import Principal
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.metadata_records import RecordType
from wirebroker.config import Config
from wirebroker.coordinator.controller.features.feature_control import feature_level
from wirebroker.coordinator.controller.security.token_control import (
    create_token,
    has_tokens,
    remove_expired,
)
from wirebroker.coordinator.operation import complete
from wirebroker.coordinator.outcome import Moment

if TYPE_CHECKING:
    from collections.abc import Iterator

SETTINGS = {"log.dirs": "data", "delegation.token.secret.key": "hunter2"}
DAY_MS = 24 * 3_600_000
ALICE, BOB, CAROL = (Principal("User", name) for name in ("alice", "bob", "carol"))


def controller(level: int = 30, **settings: str) -> InstantController:
    config = Config(SETTINGS | {name.replace("_", "."): text for name, text in settings.items()})
    made = InstantController(feature_level("metadata.version", level), config=config)
    made.now_ms, made.principal = 1_000, ALICE
    return made


def create(made: InstantController, **fields: Any) -> dict[str, Any]:
    renewers = [{"principal_type": "User", "principal_name": "bob"}]
    values = {"renewers": renewers, "max_lifetime_ms": -1, **fields}
    return made.ask(ApiKey.CREATE_DELEGATION_TOKEN, **values)


def renew(made: InstantController, hmac_: bytes, period_ms: int = -1) -> dict[str, Any]:
    return made.ask(ApiKey.RENEW_DELEGATION_TOKEN, hmac=hmac_, renew_period_ms=period_ms)


def expire(made: InstantController, hmac_: bytes, period_ms: int = -1) -> dict[str, Any]:
    return made.ask(ApiKey.EXPIRE_DELEGATION_TOKEN, hmac=hmac_, expiry_time_period_ms=period_ms)


def test_token_expires_in_a_day_and_lasts_a_week_at_most() -> None:
    made = controller()
    answer = create(made)
    token_id = answer["token_id"]
    assert len(token_id) == 22
    assert answer["hmac"] == hmac.digest(b"hunter2", token_id.encode(), "sha512")
    assert {name: value for name, value in answer.items() if name not in {"hmac", "token_id"}} == {
        "error_code": 0,
        "principal_type": "User",
        "principal_name": "alice",
        "token_requester_principal_type": "User",
        "token_requester_principal_name": "alice",
        "issue_timestamp_ms": 1_000,
        "expiry_timestamp_ms": 1_000 + DAY_MS,
        "max_timestamp_ms": 1_000 + 7 * DAY_MS,
    }
    [record] = made.records
    assert "hunter2" not in repr(record)
    token = made.image.delegation_token(token_id)
    assert token is not None
    assert list(made.image.delegation_tokens()) == [token]
    assert token[1:] == ("User:alice", "User:alice", ("User:bob",), 1_000, 86_401_000, 604_801_000)


def test_token_for_another_owner_records_the_requester() -> None:
    made = controller()
    answer = create(made, owner_principal_type="User", owner_principal_name="carol")
    assert (answer["principal_name"], answer["token_requester_principal_name"]) == (
        "carol",
        "alice",
    )
    hmac_ = answer["hmac"]
    # A requester that made the token for another owner may not change it.
    assert renew(made, hmac_)["error_code"] == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    made.principal = CAROL
    assert renew(made, hmac_)["error_code"] == 0


class Millions(list[Any]):
    """More elements than are ever read."""

    def __len__(self) -> int:
        return 5_000_000

    def __iter__(self) -> Iterator[Any]:
        raise AssertionError("iterating takes too long")


def test_too_many_renewers_are_refused_unread() -> None:
    made = controller()
    request = SimpleNamespace(renewers=Millions(), owner_principal_name=None, max_lifetime_ms=-1)
    making = create_token(
        request, made.image, made.rules.config, requester=ALICE, now_ms=1_000, token_id="one"
    )
    refused = complete(making)
    assert refused.response["error_code"] == ErrorCode.POLICY_VIOLATION
    assert not refused.records


@pytest.mark.parametrize(("asked_ms", "lasts_ms"), [(5_000, 5_000), (8 * DAY_MS, 7 * DAY_MS)])
def test_shorter_token_lifetime_may_be_requested(asked_ms: int, lasts_ms: int) -> None:
    answer = create(controller(), max_lifetime_ms=asked_ms)
    assert answer["max_timestamp_ms"] == 1_000 + lasts_ms
    assert answer["expiry_timestamp_ms"] == 1_000 + min(lasts_ms, DAY_MS)


def test_owner_and_renewers_renew_up_to_max_lifetime() -> None:
    made = controller(delegation_token_expiry_time_ms="100", delegation_token_max_lifetime_ms="250")
    hmac_ = create(made)["hmac"]
    for principal, now_ms, period_ms, expiry_ms in (
        (ALICE, 1_050, -1, 1_150),
        (BOB, 1_100, 500, 1_200),  # at most the broker's limit
        (BOB, 1_100, 20, 1_120),
        (ALICE, 1_120, -1, 1_220),
        (ALICE, 1_220, -1, 1_250),
    ):
        made.principal, made.now_ms = principal, now_ms
        answer = renew(made, hmac_, period_ms)
        assert answer == {"error_code": 0, "expiry_timestamp_ms": expiry_ms}
    made.now_ms = 1_251
    assert renew(made, hmac_)["error_code"] == ErrorCode.DELEGATION_TOKEN_EXPIRED
    assert expire(made, hmac_, 0)["error_code"] == ErrorCode.DELEGATION_TOKEN_EXPIRED
    assert expire(made, hmac_)["error_code"] == 0


def test_token_is_expired_now_or_later() -> None:
    made = controller()
    first, second = (create(made)["hmac"] for _ in range(2))
    assert expire(made, first, 10) == {"error_code": 0, "expiry_timestamp_ms": 1_010}
    assert expire(made, second) == {"error_code": 0, "expiry_timestamp_ms": 1_000}
    assert [record.type for record in made.records] == [RecordType.REMOVE_DELEGATION_TOKEN]
    [remaining] = made.image.delegation_tokens()
    assert remaining.expiry_ms == 1_010
    assert expire(made, second)["error_code"] == ErrorCode.DELEGATION_TOKEN_NOT_FOUND


@pytest.mark.parametrize("shown", [b"", b"x" * 64, b"x"])
def test_unknown_hmac_finds_no_token(shown: bytes) -> None:
    made = controller()
    create(made)
    for change in (renew, expire):
        assert change(made, shown)["error_code"] == ErrorCode.DELEGATION_TOKEN_NOT_FOUND


def test_other_users_may_neither_renew_nor_expire_a_token() -> None:
    made = controller()
    hmac_ = create(made)["hmac"]
    made.principal = CAROL
    for change in (renew, expire):
        assert change(made, hmac_)["error_code"] == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    assert not made.records


def test_token_authenticated_user_may_not_manage_tokens() -> None:
    made = controller()
    hmac_ = create(made)["hmac"]
    made.principal = Principal("User", "alice", is_by_token=True)
    for answer in (create(made), renew(made, hmac_), expire(made, hmac_)):
        assert answer["error_code"] == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


@pytest.mark.parametrize(
    ("made", "error"),
    [
        pytest.param(
            controller(delegation_token_secret_key=""),
            ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED,
            id="no key",
        ),
        pytest.param(controller(level=13), ErrorCode.UNSUPPORTED_VERSION, id="old metadata"),
    ],
)
def test_token_requests_are_refused_when_tokens_are_disabled(
    made: InstantController, error: ErrorCode
) -> None:
    for answer in (create(made), renew(made, b"x"), expire(made, b"x")):
        assert answer["error_code"] == error
    assert not made.image.others


def test_renewers_must_be_users() -> None:
    made = controller()
    answer = create(made, renewers=[{"principal_type": "Group", "principal_name": "x"}])
    assert answer["error_code"] == ErrorCode.INVALID_PRINCIPAL_TYPE
    assert answer["principal_name"] == "alice"


def test_tokens_per_principal_are_bounded() -> None:
    made = controller(wirebroker_delegation_tokens="2")
    long = [{"principal_type": "User", "principal_name": "x" * 30_000}] * 3
    assert create(made, renewers=long)["error_code"] == ErrorCode.POLICY_VIOLATION
    assert [create(made)["error_code"] for _ in range(3)] == [0, 0, ErrorCode.POLICY_VIOLATION]
    made.principal = BOB
    assert create(made)["error_code"] == 0


def test_expired_tokens_are_removed() -> None:
    made = controller()
    expired, valid = create(made, max_lifetime_ms=10), create(made, max_lifetime_ms=20)
    result = complete(remove_expired(made.image, Moment(1_010, 0)))
    assert not result.records
    result = complete(remove_expired(made.image, Moment(1_011, 0)))
    assert [token.token_id for token in result.response] == [expired["token_id"]]
    assert [record.body.token_id for record in result.records] == [expired["token_id"]]
    assert valid["error_code"] == 0


def test_secret_key_enables_tokens() -> None:
    assert has_tokens(Config(SETTINGS))
    assert not has_tokens(CONFIG)
