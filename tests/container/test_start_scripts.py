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
from wirebroker.cli.unserved_scripts import UNSERVED
from wirebroker.codecs.api_keys import ApiKey


@pytest.fixture
def image(tmp_path):
    return image_at(tmp_path / "root")


def metadata(bootstrap: str):
    host, _, port = bootstrap.rpartition(":")
    with contextlib.closing(BlockingClient((host, int(port)), timeout_s=PATIENCE_S)) as client:
        return client.ask(ApiKey.METADATA, 9, {"topics": [], "allow_auto_topic_creation": False})


@pytest.mark.parametrize("harness", HARNESSES, ids=lambda harness: harness.name)
def test_the_line_comes_that_a_class_of_testcontainers_waits_for(image, harness):
    with started_by(harness, image) as container:
        told = metadata(container.bootstrap)
        assert (told.brokers[0].host, told.brokers[0].port) == (
            "localhost",
            int(container.bootstrap.rpartition(":")[2]),
        )
        expected = harness.variables.get("CLUSTER_ID")
        assert expected is None or told.cluster_id == expected
        assert container.run("/etc/kafka/docker/health").returncode == 0
    has_zookeeper = "ZOOKEEPER_CONNECT" in harness.script + "".join(harness.variables)
    is_said = "KAFKA_ZOOKEEPER_CONNECT is ignored" in container.log
    assert is_said == (has_zookeeper and not harness.has_controller)
    assert "zookeeper.connect" not in container.log
    assert container.run("/etc/kafka/docker/health").returncode != 0


def test_a_container_that_is_told_only_what_clients_are_told_listens_at_those_ports(image):
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
        told = metadata(container.bootstrap)
        assert (told.cluster_id, told.brokers[0].host) == (CLUSTER_ID, "kafka.example.org")
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


def test_a_container_that_is_told_nothing_is_reached_by_its_published_port(image):
    found = properties(image)
    assert found["listeners"] == "PLAINTEXT://:9092"
    assert found["advertised.listeners"] == "PLAINTEXT://localhost:9092"
    assert found["log.dirs"] == "/var/lib/kafka/data"
    assert found["offsets.topic.replication.factor"] == "1"


def test_listeners_that_are_given_are_no_others(image):
    found = properties(image, KAFKA_LISTENERS="PLAINTEXT://:19092")
    assert "listeners" not in found
    assert "advertised.listeners" not in found


def test_ports_are_found_in_what_clients_are_told(image):
    told = "INSIDE://[fd00::1]:29092,PLAINTEXT_HOST://localhost:9092"
    found = properties(image, KAFKA_ADVERTISED_LISTENERS=told)
    assert found["listeners"] == "INSIDE://0.0.0.0:29092,PLAINTEXT_HOST://0.0.0.0:9092"


def test_members_of_a_cluster_replicate_as_kafka_does(image):
    found = properties(image, KAFKA_PROCESS_ROLES="broker")
    assert "offsets.topic.replication.factor" not in found


def test_a_mounted_file_counts_instead(image):
    (image / "mounted.properties").write_text("listeners=PLAINTEXT://:7\nlog.dirs=/elsewhere")
    found = properties(image)
    assert (found["listeners"], found["log.dirs"]) == ("PLAINTEXT://:7", "/elsewhere")
    assert found["wirebroker.http.listeners"] == "127.0.0.1:9404"
    assert "advertised.listeners" not in found


def test_secrets_are_named_as_for_other_images(image):
    (image / "etc/kafka/secrets").mkdir()
    (image / "etc/kafka/secrets/creds").write_text("a secret\n")
    found = properties(
        image,
        KAFKA_SSL_KEYSTORE_FILENAME="kafka.p12",
        KAFKA_SSL_KEYSTORE_CREDENTIALS="creds",
        KAFKA_SSL_KEY_CREDENTIALS="creds",
        KAFKA_SSL_TRUSTSTORE_FILENAME="trusted.p12",
    )
    assert {name: value for name, value in found.items() if name.startswith("ssl.")} == {
        "ssl.keystore.location": f"{image}/etc/kafka/secrets/kafka.p12",
        "ssl.keystore.password": "a secret",
        "ssl.key.password": "a secret",
        "ssl.truststore.location": f"{image}/etc/kafka/secrets/trusted.p12",
    }
    assert (image / "etc/kafka/kafka.properties").stat().st_mode & 0o077 == 0


def test_the_storage_tool_notes_cluster_and_users_of_new_directories(image):
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


def test_the_storage_tool_makes_ids_of_clusters(image):
    container = StartedContainer(image, "", environment_of(image, {}))
    made = {container.run("/usr/local/bin/kafka-storage", "random-uuid").stdout for _ in range(3)}
    assert len(made) == 3
    assert all(len(each.strip()) == 22 for each in made)


@pytest.mark.parametrize("arguments", [(), ("info",), ("format",)])
def test_the_storage_tool_refuses_what_it_does_not_know(image, arguments):
    container = StartedContainer(image, "", environment_of(image, {}))
    done = container.run("/usr/local/bin/kafka-storage", *arguments)
    assert done.returncode == 1
    assert "kafka-storage" in done.stderr


def test_the_storage_tool_has_the_other_commands_of_the_command_line(image):
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
    names = [*(each.name for each in SCRIPTS), *UNSERVED]
    links = [tmp_path / folder / f"{name}{suffix}" for name in names]
    assert all(each.is_file() and os.access(each, os.X_OK) for each in links)
    for name, status, said in (
        ("kafka-cluster", 0, "Usage: wirebroker kafka-cluster"),
        ("kafka-streams-groups", 2, "kafka-streams-groups is not supported"),
    ):
        done = subprocess.run(
            [tmp_path / folder / f"{name}{suffix}", "--help"],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == status
        assert said in done.stdout + done.stderr
