"""`wirebroker token …` against a broker, and logins by token."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.support.brokers.servers import ThreadedServer, config_of
from tests.support.cli.verbs import Verbs
from tests.support.security.sasl_clients import sasl_listener
from wirebroker.cli.plumbing.security_flags import PASSWORD_VARIABLE
from wirebroker.config.rows.authorizer import STANDARD

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SETTINGS = {
    **sasl_listener("PLAIN", "SCRAM-SHA-512"),
    "delegation.token.secret.key": "hunter2",
    "authorizer.class.name": STANDARD,
    "super.users": "User:alice",
}
ALICE = ("--sasl-user", "alice", "--sasl-mechanism", "PLAIN")
BOB = ("--sasl-user", "bob", "--sasl-mechanism", "PLAIN")
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreadedServer]:
    config = config_of(tmp_path_factory.mktemp("data"), settings=SETTINGS)
    with ThreadedServer(config) as server:
        yield server


@pytest.fixture
def verbs(
    served: ThreadedServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Verbs:
    monkeypatch.setenv(PASSWORD_VARIABLE, "alice-secret")
    host, port = served.address
    return Verbs(f"{host}:{port}", capsys)


def test_token_can_be_used_to_log_in(verbs: Verbs, tmp_path: Path) -> None:
    made = verbs.json("token", "create", "--renewer", "User:bob", "--lifetime", "12h", *ALICE)
    assert (made["owner"], made["requester"], made["renewers"]) == (
        "User:alice",
        "User:alice",
        ["User:bob"],
    )
    assert made["expires"] == made["ends"]
    file = tmp_path / "token.properties"
    file.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-512\n"
        f'sasl.jaas.config={SCRAM} required username="{made["token_id"]}" '
        f'password="{made["hmac"]}" tokenauth="true";\n'
    )
    by_token = ("--client-config", str(file))
    assert verbs.do("cluster", *by_token).lines
    refused = verbs.run("token", "create", *by_token)
    assert refused.status == 1
    assert "the token cannot be created: log in with TLS or SASL, not with a token" in refused.err
    file.write_text(file.read_text().replace(' tokenauth="true"', ""))
    assert verbs.run("cluster", *by_token).status == 1


def test_tokens_are_listed_renewed_and_expired(verbs: Verbs) -> None:
    made = json.loads(verbs.do("token", "create", *ALICE, "--output", "json").out)
    token_id = made["token_id"]
    listed = verbs.do("token", "list", "User:alice", *ALICE)
    assert listed.lines[0].split() == [
        *("TOKEN-ID", "OWNER", "REQUESTER", "RENEWERS", "ISSUED", "EXPIRES", "ENDS"),
    ]
    assert token_id in listed.out
    assert made["hmac"] not in listed.out
    assert made["hmac"] in verbs.do("token", "list", "--hmac", *ALICE).out
    assert verbs.json("token", "list", "User:nobody", *ALICE) == []
    renewed = verbs.json("token", "renew", token_id, "--for", "1h", *ALICE)
    assert made["issued"] < renewed["expires"] < made["expires"]
    assert verbs.json("token", "expire", token_id, "--in", "30m", *ALICE)["token_id"] == token_id
    expired = verbs.do("token", "expire", token_id, *ALICE)
    assert expired.out.startswith(f"token {token_id} expires at")
    repeated = verbs.run("token", "expire", token_id, *ALICE)
    assert (
        repeated.err == f"wirebroker: there is no token {token_id}, or this user may not see it\n"
    )


def test_token_for_another_user_belongs_to_that_user(verbs: Verbs) -> None:
    made = verbs.do("token", "create", "--owner", "User:carol", *ALICE)
    fields = dict(line.split(maxsplit=1) for line in made.lines)
    assert fields["owner"] == "User:carol"
    (row,) = verbs.json("token", "list", "User:carol", "--hmac", *ALICE)
    assert (row["token_id"], row["hmac"]) == (fields["token_id"], fields["hmac"])
    assert row["requester"] == "User:alice"


def test_renewer_must_be_a_user(verbs: Verbs) -> None:
    refused = verbs.run("token", "create", "--renewer", "Group:x", *ALICE)
    assert refused.status == 1
    assert "only users can own tokens: write User:NAME (INVALID_PRINCIPAL_TYPE)" in refused.err


def test_acls_decide_who_creates_and_sees_tokens(
    verbs: Verbs, monkeypatch: pytest.MonkeyPatch
) -> None:
    token_id = verbs.json("token", "create", *ALICE)["token_id"]
    for_dave = ("token", "create", "--owner", "User:dave", *BOB)
    with monkeypatch.context() as as_bob:
        as_bob.setenv(PASSWORD_VARIABLE, "bob-secret")
        assert "this user may not create tokens for that owner" in verbs.run(*for_dave).err
        assert token_id not in verbs.do("token", "list", *BOB).out
    for rule in (
        ("--operation", "create_tokens", "--user-principal", "User:dave"),
        ("--operation", "describe", "--delegation-token", token_id),
    ):
        verbs.do("acl", "create", "--allow", "User:bob", *rule, *ALICE)
    monkeypatch.setenv(PASSWORD_VARIABLE, "bob-secret")
    assert verbs.json(*for_dave)["owner"] == "User:dave"
    assert token_id in verbs.do("token", "list", *BOB).out
    refused = verbs.run("token", "renew", token_id, *BOB)
    assert "cannot be renewed: only its owner and renewers may do that" in refused.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("create", "--owner", "carol"), "'carol' is not a principal: write User:carol"),
        (("create", "--renewer", "bob"), "'bob' is not a principal"),
        (("list", "bob"), "'bob' is not a principal"),
        (("create", "--owner", "User:"), "'User:' is not a principal: write User:NAME"),
        (("create", "--owner", ""), "'' is not a principal: write User:NAME"),
        (("create", "--renewer", ":bob"), "':bob' is not a principal: write User:NAME"),
        (("create", "--lifetime", "0s"), "'0s' is not a duration: write 30s"),
        (("renew", "an-id", "--for", "0h"), "'0h' is not a duration: write 30s"),
        (("create", "--lifetime", "soon"), "'soon' is not a duration: write 30s"),
    ],
)
def test_invalid_arguments_are_refused_before_connecting(
    verbs: Verbs, arguments: tuple[str, ...], said: str
) -> None:
    result = verbs.run("token", *arguments)
    assert result.status == 2
    assert said in result.err


def test_token_acl_needs_a_user_principal(verbs: Verbs) -> None:
    rule = ("acl", "create", "--allow", "User:bob", "--operation", "create_tokens")
    result = verbs.run(*rule, "--user-principal", "carol", *ALICE)
    assert result.status == 2
    assert "--user-principal 'carol' is not a principal: write User:carol" in result.err
