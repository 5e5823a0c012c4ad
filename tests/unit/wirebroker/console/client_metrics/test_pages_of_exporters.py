"""The clients of a broker, from pages of wirebroker and of the JMX exporter with several rules."""

from __future__ import annotations

import pytest

from wirebroker.console.client_metrics import text_page
from wirebroker.console.client_metrics.broker_clients import (
    ADDRESS,
    ClientConnections,
    ClientMeter,
    broker_clients,
)
from wirebroker.console.client_metrics.text_page import client_samples

JAVA = ClientConnections("apache-kafka-java", "4.4.0", "PLAINTEXT", None, 5)
STRIMZI = "kafka_server_socket_server_metrics_connections_software"
CONFLUENT = "kafka_server_socketservermetrics_connections"
NO_RULES = "kafka_server_socket_server_metrics_connections"
NAMES = 'clientSoftwareName="apache-kafka-java",clientSoftwareVersion="4.4.0"'


def read(*lines: str):
    page = client_samples(line.encode() + b"\n" for line in lines)
    return broker_clients(page, 7)


@pytest.mark.parametrize(
    "lines",
    [
        [
            f'{STRIMZI}{{{NAMES},listener="PLAINTEXT",networkProcessor="0",}} 2.0',
            f'{STRIMZI}{{{NAMES},listener="PLAINTEXT",networkProcessor="1",}} 3.0',
            f'{STRIMZI}{{clientSoftwareName="x",listener="PLAINTEXT",networkProcessor="1"}} 0.0',
        ],
        [
            f'{CONFLUENT}{{client_software_name="apache-kafka-java",'
            'client_software_version="4.4.0",listener="PLAINTEXT",network_processor="0"} 5.0'
        ],
        [f'{NO_RULES}{{{NAMES},listener="PLAINTEXT",networkProcessor="2"}} 5.0 1395066363000'],
        [
            f'{STRIMZI}{{{NAMES},listener="PLAINTEXT"}} 5',
            f'{CONFLUENT}{{{NAMES},listener="PLAINTEXT"}} 5',
        ],
    ],
    ids=["strimzi", "confluent", "without-rules", "two-dialects"],
)
def test_connections_are_read_once_from_each_spelling(lines):
    assert read("# HELP something", "# TYPE x gauge", *lines).connections == (JAVA,)


def test_the_users_of_wirebroker_take_precedence():
    own = 'client_software_name="librdkafka",client_software_version="2.6.1"'
    clients = read(
        f'{STRIMZI}{{clientSoftwareName="librdkafka",listener="TLS"}} 3',
        f'wirebroker_connections{{{own},listener="TLS",user="CN=a \\"b\\"\\\\"}} 1',
        f'wirebroker_connections{{{own},listener="TLS",user="anna"}} 2',
    )
    assert [(row.user, row.connections) for row in clients.connections] == [
        ('CN=a "b"\\', 1),
        ("anna", 2),
    ]
    assert clients.connection_count == 3


@pytest.mark.parametrize(
    ("lines", "meters"),
    [
        (
            [
                'kafka_server_quota_byte_rate{resource="Produce",user="CN%3Da"} 12.5',
                'kafka_server_quota_throttle_time{resource="Produce",user="CN%3Da"} NaN',
            ],
            [("Produce", "CN=a", "", 12.5, None)],
        ),
        (
            ['kafka_server_quota_byte_rate{resource="Fetch, user=anna",clientId="c"} 1.0'],
            [("Fetch", "anna", "c", 1.0, None)],
        ),
        (
            [
                'kafka_server_fetch_byte_rate{user="anna",client_id="\\"a:b\\""} 3.0',
                'kafka_server_fetch_throttle_time{user="anna",client_id="\\"a:b\\""} 40.0',
            ],
            [("Fetch", "anna", "a:b", 3.0, 40.0)],
        ),
        (
            [
                'kafka_server_Request_request_time{client_id="c",} 1.5',
                'kafka_server_ControllerMutation_mutation_rate{user="u",} 2',
            ],
            [("Request", "", "c", 1.5, None), ("ControllerMutation", "u", "", 2.0, None)],
        ),
        (
            ['kafka_server_socket_server_metrics_connection_accept_rate{ip="10.0.0.1"} 4'],
            [(ADDRESS, "", "", 4.0, None)],
        ),
        (
            [
                'kafka_server_socket_server_metrics_connection_accept_rate{listener="TLS"} 4',
                'kafka_server_quota_byte_rate{resource="Produce",user="a"} NaN',
                'kafka_server_quota_start_time_ms{resource="Produce",clientId="a"} 1',
                "kafka_server_quota_byte_rate not a number",
                "kafka_server_quota_byte_rate{",
                "",
            ],
            [],
        ),
    ],
    ids=["example", "older-example", "confluent", "without-rules", "address", "others"],
)
def test_the_use_of_quotas_is_read_from_each_spelling(lines, meters):
    found = [
        (meter.kind, meter.user, meter.client_id, meter.rate, meter.throttle_ms)
        for meter in read(*lines).meters
    ]
    assert found == meters


def test_an_address_is_read():
    line = 'kafka_server_socket_server_metrics_connection_accept_rate{ip="10.0.0.1"} 4'
    assert read(line).meters == (ClientMeter(ADDRESS, "", "", "10.0.0.1", 4.0, None),)


def test_the_series_that_are_read_are_bounded(monkeypatch):
    monkeypatch.setattr(text_page, "MOST_SAMPLES", 2)
    lines = [f'{STRIMZI}{{clientSoftwareName="{name}",listener="L"}} 1' for name in "abc"]
    clients = read(*lines)
    assert (len(clients.connections), clients.is_cut, clients.read_ms) == (2, True, 7)
