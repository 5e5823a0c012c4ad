"""The clusters of a console, from flags and files."""

from __future__ import annotations

import pytest

from wirebroker.base.clock import SystemClock
from wirebroker.client.errors import ClientError
from wirebroker.console.model.kafka_login import kafka_login
from wirebroker.console.model.settings import (
    ClusterSettings,
    cluster_of_flag,
    open_client,
    read_console_file,
)

FILE = r"""# two clusters
[production]
bootstrap.servers=broker1:9093,broker2:9093
security.protocol=SASL_PLAINTEXT
sasl.mechanism=PLAIN
sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \
  username="console" \
[not a section] password="secret";

[ test ]
bootstrap.servers = localhost
"""


@pytest.fixture
def clusters_file(tmp_path):
    def write(text):
        path = tmp_path / "clusters.ini"
        path.write_text(text)
        return path

    return write


def test_a_flag_names_a_cluster_and_its_brokers():
    assert cluster_of_flag("local=localhost:9092,localhost:9093") == ClusterSettings(
        "local", "localhost:9092,localhost:9093", {}
    )


@pytest.mark.parametrize("text", ["local", "local=", "=localhost:9092", "a/b=x:1", "a=host:port"])
def test_a_flag_in_another_form_is_refused(text):
    with pytest.raises(ValueError, match=r"is not an? (cluster|address)"):
        cluster_of_flag(text)


def test_a_file_has_a_section_for_each_cluster(clusters_file):
    production, local = read_console_file(clusters_file(FILE)).clusters
    assert production.name == "production"
    assert production.bootstrap == "broker1:9093,broker2:9093"
    assert production.properties["sasl.jaas.config"].endswith(
        'username="console" [not a section] password="secret";'
    )
    assert (local.name, local.bootstrap) == ("test", "localhost")


def test_secrets_can_be_in_another_file(clusters_file, tmp_path):
    (tmp_path / "secrets.properties").write_text("where=localhost:9094\n")
    (cluster,) = read_console_file(
        clusters_file(
            "[a]\nconfig.providers=file\nconfig.providers.file.class="
            "org.apache.kafka.common.config.provider.FileConfigProvider\n"
            f"bootstrap.servers=${{file:{tmp_path}/secrets.properties:where}}\n"
        )
    ).clusters
    assert cluster.bootstrap == "localhost:9094"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("users=\\u12\n[a]\nbootstrap.servers=x\n", "above the first section .* cannot be used"),
        ("[a]\n", "bootstrap.servers is missing"),
        ("[a]\nbootstrap.servers=x\n[a]\nbootstrap.servers=y\n", "two sections"),
        ("[a b]\nbootstrap.servers=x\n", "is not a cluster's name"),
        ("[a]\nbootstrap.servers=x\nb=\\u12\n", "section .a. of .* cannot be used"),
        ("[a]\nbootstrap.servers=x:y\n", "is not an address"),
    ],
)
def test_an_invalid_file_is_refused_with_the_reason(clusters_file, text, reason):
    with pytest.raises(ValueError, match=reason):
        read_console_file(clusters_file(text))


def test_settings_of_the_console_are_above_the_first_section(clusters_file):
    content = read_console_file(
        clusters_file("# a comment\nusers=/etc/users\nport = 80\n\n[a]\nbootstrap.servers=x\n")
    )
    assert content.settings == {"users": "/etc/users", "port": "80"}
    assert [cluster.name for cluster in content.clusters] == ["a"]


@pytest.mark.parametrize(
    ("properties", "text"),
    [
        ({}, "no login"),
        ({"security.protocol": "SSL"}, "no login"),
        (
            {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "PLAIN",
                "sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule"
                ' required username="anna" password="a-secret";',
            },
            "anna (PLAIN)",
        ),
        ({"security.protocol": "SASL_SSL"}, "unknown, as the settings cannot be used"),
    ],
)
def test_the_user_in_a_cluster_is_shown_without_its_password(properties, text):
    assert kafka_login(ClusterSettings("a", "localhost:9092", properties)) == text


def test_settings_that_cannot_be_used_are_an_error_of_the_client():
    settings = ClusterSettings("a", "localhost:9092", {"security.protocol": "SASL_SSL"})
    with pytest.raises(ClientError, match=r"settings of cluster a cannot be used: .*GSSAPI"):
        open_client(settings, SystemClock())


def test_an_invalid_timeout_is_an_error_of_the_client():
    settings = ClusterSettings("a", "localhost:9092", {"request.timeout.ms": "1 s"})
    with pytest.raises(ClientError, match="is not a number from 100 to 120000"):
        open_client(settings, SystemClock())
