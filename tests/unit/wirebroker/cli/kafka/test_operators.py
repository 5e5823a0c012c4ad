"""Operators' tools beyond the transcripts of a single broker."""

import json
import re
from types import SimpleNamespace

import pytest

from tests.support.brokers.servers import ONE_NODE, ThreadedServer, config_of
from tests.support.cli.script_transcripts import our_scripts
from tests.support.coordinators.feature_levels import new_cluster_features
from tests.support.tools.waiting import eventually
from wirebroker.cli.table import SCRIPTS
from wirebroker.cli.verb_group import UNSERVED, replacement_of
from wirebroker.client.cluster.api_versions import version_lines
from wirebroker.coordinator.controller.features.feature_control import SUPPORTED_FEATURES


@pytest.fixture
def run(capfd):
    return our_scripts(capfd)


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory):
    folder = tmp_path_factory.mktemp("operators")
    with ThreadedServer(config_of(folder / "data", settings=ONE_NODE)) as server:
        host, port = server.address
        yield f"{host}:{port}"


@pytest.mark.parametrize("script", [script.name for script in SCRIPTS])
def test_each_script_also_has_its_name_with_sh(script, run):
    plain, suffixed = run(script, ["--help"], ""), run(f"{script}.sh", ["--help"], "")
    assert plain.status == suffixed.status == 0
    text, other = (
        " ".join(result.out.replace(f"{script}.sh", script).split()) for result in (plain, suffixed)
    )
    assert text == other
    assert text.startswith(f"Usage: wirebroker {script} ")


@pytest.mark.parametrize("suffix", ["", ".sh"])
@pytest.mark.parametrize("script", [*UNSERVED, "kafka-streams-other", "kafka-connect-other"])
def test_other_scripts_of_kafka_say_what_to_use_instead(script, suffix, run):
    answer = run(f"{script}{suffix}", ["--list"], "")
    assert answer.status != 0
    assert not answer.out
    assert f"{script} is not supported: {replacement_of(script)}" in " ".join(answer.err.split())


def test_no_script_is_both_served_and_refused():
    assert not {script.name for script in SCRIPTS} & UNSERVED.keys()
    assert all(replacement_of(script.name) is None for script in SCRIPTS)


@pytest.mark.parametrize("name", ["topic.sh", "serve.sh", "kafka-nothing", "kafka-topics.sh.sh"])
def test_script_name_that_kafka_lacks_is_unknown(name, run):
    answer = run(name, [], "")
    assert answer.status == 2
    assert f"No such command '{name}'" in answer.err


def test_features_are_described_with_their_levels(run, bootstrap):
    answer = run("kafka-features", ["--bootstrap-server", bootstrap, "describe"], "")
    assert answer.status == 0
    lines = {line.split()[1]: line.split()[3::2] for line in answer.out.splitlines()}
    finalized = {name: f"{level}" for name, level in new_cluster_features().items()}
    finalized["metadata.version"] = "4.4-IV2"
    supported = {name: (f"{low}", f"{high}") for name, (low, high) in SUPPORTED_FEATURES.items()}
    supported["metadata.version"] = ("3.3-IV3", "4.4-IV2")
    assert {name: levels[:3] for name, levels in lines.items()} == {
        name: [*levels, finalized.get(name, "0")] for name, levels in supported.items()
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
    assert "\tShareGroupHeartbeat(76): 1 [usable: 1]," in rows
    assert "\tPushTelemetry(72): UNSUPPORTED," in rows
    same = run("kafka-cluster", ["api-versions", "--bootstrap-server", bootstrap], "")
    assert same == versions


def test_versions_of_other_brokers_are_printed_as_by_kafkas_tool():
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

        def output_of(script, *arguments):
            result = run(script, [*connection, *arguments], "")
            assert result.status == 0, result
            return result.out

        output_of("kafka-topics", "--create", "--topic", "t", "--partitions", "1")
        described = json.loads(output_of("kafka-log-dirs", "--describe").splitlines()[-1])
        partitions_by_directory = {
            directory["logDir"]: directory["partitions"]
            for directory in described["brokers"][0]["logDirs"]
        }
        assert sorted(partitions_by_directory) == sorted(directories)
        (source,) = [path for path, partitions in partitions_by_directory.items() if partitions]
        (target,) = {*directories} - {source}
        row = {"topic": "t", "partition": 0, "replicas": [1], "log_dirs": [target]}
        plan = tmp_path / "plan.json"
        plan.write_text(json.dumps({"version": 1, "partitions": [row]}))
        flags = ("--reassignment-json-file", f"{plan}")
        started = output_of("kafka-reassign-partitions", "--execute", *flags)
        assert f'"log_dirs":["{source}"]' in started
        assert f"moving log directory to {target} for replica t-0 with broker 1" in started
        done = "Reassignment of replica t-0-1 completed successfully."
        eventually(lambda: done in output_of("kafka-reassign-partitions", "--verify", *flags))
        assert (
            output_of("kafka-reassign-partitions", "--generate", *_topics(tmp_path)).count(target)
            == 1
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
