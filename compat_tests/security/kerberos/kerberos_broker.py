"""A broker of either kind in a Kerberos realm, and its clients.

It has an open listener and two more, whose ports are in `ports`:

TICKETS      SASL_PLAINTEXT
TLSTICKETS   SASL_SSL     `authority.pem` in its folder has the CA
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any, Final

import pytest

from compat_tests.security.listeners import KafkaOfListeners, WirebrokerOfListeners, protocol_map
from tests.support.brokers import java_start
from tests.support.protocol.raw_client import RawClient
from tests.support.security import kerberos
from tests.support.security.sasl_clients import send_token, shake_hands
from tests.support.security.tls_files import tls_configs
from tests.support.tools.ports import HOST

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    Secured = KafkaOfListeners | WirebrokerOfListeners

MODULE = "com.sun.security.auth.module.Krb5LoginModule"
SERVICE = f"kafka/{HOST}"
PROTOCOLS: Final = {"TICKETS": "SASL_PLAINTEXT", "TLSTICKETS": "SASL_SSL"}
# A separate process: it may import packages that are only built for such tests.
TICKET = """
import sys, gssapi
name = gssapi.Name(sys.argv[1], gssapi.NameType.hostbased_service)
print(gssapi.SecurityContext(name=name, usage="initiate").step(None).hex())
"""


class _Kafka(KafkaOfListeners):
    protocols = PROTOCOLS


class _Wirebroker(WirebrokerOfListeners):
    protocols = PROTOCOLS


def line(keytab: Path, principal: str) -> str:
    return (
        f'{MODULE} required useKeyTab=true storeKey=true keyTab="{keytab}" '
        f'principal="{principal}@{kerberos.NAME}";'
    )


@contextlib.contextmanager
def kerberos_broker(kind: str, realm: kerberos.Realm, folder: Path) -> Iterator[Secured]:
    key = line(realm.folder / f"{SERVICE.replace('/', '_')}.keytab", SERVICE)
    settings = {
        **tls_configs(folder),
        "group.min.session.timeout.ms": "1000",  # for Kafka Streams' members
        "listener.security.protocol.map": protocol_map(PROTOCOLS),
        "sasl.enabled.mechanisms": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        "sasl.kerberos.principal.to.local.rules": "RULE:[2:$1-of-$2](bob-.*)s/-of-.*//U,DEFAULT",
        "listener.name.tickets.gssapi.sasl.jaas.config": key,
        "listener.name.tlstickets.gssapi.sasl.jaas.config": key,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS;User:alice;User:BOB",
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in realm.environment().items():
            patch.setenv(name, value)
        if kind == "apache":
            options = (*java_start.options(), f"-Djava.security.krb5.conf={realm.config}")
            running: Secured = _Kafka(folder / "broker", settings, java_options=options)
        else:
            running = _Wirebroker(folder / "broker", settings)
        running.start()
        try:
            yield running
        finally:
            running.stop()


def keytab_of(realm: kerberos.Realm, principal: str) -> Path:
    return realm.folder / f"{principal.replace('/', '_')}.keytab"


def environment_of(
    realm: kerberos.Realm, principal: str, config: Path | None = None
) -> dict[str, str]:
    return {
        **os.environ,
        **realm.environment(config),
        "KRB5_CLIENT_KTNAME": str(keytab_of(realm, principal)),
        "KRB5CCNAME": "MEMORY:",
    }


def run(
    realm: kerberos.Realm, principal: str, *arguments: str, config: Path | None = None
) -> tuple[int, str]:
    environment = environment_of(realm, principal, config)
    command = [sys.executable, *arguments]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=90, check=False
    )
    return done.returncode, done.stdout + done.stderr


async def first_answer(broker: Secured, message: bytes) -> Any:
    """Return the response to a first message; None if its connection is closed."""
    client = await RawClient.connect((HOST, broker.ports["TICKETS"]))
    try:
        await shake_hands(client, "GSSAPI")
        return await send_token(client, message)
    except (ConnectionError, EOFError):
        return None
    finally:
        await client.close()
