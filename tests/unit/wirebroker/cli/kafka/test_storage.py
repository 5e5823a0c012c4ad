"""`wirebroker kafka-storage` beyond the transcripts."""

import pytest

from tests.support.brokers.servers import ThreadedServer, config_of
from tests.support.cli.script_transcripts import our_scripts
from wirebroker.codecs.primitives import uuid_text
from wirebroker.codecs.records.control import KRaftVersion, KRaftVoters
from wirebroker.quorum.log.metadata_snapshot import FORMATTED, read_snapshot

CLUSTER = "MkU3OEVBNTcwNTJENDM2Qk"
DIRECTORY = "JEXY6aqzQY-32P5TStzaFg"
OTHER_DIRECTORY = "MvDxzVmcRsaTz33bUuRU6A"
USER = "SCRAM-SHA-256=[name=alice,password=alice-secret]"


@pytest.fixture
def storage(tmp_path, capfd):
    run = our_scripts(capfd)
    file = tmp_path / "server.properties"

    def answered(*words, **settings):
        lines = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:19093",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": "1@127.0.0.1:19093",
            "log.dirs": f"{tmp_path}/a,{tmp_path}/b",
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
        file.write_text("".join(f"{name}={value}\n" for name, value in lines.items() if value))
        return run("kafka-storage", [*words, "-c", f"{file}"])

    return answered


def test_a_broker_starts_in_directories_that_were_formatted(storage, tmp_path, capfd):
    assert storage("format", "-t", CLUSTER, "-r", "4.3", "-S", USER).status == 0
    config = config_of(tmp_path / "a", tmp_path / "b")
    with ThreadedServer(config) as server:
        flags = ["--bootstrap-server", "{}:{}".format(*server.address)]
        run = our_scripts(capfd)
        assert run("kafka-cluster", ["cluster-id", *flags]).out == f"Cluster ID: {CLUSTER}\n"
        users = run("kafka-configs", [*flags, "--describe", "--entity-type", "users"])
        assert "user-principal 'alice' are SCRAM-SHA-256=iterations=4096" in users.out
        features = run("kafka-features", [*flags, "describe"]).out
        assert "FinalizedVersionLevel: 4.3-IV0" in features
    assert storage("info").status == 0


def test_interrupted_format_is_repeated(storage, tmp_path):
    assert storage("format", "-t", CLUSTER).status == 0
    (tmp_path / "a" / "meta.properties").unlink()
    assert storage("info").status == 1
    again = storage("format", "-t", CLUSTER, "-g")
    assert again.status == 0
    assert f"Formatting metadata directory {tmp_path}/a" in again.out
    assert f"{tmp_path}/b" not in again.out
    assert storage("info").status == 0


@pytest.mark.parametrize("name", ["orders-0", "__cluster_metadata-0"])
def test_directories_with_data_are_not_formatted(storage, tmp_path, name):
    folder = tmp_path / "a" / name
    folder.mkdir(parents=True)
    (folder / "00000000000000000000.log").write_bytes(b"data")
    answer = storage("format", "-t", CLUSTER)
    assert (answer.status, f"but partitions ({name})" in answer.err) == (1, True)
    assert not (tmp_path / "b").exists()


def test_directories_of_other_nodes_are_refused(storage, tmp_path):
    assert storage("format", "-t", CLUSTER).status == 0
    answer = storage(
        "format", "-t", CLUSTER, "-g", node_id="2", controller_quorum_voters="2@127.0.0.1:19093"
    )
    assert answer.status == 1
    assert f"Invalid node.id in: {tmp_path}/a/meta.properties. Expected 2, but read 1" in answer.err
    (tmp_path / "b" / "meta.properties").write_text("version=7\n")
    assert "is damaged (version is '7', only 1 is supported)" in storage("info").err


@pytest.mark.parametrize(
    ("words", "settings", "message"),
    [
        (["-S", "x"], {}, "--add-scram: write SCRAM-SHA-256=["),
        (["-r", "4.5-IV0"], {}, "Unknown metadata.version '4.5-IV0'"),
        (["-f", "group.version"], {}, "equals sign not found"),
        (["-I", "1@h:1:x"], {"controller_quorum_voters": ""}, "Failed to parse directory ID"),
        ([], {"node_id": "x"}, "cannot be used"),
    ],
)
def test_invalid_format_arguments_are_refused(storage, tmp_path, words, settings, message):
    answer = storage("format", "-t", CLUSTER, *words, **settings)
    assert (answer.status, answer.out) == (1, "")
    assert message in answer.err
    assert not (tmp_path / "a").exists()


def test_first_voter_may_have_a_given_directory_id(storage, tmp_path):
    voter = f"1@127.0.0.1:19093:{DIRECTORY}"
    answer = storage("format", "-t", CLUSTER, "-I", voter, controller_quorum_voters="")
    assert f"Formatting dynamic metadata voter directory {tmp_path}/a" in answer.out
    text = (tmp_path / "a" / "meta.properties").read_text()
    assert f"directory.id={DIRECTORY}\n" in text
    assert voters_in(tmp_path / "a") == [(1, DIRECTORY)]
    joining = storage("format", "-t", CLUSTER, "-g", "-N", controller_quorum_voters="")
    assert joining.out == "All of the log directories are already formatted.\n"


def test_all_voters_of_a_list_are_written(storage, tmp_path):
    listed = f"1@c1:9093:{DIRECTORY},2@c2:9093:{OTHER_DIRECTORY}"
    answer = storage("format", "-t", CLUSTER, "-I", listed, controller_quorum_voters="")
    assert answer.status == 0
    assert voters_in(tmp_path / "a") == [(1, DIRECTORY), (2, OTHER_DIRECTORY)]


def test_a_broker_gets_no_checkpoint(storage, tmp_path):
    answer = storage(
        *("format", "-t", CLUSTER),
        process_roles="broker",
        node_id="2",
        listeners="PLAINTEXT://127.0.0.1:0",
    )
    assert f"Formatting metadata directory {tmp_path}/a" in answer.out
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["meta.properties"]


def voters_in(directory):
    content = (directory / "__cluster_metadata-0" / FORMATTED.file_name).read_bytes()
    (version, voters) = read_snapshot(content).voters
    assert version == KRaftVersion(1)
    assert isinstance(voters, KRaftVoters)
    return [(voter.voter_id, uuid_text(voter.directory_id)) for voter in voters.voters]
