"""The console's user in a cluster, as a text."""

from __future__ import annotations

import pytest

from wirebroker.console.model.kafka_login import kafka_login
from wirebroker.console.model.settings import ClusterSettings

SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"
OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"


def text_of(**properties: str) -> str:
    named = {name.replace("_", "."): value for name, value in properties.items()}
    return kafka_login(ClusterSettings("dev", "b:1", named))


@pytest.mark.parametrize(
    ("properties", "text"),
    [
        ({}, "no login"),
        ({"security_protocol": "none"}, "unknown, as the settings cannot be used"),
        (
            {
                "security_protocol": "SASL_PLAINTEXT",
                "sasl_mechanism": "SCRAM-SHA-512",
                "sasl_jaas_config": f'{SCRAM} username="anna" password="x";',
            },
            "anna (SCRAM-SHA-512)",
        ),
    ],
)
def test_a_login_is_named(properties, text):
    assert text_of(**properties) == text


def test_a_token_of_a_file_has_no_user(tmp_path):
    token = tmp_path / "token"
    token.write_text("a.b.c")
    text = text_of(
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="OAUTHBEARER",
        sasl_jaas_config=f"{OAUTH};",
        sasl_oauthbearer_token_endpoint_url=token.as_uri(),
    )
    assert text == "an OAuth token"
