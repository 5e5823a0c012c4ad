"""The principal in the error of a node that lacks ClusterAction."""

from __future__ import annotations

import pytest

from wirebroker.config import Config
from wirebroker.config.security.outgoing import Login, OutgoingSecurity
from wirebroker.config.security.tls import StoreSettings, TlsSettings
from wirebroker.quorum.membership import missing_right as module
from wirebroker.quorum.membership.missing_right import missing_right

UNKNOWN = "the principal of this node"


@pytest.mark.parametrize(
    ("security", "subject", "option"),
    [
        (OutgoingSecurity(), "User:ANONYMOUS", "User:ANONYMOUS"),
        (
            OutgoingSecurity(login=Login(mechanism="SCRAM-SHA-256", user="joiner")),
            "User:joiner",
            "User:joiner",
        ),
        (
            OutgoingSecurity(login=Login(mechanism="SCRAM-SHA-256", user="id", by_token=True)),
            UNKNOWN,
            "PRINCIPAL",
        ),
        (OutgoingSecurity(login=Login(mechanism="OAUTHBEARER", user="us")), UNKNOWN, "PRINCIPAL"),
        (OutgoingSecurity(login=Login(mechanism="GSSAPI", user="a/b@C")), UNKNOWN, "PRINCIPAL"),
        (
            OutgoingSecurity(tls=TlsSettings(keystore=StoreSettings(location="node.p12"))),
            UNKNOWN,
            "PRINCIPAL",
        ),
    ],
)
def test_remedy_names_the_principal_only_if_the_node_knows_it(
    monkeypatch: pytest.MonkeyPatch, security: OutgoingSecurity, subject: str, option: str
) -> None:
    monkeypatch.setattr(module, "to_controllers", lambda _config: security)
    right = missing_right(Config({}))
    assert right.what == f"{subject} lacks CLUSTER_ACTION on CLUSTER"
    assert f"--allow {option} --operation cluster_action" in right.remedy
    assert f"add {subject} to super.users" in right.remedy
