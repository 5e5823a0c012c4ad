"""New single controllers become the only voters of dynamic quorums, if others can reach them."""

from __future__ import annotations

import pytest

from tests.unit.wirebroker.config.quorum_settings import COMBINED, CONTROLLER, SERVERS, VOTERS
from wirebroker.codecs.records.control import KRaftVersion, KRaftVoters, Voter, VoterEndpoint
from wirebroker.config import Config
from wirebroker.quorum.formatting.standalone import format_standalone
from wirebroker.quorum.log.metadata_snapshot import (
    FORMATTED,
    bootstrap_records,
    read_snapshot,
)
from wirebroker.storage.files import Files

DIRECTORY_ID = bytes(range(16))
ENDPOINT = VoterEndpoint("CONTROLLER", "c1", 19093)
ALONE_CONTROLLER = {"process.roles": "controller", "listeners": CONTROLLER["listeners"]}
ALONE = {name: text for name, text in COMBINED.items() if name != VOTERS}


def is_formatted(directory, *endpoints, **settings):
    named = {name.replace("_", "."): text for name, text in settings.items()}
    directory.mkdir(exist_ok=True)
    return format_standalone(
        str(directory),
        Config({**ALONE, "log.dirs": str(directory), **named}),
        files=Files(),
        directory_id=DIRECTORY_ID,
        endpoints=endpoints,
    )


def test_the_first_snapshot_has_levels_and_this_node_as_the_only_voter(tmp_path):
    assert is_formatted(tmp_path / "data", ENDPOINT)
    log = tmp_path / "data" / "__cluster_metadata-0"
    content = (log / FORMATTED.file_name).read_bytes()
    voter = Voter(1, DIRECTORY_ID, (ENDPOINT,), 0, 1)
    assert read_snapshot(content).voters == [KRaftVersion(1), KRaftVoters((voter,))]
    levels = {record.body.name: record.body.feature_level for record in bootstrap_records(content)}
    assert (levels["metadata.version"], levels["group.version"]) == (33, 1)
    assert not is_formatted(tmp_path / "data", ENDPOINT), "it is not new"


@pytest.mark.parametrize(
    "settings",
    [
        {VOTERS: "1@localhost:9093"},
        {**ALONE_CONTROLLER, VOTERS: "1@localhost:9093,2@c2:9093"},
        {SERVERS: "localhost:9093,c2:9093"},
    ],
    ids=lambda settings: next(reversed(settings.values())),
)
def test_static_voters_and_one_of_several_begin_no_quorum(tmp_path, settings):
    assert not is_formatted(tmp_path / "data", ENDPOINT, **settings)
    assert not list((tmp_path / "data").iterdir())


def test_a_controller_without_a_listener_stays_static(tmp_path):
    assert not is_formatted(tmp_path / "data")


@pytest.mark.parametrize("name", ["bootstrap.checkpoint", "__cluster_metadata-0/0.log"])
def test_used_directories_stay_as_they_are(tmp_path, name):
    path = tmp_path / "data" / name
    path.parent.mkdir(parents=True)
    path.write_bytes(b"")
    assert not is_formatted(tmp_path / "data", ENDPOINT)


def test_an_interrupted_format_is_repeated(tmp_path):
    (tmp_path / "data" / "__cluster_metadata-0").mkdir(parents=True)
    assert is_formatted(tmp_path / "data", ENDPOINT)
