"""`wirebroker format`."""

from __future__ import annotations

import re

import pytest

from tests.unit.wirebroker.config.quorum_settings import COMBINED, CONTROLLER
from wirebroker.cli import main as cli
from wirebroker.codecs.records.control import KRaftVersion, KRaftVoters
from wirebroker.quorum.log.metadata_snapshot import FORMATTED, read_snapshot

CLUSTER = "MkU3OEVBNTcwNTJENDM2Qk"
LISTED = "1@c1:9093:JEXY6aqzQY-32P5TStzaFg,2@c2:9093:MvDxzVmcRsaTz33bUuRU6A"
DYNAMIC = {"controller.quorum.bootstrap.servers": "c1:9093,c2:9093"}


@pytest.fixture
def formatted(tmp_path, capfd):
    def run(*words, base=CONTROLLER, **settings):
        merged = {**base, "log.dirs": f"{tmp_path}/data"}
        del merged["controller.quorum.voters"]
        merged |= DYNAMIC | {name.replace("_", "."): text for name, text in settings.items()}
        file = tmp_path / "server.properties"
        file.write_text("".join(f"{name}={text}\n" for name, text in merged.items()))
        capfd.readouterr()
        status = cli.run(["format", "--config", str(file), *words])
        return status, *capfd.readouterr()

    return run


def controls(tmp_path):
    file = tmp_path / "data" / "__cluster_metadata-0" / FORMATTED.file_name
    return read_snapshot(file.read_bytes()).voters


def test_a_controller_is_formatted_with_the_listed_voters(formatted, tmp_path):
    status, out, _ = formatted("--cluster-id", CLUSTER, "--initial-controllers", LISTED)
    assert (status, f"The cluster id is {CLUSTER}." in out) == (0, True)
    version, voters = controls(tmp_path)
    assert version == KRaftVersion(1)
    assert isinstance(voters, KRaftVoters)
    assert [voter.voter_id for voter in voters.voters] == [1, 2]
    identity = (tmp_path / "data" / "meta.properties").read_text()
    assert "directory.id=JEXY6aqzQY-32P5TStzaFg" in identity


def test_a_standalone_controller_gets_a_random_cluster_id(formatted, tmp_path):
    status, out, _ = formatted("--standalone", base=COMBINED)
    match = re.search(r"The cluster id is ([\w-]{22})\.", out)
    assert status == 0
    assert match is not None
    assert f"cluster.id={match[1]}" in (tmp_path / "data" / "meta.properties").read_text()


def test_a_joining_controller_has_no_voters(formatted, tmp_path):
    assert formatted("--cluster-id", CLUSTER, "--no-initial-controllers")[0] == 0
    assert controls(tmp_path) == [KRaftVersion(1)]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--initial-controllers", LISTED), "give the id of the cluster"),
        (("--cluster-id", CLUSTER), "one of the following: --standalone"),
        (("--standalone", "--feature", "nosuch=1"), "Unsupported feature: nosuch"),
        (("--standalone", "--no-initial-controllers"), "give one of --standalone"),
    ],
)
def test_impossible_arguments_are_refused(formatted, tmp_path, words, message):
    status, _, err = formatted(*words)
    assert (status, message in err) == (2, True)
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("words", "settings", "level"),
    [
        ((), {}, "4.4"),
        ((), {"wirebroker.release.version": "4.3"}, "4.3"),
        (("--release-version", "4.4"), {"wirebroker.release.version": "4.3"}, "4.4"),
    ],
)
def test_the_release_is_that_of_the_flag_or_the_file(formatted, words, settings, level):
    status, out, _ = formatted("--standalone", *words, base=COMBINED | settings)
    assert status == 0
    assert f"metadata.version {level}" in out
