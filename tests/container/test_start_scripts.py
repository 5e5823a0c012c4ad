"""What starts images of Kafka starts ours: entry points, variables, lines that are waited for."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys

import pytest

from tests.container.start_scripts import (
    CLUSTER_ID,
    HARNESSES,
    IMAGE,
    READY,
    StartedContainer,
    environment_of,
    image_at,
    running,
    started_by,
)
from tests.support.protocol.raw_client import BlockingClient
from tests.support.tools.ports import free_port
from tests.support.tools.waiting import PATIENCE_S
from wirebroker.cli.table import SCRIPTS
from wirebroker.cli.verb_group import UNSERVED
from wirebroker.codecs.api_keys import ApiKey

VOTER, OTHER_VOTER = "JEXY6aqzQY-32P5TStzaFg", "MvDxzVmcRsaTz33bUuRU6A"


@pytest.fixture
def image(tmp_path):
    return image_at(tmp_path / "root")


def metadata(bootstrap: str):
    host, _, port = bootstrap.rpartition(":")
    with contextlib.closing(BlockingClient((host, int(port)), timeout_s=PATIENCE_S)) as client:
        return client.ask(ApiKey.METADATA, 9, {"topics": [], "allow_auto_topic_creation": False})


@pytest.mark.parametrize("harness", HARNESSES, ids=lambda harness: harness.name)
def test_container_logs_the_line_that_testcontainers_classes_wait_for(image, harness):
    with started_by(harness, image) as container:
        response = metadata(container.bootstrap)
        assert (response.brokers[0].host, response.brokers[0].port) == (
            "localhost",
            int(container.bootstrap.rpartition(":")[2]),
        )
        expected = harness.variables.get("CLUSTER_ID")
        assert expected is None or response.cluster_id == expected
        assert container.run("/etc/kafka/docker/health").returncode == 0
    has_zookeeper = "ZOOKEEPER_CONNECT" in harness.script + "".join(harness.variables)
    is_logged = "KAFKA_ZOOKEEPER_CONNECT is ignored" in container.log
    assert is_logged == (has_zookeeper and not harness.has_controller)
    assert "zookeeper.connect" not in container.log
    assert container.run("/etc/kafka/docker/health").returncode != 0


def test_container_listens_at_the_ports_of_advertised_listeners(image):
    port, http = free_port(), free_port()
    variables = {
        "KAFKA_ADVERTISED_LISTENERS": f"PLAINTEXT://kafka.example.org:{port}",
        "KAFKA_WIREBROKER_HTTP_LISTENERS": f"127.0.0.1:{http}",
        "KAFKA_LOG_RETENTION_HOURS": "24",
        "CLUSTER_ID": CLUSTER_ID,
    }
    container = StartedContainer(image, f"127.0.0.1:{port}", environment_of(image, variables))
    run = [str(image / "etc/kafka/docker/run"), "--log-level", "debug"]
    with running(container, run, READY):
        response = metadata(container.bootstrap)
        assert (response.cluster_id, response.brokers[0].host) == (CLUSTER_ID, "kafka.example.org")
    # A directory that is there keeps its cluster, as with Kafka's images.
    container.log = ""
    container.environment["CLUSTER_ID"] = "another-cluster-000000"
    with running(container, run, READY):
        assert metadata(container.bootstrap).cluster_id == CLUSTER_ID


def properties(image, **variables):
    container = StartedContainer(image, "", environment_of(image, variables))
    done = container.run("/etc/kafka/docker/configure")
    assert done.returncode == 0, done.stderr
    lines = (image / "etc/kafka/kafka.properties").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if line)


def test_container_without_variables_advertises_its_published_port(image):
    config = properties(image)
    assert config["listeners"] == "PLAINTEXT://:9092"
    assert config["advertised.listeners"] == "PLAINTEXT://localhost:9092"
    assert config["log.dirs"] == "/var/lib/kafka/data"
    assert config["offsets.topic.replication.factor"] == "1"


def test_configured_listeners_replace_the_defaults(image):
    config = properties(image, KAFKA_LISTENERS="PLAINTEXT://:19092")
    assert "listeners" not in config
    assert "advertised.listeners" not in config


def test_listeners_take_their_ports_from_advertised_listeners(image):
    advertised = "INSIDE://[fd00::1]:29092,PLAINTEXT_HOST://localhost:9092"
    config = properties(image, KAFKA_ADVERTISED_LISTENERS=advertised)
    assert config["listeners"] == "INSIDE://0.0.0.0:29092,PLAINTEXT_HOST://0.0.0.0:9092"


@pytest.mark.parametrize(
    "variables",
    [
        {"KAFKA_PROCESS_ROLES": "broker"},
        {"KAFKA_CONTROLLER_QUORUM_VOTERS": "1@kafka-1:19093,2@kafka-2:19093,3@kafka-3:19093"},
        {"KAFKA_CONTROLLER_QUORUM_BOOTSTRAP_SERVERS": "kafka-1:19093,kafka-2:19093"},
    ],
    ids=lambda variables: next(iter(variables)),
)
def test_cluster_members_keep_kafkas_replication_factors(image, variables):
    assert "offsets.topic.replication.factor" not in properties(image, **variables)
    alone = properties(image, KAFKA_CONTROLLER_QUORUM_VOTERS="1@kafka-1:19093")
    assert alone["offsets.topic.replication.factor"] == "1"


def test_mounted_config_file_replaces_the_defaults(image):
    (image / "mounted.properties").write_text("listeners=PLAINTEXT://:7\nlog.dirs=/elsewhere")
    config = properties(image)
    assert (config["listeners"], config["log.dirs"]) == ("PLAINTEXT://:7", "/elsewhere")
    assert config["wirebroker.http.listeners"] == "127.0.0.1:9404"
    assert "advertised.listeners" not in config


def test_secrets_have_the_variables_of_other_images(image):
    (image / "etc/kafka/secrets").mkdir()
    (image / "etc/kafka/secrets/creds").write_text("a secret\n")
    config = properties(
        image,
        KAFKA_SSL_KEYSTORE_FILENAME="kafka.p12",
        KAFKA_SSL_KEYSTORE_CREDENTIALS="creds",
        KAFKA_SSL_KEY_CREDENTIALS="creds",
        KAFKA_SSL_TRUSTSTORE_FILENAME="trusted.p12",
    )
    assert {name: value for name, value in config.items() if name.startswith("ssl.")} == {
        "ssl.keystore.location": f"{image}/etc/kafka/secrets/kafka.p12",
        "ssl.keystore.password": "a secret",
        "ssl.key.password": "a secret",
        "ssl.truststore.location": f"{image}/etc/kafka/secrets/trusted.p12",
    }
    assert (image / "etc/kafka/kafka.properties").stat().st_mode & 0o077 == 0


def test_storage_tool_stores_cluster_id_and_users_for_new_directories(image):
    properties(image)
    file = image / "etc" / "kafka" / "kafka.properties"
    container = StartedContainer(image, "", environment_of(image, {}))
    user = "SCRAM-SHA-512=[name=alice,password=a b]"
    tool = "/usr/local/bin/kafka-storage"
    arguments = ["format", "--ignore-formatted", "-t", CLUSTER_ID, "-c", str(file), "-r", "4.3"]
    assert container.run(tool, *arguments, "--add-scram", user).returncode == 0
    noted = f"wirebroker.cluster.id={CLUSTER_ID}\nwirebroker.release.version=4.3\n"
    assert file.read_text().endswith(noted)
    assert (file.parent / "first-users").read_text() == f"{user}\n"

    (image / "data").mkdir()
    (image / "data" / "meta.properties").touch()
    before = file.read_text()
    assert container.run(tool, *arguments).returncode == 0
    assert file.read_text() == before


def test_storage_tool_formats_a_controller_of_several(image, tmp_path):
    listed = f"1@kafka-1:9093:{VOTER},2@kafka-2:9093:{OTHER_VOTER}"
    variables = {
        "KAFKA_LISTENERS": "PLAINTEXT://:9092,CONTROLLER://:9093",
        "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
        "KAFKA_CONTROLLER_QUORUM_BOOTSTRAP_SERVERS": "kafka-1:9093,kafka-2:9093",
        "KAFKA_LOG_DIRS": str(tmp_path / "data"),
    }
    container = StartedContainer(image, "", environment_of(image, variables))
    assert container.run("/etc/kafka/docker/configure").returncode == 0
    file = str(image / "etc/kafka/kafka.properties")
    flags = ("-t", CLUSTER_ID, "-c", file, "--initial-controllers", listed)
    done = container.run("/usr/local/bin/kafka-storage", "format", *flags)
    assert done.returncode == 0, done.stderr
    assert f"Formatting dynamic metadata voter directory {tmp_path}/data" in done.stdout
    identity = (tmp_path / "data" / "meta.properties").read_text()
    assert f"directory.id={VOTER}\n" in identity


def test_storage_tool_generates_cluster_ids(image):
    container = StartedContainer(image, "", environment_of(image, {}))
    cluster_ids = {
        container.run("/usr/local/bin/kafka-storage", "random-uuid").stdout for _ in range(3)
    }
    assert len(cluster_ids) == 3
    assert all(len(cluster_id.strip()) == 22 for cluster_id in cluster_ids)


@pytest.mark.parametrize("arguments", [(), ("info",), ("format",)])
def test_storage_tool_rejects_incomplete_commands(image, arguments):
    container = StartedContainer(image, "", environment_of(image, {}))
    done = container.run("/usr/local/bin/kafka-storage", *arguments)
    assert done.returncode == 1
    assert "kafka-storage" in done.stderr


def test_storage_tool_passes_other_commands_to_the_command_line(image):
    properties(image)
    container = StartedContainer(image, "", environment_of(image, {}))
    file = image / "etc" / "kafka" / "kafka.properties"
    done = container.run("/usr/local/bin/kafka-storage", "info", "-c", str(file))
    assert done.stdout == f"Found problem:\n  {image}/data does not exist\n\n", done
    done = container.run("/usr/local/bin/kafka-storage", "version-mapping", "-r", "4.3")
    assert "metadata.version=30 (4.3)" in done.stdout


@pytest.mark.parametrize("folder", ["usr/local/bin", "opt/kafka/bin"])
@pytest.mark.parametrize("suffix", ["", ".sh"])
def test_kafkas_scripts_have_links_with_and_without_sh(folder, suffix, tmp_path):
    image_at(tmp_path)
    directories = [tmp_path / "usr" / "local" / "bin", tmp_path / "opt" / "kafka" / "bin"]
    directories[1].mkdir(parents=True)
    environment = environment_of(tmp_path, {})
    command = [IMAGE / "link-tools", *directories, sys.executable]
    subprocess.run(command, env=environment, check=True)
    names = [*(script.name for script in SCRIPTS), *UNSERVED]
    links = [tmp_path / folder / f"{name}{suffix}" for name in names]
    assert all(link.is_file() and os.access(link, os.X_OK) for link in links)
    for name, status, output in (
        ("kafka-cluster", 0, "Usage: wirebroker kafka-cluster"),
        ("kafka-verifiable-producer", 2, "kafka-verifiable-producer is not supported"),
    ):
        result = subprocess.run(
            [tmp_path / folder / f"{name}{suffix}", "--help"],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert result.returncode == status
        assert output in result.stdout + result.stderr
