"""The precedence of flags, environment, file, defaults and profile."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from wirebroker.config import Config, ConfigError
from wirebroker.config.listeners.listeners import listeners_of
from wirebroker.config.sources.sources import load_config

if TYPE_CHECKING:
    from pathlib import Path


def load(
    tmp_path: Path, text: str | None = None, environment=None, flags=None, **address
) -> Config:
    file = None
    if text is not None:
        file = tmp_path / "server.properties"
        file.write_text(text)
    return load_config(file=file, environment=environment or {}, flags=flags or {}, **address)


def test_flags_override_environment_then_file_then_defaults(tmp_path):
    text = "num.partitions=2\n"
    environment = {"KAFKA_NUM_PARTITIONS": "3"}
    flags = {"num.partitions": "4"}
    assert load(tmp_path).int("num.partitions") == 1
    assert load(tmp_path, text).int("num.partitions") == 2
    assert load(tmp_path, text, environment).int("num.partitions") == 3
    assert load(tmp_path, text, environment, flags).int("num.partitions") == 4


def test_profile_applies_only_without_a_config_file(tmp_path):
    assert load(tmp_path).int("offsets.topic.replication.factor") == 1
    assert load(tmp_path).log_directories == ("./data",)
    assert load(tmp_path, "").int("offsets.topic.replication.factor") == 3
    assert load(tmp_path, "").log_directories == ("/tmp/kafka-logs",)


def test_log_dir_overrides_the_profiles_log_dirs(tmp_path):
    assert load(tmp_path, environment={"KAFKA_LOG_DIR": "/x"}).log_directories == ("/x",)
    assert load(tmp_path, flags={"log.dirs": "/y"}).log_directories == ("/y",)


def test_port_and_host_flags_change_the_first_client_listener(tmp_path):
    (listener,) = listeners_of(load(tmp_path, port=0))
    assert (listener.host, listener.port) == ("127.0.0.1", 0)
    (listener,) = listeners_of(load(tmp_path, host="::1"))
    assert (listener.host, listener.port) == ("::1", 9092)
    text = (
        "listeners=CONTROLLER://:9093,A://h:1,B://:2\ncontroller.listener.names=CONTROLLER\n"
        "listener.security.protocol.map=A:PLAINTEXT,B:PLAINTEXT,CONTROLLER:PLAINTEXT\n"
    )
    listeners = listeners_of(load(tmp_path, text, port=7))
    assert [(listener.name, listener.host, listener.port) for listener in listeners] == [
        ("A", "h", 7),
        ("B", "", 2),
    ]


def test_port_flag_changes_the_advertised_port_only_if_it_was_the_same(tmp_path):
    text = (
        "listeners=A://:9092,B://:9093\nadvertised.listeners=A://h:9092,B://h:9093\n"
        "listener.security.protocol.map=A:PLAINTEXT,B:PLAINTEXT\n"
    )
    advertised = [listener.advertised for listener in listeners_of(load(tmp_path, text, port=7))]
    assert advertised == [("h", 7), ("h", 9093)]
    forwarded = text.replace("A://h:9092", "A://h:443")
    advertised = [
        listener.advertised for listener in listeners_of(load(tmp_path, forwarded, port=7))
    ]
    assert advertised == [("h", 443), ("h", 9093)]


def test_multiline_variables_are_read_like_apaches_image(tmp_path):
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    lines = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
    environment = {
        "KAFKA_LISTENERS": "SASL_PLAINTEXT://127.0.0.1:0,\\\n   PLAINTEXT2://127.0.0.1:0",
        "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": (
            "SASL_PLAINTEXT:SASL_PLAINTEXT,\\\n\tPLAINTEXT2:PLAINTEXT"
        ),
        "KAFKA_SECURITY_INTER_BROKER_PROTOCOL": "SASL_PLAINTEXT",
        "KAFKA_SASL_ENABLED_MECHANISMS": "PLAIN",
        "KAFKA_LISTENER_NAME_SASL__PLAINTEXT_PLAIN_SASL_JAAS_CONFIG": (
            f'{module} required \\\n  user_a="x\\\\\\\\y" \\\n  user_b="z";\n'
        ),
        "KAFKA_SSL_TRUSTSTORE_CERTIFICATES": lines.replace("\n", "\\n"),
    }
    config = load(tmp_path, environment=environment)
    first, second = listeners_of(config)
    assert (first.name, second.name) == ("SASL_PLAINTEXT", "PLAINTEXT2")
    assert first.sasl is not None
    assert first.sasl.passwords == {"a": "x\\y", "b": "z"}
    assert config.value("ssl.truststore.certificates") == lines.strip()


def test_unreadable_config_file_is_reported_in_one_line(tmp_path):
    with pytest.raises(ConfigError, match="missing cannot be read: no such file"):
        load_config(file=tmp_path / "missing", environment={}, flags={})
    with pytest.raises(ConfigError, match="hexadecimal"):
        load(tmp_path, "a=\\uXY")


def test_config_path_must_be_a_regular_file(tmp_path):
    with pytest.raises(ConfigError, match="is a directory: give the properties file"):
        load_config(file=tmp_path, environment={}, flags={})
    with pytest.raises(ConfigError, match="is a JSON file, not a properties file: write lines"):
        load(tmp_path, '{"node.id": 1}')
    with pytest.raises(ConfigError, match="is too long, not a properties file"):
        load(tmp_path, "a=b\n" * 300_000)


def test_misspelled_flag_is_refused_with_a_hint(tmp_path):
    with pytest.raises(ConfigError, match=r"num\.partitons \(did you mean num\.partitions\?\)"):
        load(tmp_path, flags={"num.partitons": "3"})
    with pytest.raises(ConfigError, match=r"a topic config, the broker's is log\.retention\.ms"):
        load(tmp_path, flags={"retention.ms": "3"})
    with pytest.raises(ConfigError, match="--set colour: there is no such config"):
        load(tmp_path, flags={"colour": "red"})


@pytest.mark.parametrize(
    ("text", "environment", "flags"),
    [
        ("wirebroker.durabilty=fsync\n", {}, {}),
        ("", {"KAFKA_WIREBROKER_DURABILTY": "fsync"}, {}),
        ("", {}, {"wirebroker.durabilty": "fsync"}),
    ],
)
def test_misspelled_wirebroker_config_is_refused_in_every_source(
    tmp_path, text, environment, flags
):
    with pytest.raises(ConfigError, match=r"did you mean wirebroker\.durability\?"):
        load(tmp_path, text, environment, flags)


def test_misspelled_name_in_a_file_is_warned_about_with_a_hint(tmp_path):
    config = load(tmp_path, "num.partitons=3\nzebra=1\n", {"KAFKA_LOG_RETENTION_HOUR": "1"})
    assert config.warnings() == (
        "unknown configs are ignored: log.retention.hour (did you mean log.retention.hours?), "
        "num.partitons (did you mean num.partitions?), zebra",
    )


@pytest.mark.parametrize(
    "name",
    [
        "controller.quorum.append.linger.ms",
        "controller.socket.timeout.ms",
        "listener.name.inside.num.network.threads",
        "rlmm.config.remote.log.metadata.topic.replication.factor",
        "ssl.keystore.filename",
    ],
)
def test_names_known_to_kafka_are_not_misspellings(tmp_path, name):
    value = "3" if name.endswith(("threads", ".ms")) else ""
    config = load(tmp_path, flags={name: value})
    assert config.unknown == ()
    assert config.without_effect == (name,)


def test_data_dir_flag_may_contain_a_comma(tmp_path):
    config = load(tmp_path, "log.dirs=a,b\n")
    assert config.log_directories == ("a", "b")
    config = load_config(file=None, environment={}, flags={}, data_directory="a, b ")
    assert config.log_directories == ("a, b ",)
    assert config.with_dynamic(cluster_wide={}, this_broker={}).log_directories == ("a, b ",)


def test_unusable_address_is_refused_before_the_start(tmp_path):
    with pytest.raises(ConfigError, match=r"ssl\.keystore\.location is missing"):
        load(tmp_path, "listeners=SSL://:9092")
