"""The cluster id of a controller among several."""

from __future__ import annotations

import pytest

from wirebroker.codecs.primitives import random_uuid
from wirebroker.config import Config, StartError
from wirebroker.disks.log_dir_locks import LogDirLocks
from wirebroker.storage.files import Files
from wirebroker.storage.meta_properties import MetaProperties, format_meta_properties

CLUSTER = "MkU3OEVBNTcwNTJENDM2Qk"
ONE_OF_THREE = {
    "process.roles": "controller",
    "node.id": "1",
    "listeners": "CONTROLLER://c1:9093",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.voters": "1@c1:9093,2@c2:9093,3@c3:9093",
}


def opened(directory, **settings):
    named = {name.replace("_", "."): text for name, text in settings.items()}
    locks = LogDirLocks(Config({**ONE_OF_THREE, "log.dirs": str(directory), **named}), Files())
    try:
        locks.open()
        return locks.cluster_id
    finally:
        locks.close()


def test_a_new_controller_among_others_needs_the_cluster_id(tmp_path):
    with pytest.raises(StartError, match="the settings name other controllers") as refusal:
        opened(tmp_path / "data")
    assert "kafka-storage random-uuid" in str(refusal.value)
    assert not (tmp_path / "data").exists()
    quorum = {
        "controller_quorum_voters": "",
        "controller_quorum_bootstrap_servers": "c1:9093,c2:9093",
    }
    with pytest.raises(StartError, match="the settings name other controllers"):
        opened(tmp_path / "data", **quorum)


def test_the_cluster_id_comes_from_the_settings_or_the_directory(tmp_path):
    assert opened(tmp_path / "data", wirebroker_cluster_id=CLUSTER) == CLUSTER
    assert opened(tmp_path / "data") == CLUSTER
    formatted = tmp_path / "formatted"
    formatted.mkdir()
    identity = format_meta_properties(MetaProperties(CLUSTER, 1, random_uuid()))
    (formatted / "meta.properties").write_text(identity)
    assert opened(formatted) == CLUSTER


def test_a_single_controller_gets_a_random_cluster_id(tmp_path):
    alone = opened(tmp_path / "data", controller_quorum_voters="1@c1:9093")
    assert len(alone) == len(CLUSTER)
    assert opened(tmp_path / "other", controller_quorum_voters="") != alone
