"""Flags over environment over file over defaults; the profile only where there is no file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from wirebroker.config import Config, ConfigError
from wirebroker.config_sources import load_config
from wirebroker.listeners import listeners_of

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


def test_flags_beat_environment_beats_file_beats_default(tmp_path):
    text = "num.partitions=2\n"
    environment = {"KAFKA_NUM_PARTITIONS": "3"}
    flags = {"num.partitions": "4"}
    assert load(tmp_path).int("num.partitions") == 1
    assert load(tmp_path, text).int("num.partitions") == 2
    assert load(tmp_path, text, environment).int("num.partitions") == 3
    assert load(tmp_path, text, environment, flags).int("num.partitions") == 4


def test_the_profile_holds_without_a_file_only(tmp_path):
    assert load(tmp_path).int("offsets.topic.replication.factor") == 1
    assert load(tmp_path).log_directories == ("./data",)
    assert load(tmp_path, "").int("offsets.topic.replication.factor") == 3
    assert load(tmp_path, "").log_directories == ("/tmp/kafka-logs",)


def test_log_dir_is_not_hidden_by_the_profiles_log_dirs(tmp_path):
    assert load(tmp_path, environment={"KAFKA_LOG_DIR": "/x"}).log_directories == ("/x",)
    assert load(tmp_path, flags={"log.dirs": "/y"}).log_directories == ("/y",)


def test_port_and_host_flags_replace_those_of_the_first_listener(tmp_path):
    (listener,) = listeners_of(load(tmp_path, port=0))
    assert (listener.host, listener.port) == ("127.0.0.1", 0)
    (listener,) = listeners_of(load(tmp_path, host="::1"))
    assert (listener.host, listener.port) == ("::1", 9092)
    text = (
        "listeners=CONTROLLER://:9093,A://h:1,B://:2\ncontroller.listener.names=CONTROLLER\n"
        "listener.security.protocol.map=A:PLAINTEXT,B:PLAINTEXT\n"
    )
    listeners = listeners_of(load(tmp_path, text, port=7))
    assert [(each.name, each.host, each.port) for each in listeners] == [
        ("A", "h", 7),
        ("B", "", 2),
    ]


def test_clients_are_told_the_port_of_the_flag_where_they_were_told_the_one_it_replaces(tmp_path):
    text = (
        "listeners=A://:9092,B://:9093\nadvertised.listeners=A://h:9092,B://h:9093\n"
        "listener.security.protocol.map=A:PLAINTEXT,B:PLAINTEXT\n"
    )
    told = [each.advertised for each in listeners_of(load(tmp_path, text, port=7))]
    assert told == [("h", 7), ("h", 9093)]
    forwarded = text.replace("A://h:9092", "A://h:443")
    told = [each.advertised for each in listeners_of(load(tmp_path, forwarded, port=7))]
    assert told == [("h", 443), ("h", 9093)]


def test_a_file_that_cannot_be_read_is_said_in_one_line(tmp_path):
    with pytest.raises(ConfigError, match="missing cannot be read: no such file"):
        load_config(file=tmp_path / "missing", environment={}, flags={})
    with pytest.raises(ConfigError, match="hexadecimal"):
        load(tmp_path, "a=\\uXY")


def test_an_address_that_cannot_be_used_is_found_before_anything_starts(tmp_path):
    with pytest.raises(ConfigError, match="supported: PLAINTEXT"):
        load(tmp_path, "listeners=SSL://:9092")
