"""Known vulnerabilities of Kafka and related software, with the tests that cover them.

CVE                  vulnerability                                      tested in
2026-111115          memory by counts of tagged fields, before a login  test_hostile_frames.py
2026-111108          memory by counts of arrays                         test_hostile_frames.py
2026-111073          memory by decompression                            below; unit/codecs/records
2026-110985, -33557  unsigned tokens                                    unit/…/test_oauth.py
2022-34917           memory by large frames before a login              below
2024-56128           SCRAM nonce not checked                            below
2021-38153           passwords guessed by the time of a comparison      test_password_work.py
2017-12610           login as another user (authorization id)           below
2018-1288            records for clients that claim to be replicas      below
2018-17196           transactions without their ACL                     below
2024-27309           removal of one ACL disables another                property/test_acl_index.py
2023-25194, 2025-27817, -27818, -27819
code, addresses and files by client settings       below
2023-34455, -43642   allocation by snappy's length field                unit/codecs/records
2026-35554           Java's producer sends to another topic             invisible to a broker
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.brokers.servers import broker_of, client_of, running
from tests.support.protocol.raw_client import BlockingClient
from tests.support.protocol.requests import create_topic, fetch_request, produce_request
from tests.support.records.batches import batch
from tests.support.security.sasl_clients import (
    CLIENT_NONCE,
    add_scram_user,
    log_in_plain,
    sasl_listener,
    scram_final,
    send_token,
    shake_hands,
)
from wirebroker.codecs.acls import ALLOW, LITERAL, Operation, Resource
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.records.codec import Codec
from wirebroker.config.rows.authorizer import STANDARD

if TYPE_CHECKING:
    from pathlib import Path

    from tests.hostile.hosted_broker import HostedBroker
    from tests.support.protocol.raw_client import RawClient

MIB = 1 << 20
FAILED = ErrorCode.SASL_AUTHENTICATION_FAILED
SETTINGS = {
    **sasl_listener("PLAIN", "SCRAM-SHA-256"),
    "connection.failed.authentication.delay.ms": "1",
}
# bob is a super user; alice needs ACLs.
GUARDED = SETTINGS | {"authorizer.class.name": STANDARD, "super.users": "User:bob"}


async def logged_in(client: RawClient, user: str) -> RawClient:
    assert not (await log_in_plain(client, user, f"{user}-secret")).error_code
    return client


def allow(operation: int, kind: int, name: str) -> dict[str, Any]:
    return {
        "resource_type": kind,
        "resource_name": name,
        "resource_pattern_type": LITERAL,
        "principal": "User:alice",
        "host": "*",
        "operation": operation,
        "permission_type": ALLOW,
    }


def test_decompression_bomb_uses_little_memory(broker: HostedBroker) -> None:
    """CVE-2026-111073, by a batch of 0.3 MB that would become 300."""
    client = BlockingClient(broker.address)
    topic = {"name": "bombs", "num_partitions": 1, "replication_factor": 1}
    client.ask(ApiKey.CREATE_TOPICS, 5, {"topics": [topic], "timeout_ms": 30_000})
    records = batch(bytes(100 * MIB), codec=Codec.ZSTD)
    before = broker.begin_memory_watch()
    request = produce_request({("bombs", 0): records}, acks=1)
    (answer,) = client.ask(ApiKey.PRODUCE, 9, request).responses
    assert answer.partition_responses[0].error_code in {
        ErrorCode.NONE,  # accepted without decompression
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.INVALID_RECORD,
        ErrorCode.CORRUPT_MESSAGE,
    }
    assert broker.peak_memory_bytes() - before < 24 * MIB
    client.close()


async def test_large_frames_before_a_login_are_refused(tmp_path: Path) -> None:
    """CVE-2022-34917."""
    async with running(tmp_path, settings=SETTINGS) as server, client_of(server) as client:
        client._writer.write(struct.pack(">i", 524_289))
        assert await client.is_closed()
        async with client_of(server) as another:
            await shake_hands(another, "PLAIN")
            await another.send(ApiKey.SASL_AUTHENTICATE, 2, {"auth_bytes": bytes(524_288)})
            assert await another.is_closed()


async def test_whole_scram_nonce_is_compared(tmp_path: Path) -> None:
    """CVE-2024-56128: a proof with another nonce is refused."""
    async with running(tmp_path, settings=SETTINGS) as server, client_of(server) as admin:
        await logged_in(admin, "bob")
        assert not (await add_scram_user(admin, "SCRAM-SHA-256", "carol", "secret")).error_code
        for another in (str, lambda nonce: nonce[:-1], lambda _: CLIENT_NONCE, lambda n: n + "x"):
            async with client_of(server) as client:
                await shake_hands(client, "SCRAM-SHA-256")
                bare = f"n=carol,r={CLIENT_NONCE}"
                first = (await send_token(client, b"n,," + bare.encode())).auth_bytes.decode()
                nonce, _, rest = first.removeprefix("r=").partition(",")
                server_first = f"r={another(nonce)},{rest}"
                final = scram_final("SCRAM-SHA-256", "secret", bare, server_first)
                answer = await send_token(client, final)
                assert (answer.error_code == 0) is (another(nonce) == nonce)
        upsertion = {"name": "dave", "mechanism": 1, "iterations": 4095, "salt": b"0" * 16}
        upsertion["salted_password"] = bytes(32)
        request = {"deletions": [], "upsertions": [upsertion]}
        answer = await admin.ask(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, request)
        assert answer.results[0].error_code == ErrorCode.UNACCEPTABLE_CREDENTIAL


async def test_authorization_id_of_another_user_is_refused(tmp_path: Path) -> None:
    """CVE-2017-12610."""
    async with running(tmp_path, settings=SETTINGS) as server, client_of(server) as admin:
        await logged_in(admin, "bob")
        await add_scram_user(admin, "SCRAM-SHA-256", "carol", "secret")
        async with client_of(server) as client:
            await shake_hands(client, "PLAIN")
            answer = await send_token(client, b"bob\0alice\0alice-secret")
            assert answer.error_code == FAILED
            assert await client.is_closed()
        async with client_of(server) as client:
            await shake_hands(client, "SCRAM-SHA-256")
            answer = await send_token(client, f"n,a=bob,n=carol,r={CLIENT_NONCE}".encode())
            assert answer.error_code == FAILED
            assert await client.is_closed()


async def test_client_that_claims_to_be_a_replica_gets_no_records(tmp_path: Path) -> None:
    """CVE-2018-1288: even from a readable topic, and no follower's progress changes."""
    async with running(tmp_path, settings=GUARDED) as server, client_of(server) as admin:
        await logged_in(admin, "bob")
        await create_topic(admin, "t")
        may_read = allow(Operation.READ, Resource.TOPIC, "t")
        await admin.ask(ApiKey.CREATE_ACLS, 3, {"creations": [may_read]})
        request = produce_request({("t", 0): batch(b"a")})
        await admin.ask(ApiKey.PRODUCE, 12, request)
        async with client_of(server) as client:
            await logged_in(client, "alice")
            for replica_id, code in ((-1, 0), (0, 29), (1, 29), (7, 29)):
                replica_request = {**fetch_request({("t", 0): 0}), "replica_id": replica_id}
                answer = await client.ask(ApiKey.FETCH, 12, replica_request)
                (partition,) = answer.responses[0].partitions
                assert partition.error_code == code, replica_id
                assert bool(partition.records) is (code == 0)


async def test_transaction_needs_its_acl_in_every_form_of_request(tmp_path: Path) -> None:
    """CVE-2018-17196."""
    transactional = batch(
        b"a", producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True
    )
    async with running(tmp_path, settings=GUARDED) as server, client_of(server) as admin:
        await logged_in(admin, "bob")
        await create_topic(admin, "t")
        may_write = allow(Operation.WRITE, Resource.TOPIC, "t")
        await admin.ask(ApiKey.CREATE_ACLS, 3, {"creations": [may_write]})
        async with client_of(server) as client:
            await logged_in(client, "alice")
            for name, records, codes in (
                (None, batch(b"a"), {ErrorCode.NONE}),
                ("mine", transactional, {ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED}),
                # A plain batch in a transactional request.
                ("mine", batch(b"a"), {ErrorCode.NONE}),
                # A transactional batch in a plain request.
                (
                    None,
                    transactional,
                    {
                        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
                        ErrorCode.INVALID_RECORD,
                        ErrorCode.INVALID_TXN_STATE,
                    },
                ),
            ):
                request = produce_request({("t", 0): records}, transactional_id=name)
                answer = await client.ask(ApiKey.PRODUCE, 11, request)
                (result,) = answer.responses[0].partition_responses
                assert result.error_code in codes, (name, codes)
        leader, _ = broker_of(server).replicas.find("t", b"", by_id=False)
        assert leader[0].log.log_end_offset == 2


PREFIX = "listener.name.sasl_plaintext."
JAAS = f"{PREFIX}plain.sasl.jaas.config"
REFUSED_SETTINGS = {
    "a module by JNDI": (
        JAAS,
        "com.sun.security.auth.module.JndiLoginModule required "
        'user.provider.url="ldap://127.0.0.1:1/x";',
    ),
    "a module by LDAP": (
        JAAS,
        'com.sun.security.auth.module.LdapLoginModule required userProvider="ldap://x";',
    ),
    "keys in a file": ("sasl.oauthbearer.jwks.endpoint.url", "file:///etc/passwd"),
    "a listener's keys in a file": (
        f"{PREFIX}sasl.oauthbearer.jwks.endpoint.url",
        "file:///etc/passwd",
    ),
    "a listener's keys at an address": (
        f"{PREFIX}sasl.oauthbearer.jwks.endpoint.url",
        "http://127.0.0.1:1/",
    ),
}


@pytest.mark.parametrize("case", REFUSED_SETTINGS)
async def test_altered_configs_load_no_code_address_or_file(tmp_path: Path, case: str) -> None:
    """CVE-2023-25194, CVE-2025-27817, -27818 and -27819."""
    name, value = REFUSED_SETTINGS[case]
    async with running(tmp_path, settings=SETTINGS) as server, client_of(server) as admin:
        await logged_in(admin, "bob")
        entry = {"name": name, "config_operation": 0, "value": value}
        resource = {"resource_type": 4, "resource_name": "1", "configs": [entry]}
        answer = await admin.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, {"resources": [resource]})
        (result,) = answer.responses
        assert result.error_code == ErrorCode.INVALID_REQUEST
        assert "root:" not in str(result.as_dict())
        async with client_of(server) as another:
            await logged_in(another, "alice")
