"""Operators' tools beyond the transcripts of a single broker."""

import json
import re
from types import SimpleNamespace

import pytest

from tests.support.brokers.servers import ONE_NODE, ThreadedServer, config_of
from tests.support.cli.script_transcripts import our_scripts
from tests.support.tools.waiting import eventually
from wirebroker.cli.table import SCRIPTS
from wirebroker.cli.unserved_scripts import UNSERVED, instead_of
from wirebroker.client.cluster.api_versions import version_lines


@pytest.fixture
def run(capfd):
    return our_scripts(capfd)


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory):
    folder = tmp_path_factory.mktemp("operators")
    with ThreadedServer(config_of(folder / "data", settings=ONE_NODE)) as server:
        host, port = server.address
        yield f"{host}:{port}"


@pytest.mark.parametrize("script", [each.name for each in SCRIPTS])
def test_each_script_also_has_its_name_with_sh(script, run):
    plain, suffixed = run(script, ["--help"], ""), run(f"{script}.sh", ["--help"], "")
    assert plain.status == suffixed.status == 0
    text, other = (
        " ".join(each.out.replace(f"{script}.sh", script).split()) for each in (plain, suffixed)
    )
    assert text == other
    assert text.startswith(f"Usage: wirebroker {script} ")


@pytest.mark.parametrize("suffix", ["", ".sh"])
@pytest.mark.parametrize("script", [*UNSERVED, "kafka-streams-other", "kafka-connect-other"])
def test_other_scripts_of_kafka_say_what_to_use_instead(script, suffix, run):
    answer = run(f"{script}{suffix}", ["--list"], "")
    assert answer.status != 0
    assert not answer.out
    assert f"{script} is not supported: {instead_of(script)}" in " ".join(answer.err.split())


def test_no_script_is_both_served_and_refused():
    assert not {each.name for each in SCRIPTS} & UNSERVED.keys()
    assert all(instead_of(each.name) is None for each in SCRIPTS)


@pytest.mark.parametrize("name", ["topic.sh", "serve.sh", "kafka-nothing", "kafka-topics.sh.sh"])
def test_a_name_that_kafka_does_not_have_is_unknown(name, run):
    answer = run(name, [], "")
    assert answer.status == 2
    assert f"No such command '{name}'" in answer.err


def test_features_are_described_with_their_levels(run, bootstrap):
    answer = run("kafka-features", ["--bootstrap-server", bootstrap, "describe"], "")
    assert answer.status == 0
    lines = {line.split()[1]: line.split()[3::2] for line in answer.out.splitlines()}
    assert {name: levels[:3] for name, levels in lines.items()} == {
        "eligible.leader.replicas.version": ["0", "1", "1"],
        "kraft.version": ["0", "1", "0"],
        "metadata.version": ["3.3-IV3", "4.4-IV2", "4.4-IV2"],
        "transaction.version": ["0", "2", "2"],
    }
    assert all(levels[3].isdecimal() for levels in lines.values())


def test_both_tools_print_the_versions_of_a_broker(run, bootstrap):
    versions = run("kafka-broker-api-versions", ["--bootstrap-server", bootstrap], "")
    assert versions.status == 0
    head, *rows, end = versions.out.splitlines()
    assert head == f"{bootstrap} (id: 1 rack: null isFenced: false) -> ("
    assert end == ")"
    assert rows[0] == "\tProduce(0): 0 to 13 [usable: 13],"
    assert "\tListPartitionReassignments(46): 0 [usable: 0]," in rows
    assert "\tStreamsGroupHeartbeat(88): UNSUPPORTED," in rows
    same = run("kafka-cluster", ["api-versions", "--bootstrap-server", bootstrap], "")
    assert same == versions


def test_versions_of_other_brokers_are_named_as_kafkas_tool_names_them():
    served = {0: (90, 91), 1: (0, 3), 2: (1, 99), 1000: (0, 1)}
    rows = [
        SimpleNamespace(api_key=key, min_version=lowest, max_version=highest)
        for key, (lowest, highest) in served.items()
    ]
    lines = version_lines(SimpleNamespace(api_keys=rows))
    assert lines[0] == "Produce(0): 90 to 91 [unusable: node too new]"
    assert lines[1] == "Fetch(1): 0 to 3 [unusable: node too old]"
    assert re.fullmatch(r"ListOffsets\(2\): 1 to 99 \[usable: \d+\]", lines[2])
    assert lines[3] == "Metadata(3): UNSUPPORTED"
    assert lines[-1] == "UNKNOWN(1000): 0 to 1"


def test_a_replica_is_moved_to_another_directory(run, tmp_path):
    directories = [f"{tmp_path / name}" for name in ("one", "two")]
    settings = ONE_NODE | {"log.dirs": ",".join(directories)}
    with ThreadedServer(config_of(tmp_path / "one", settings=settings)) as server:
        connection = ["--bootstrap-server", "{}:{}".format(*server.address)]

        def said(script, *arguments):
            answer = run(script, [*connection, *arguments], "")
            assert answer.status == 0, answer
            return answer.out

        said("kafka-topics", "--create", "--topic", "t", "--partitions", "1")
        described = json.loads(said("kafka-log-dirs", "--describe").splitlines()[-1])
        found = {each["logDir"]: each["partitions"] for each in described["brokers"][0]["logDirs"]}
        assert sorted(found) == sorted(directories)
        (there,) = [path for path, partitions in found.items() if partitions]
        (target,) = {*directories} - {there}
        row = {"topic": "t", "partition": 0, "replicas": [1], "log_dirs": [target]}
        plan = tmp_path / "plan.json"
        plan.write_text(json.dumps({"version": 1, "partitions": [row]}))
        flags = ("--reassignment-json-file", f"{plan}")
        started = said("kafka-reassign-partitions", "--execute", *flags)
        assert f'"log_dirs":["{there}"]' in started
        assert f"moving log directory to {target} for replica t-0 with broker 1" in started
        done = "Reassignment of replica t-0-1 completed successfully."
        eventually(lambda: done in said("kafka-reassign-partitions", "--verify", *flags))
        assert (
            said("kafka-reassign-partitions", "--generate", *_topics(tmp_path)).count(target) == 1
        )


def _topics(folder):
    file = folder / "topics.json"
    file.write_text('{"topics": [{"topic": "t"}], "version": 1}')
    return "--topics-to-move-json-file", f"{file}", "--broker-list", "1"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is no plan"),
        ('{"partitions": [{"topic": "t", "partition": 0, "replicas": [1, 1]}]}', "twice"),
        ('{"partitions": [{"topic": "t", "partition": 0, "replicas": []}]}', "a list of brokers"),
        (
            '{"partitions": [{"topic": "t", "partition": 0, "replicas": [1], "log_dirs": []}]}',
            "is different from size of log dirs list",
        ),
        ('{"version": 2, "partitions": []}', "version"),
    ],
)
@pytest.mark.parametrize("action", ["--execute", "--verify", "--cancel"])
def test_a_wrong_plan_is_refused_before_the_cluster_is_asked(action, text, message, run, tmp_path):
    plan = tmp_path / "plan.json"
    plan.write_text(text)
    flags = ["--bootstrap-server", "127.0.0.1:1", action, "--reassignment-json-file", f"{plan}"]
    answer = run("kafka-reassign-partitions", flags, "")
    assert answer.status == 1
    assert message in answer.err
