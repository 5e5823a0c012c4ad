"""Options of scripts, given once and twice, parsed like Kafka's tools."""

import pytest

from tests.support.brokers.brokers import AUTHORIZED
from tests.support.brokers.servers import ONE_NODE, ThreadedServer, config_of
from tests.support.cli.repeated_options import REPEATED, files_in
from tests.support.cli.script_transcripts import our_scripts
from tests.support.tools.ports import HOST, free_ports


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    folder = tmp_path_factory.mktemp("repeated")
    files_in(folder)
    config = config_of(folder / "data", settings=ONE_NODE | AUTHORIZED)
    with ThreadedServer(config) as server, pytest.MonkeyPatch.context() as patch:
        host, port = server.address
        patch.setenv("WIREBROKER_BOOTSTRAP", f"{host}:{port}")
        yield f"{host}:{port}", folder


@pytest.fixture
def run(broker, capfd):
    address, folder = broker
    scripts = our_scripts(capfd)
    segment = folder / "data" / "orders-0" / "00000000000000000000.log"
    if not segment.exists():
        made = ["--bootstrap-server", address, "--create", "--topic", "orders"]
        assert scripts("kafka-topics", made, "").status == 0

    def answered(row, times):
        script, *words = row.words(times, address, folder, segment)
        return scripts(script, words, "")

    return answered


@pytest.mark.parametrize("row", REPEATED, ids=lambda row: f"{row.command} {row.option}")
def test_a_repeated_option_is_refused_or_accepted_as_by_kafka(row, run):
    once = run(row, 1)
    assert row.message not in once.out + once.err
    assert once.status == 0, once
    twice = run(row, 2)
    if row.is_refused:
        assert twice.status == 1
        assert row.message in twice.err
    else:
        assert twice.status == 0, twice


def test_configs_of_all_repeated_flags_are_deleted(broker, capfd):
    run = our_scripts(capfd)
    flags = ["--bootstrap-server", broker[0], "--topic", "deleted"]
    assert run("kafka-topics", [*flags, "--create"], "").status == 0
    added = ["--add-config", "retention.ms=1000,segment.ms=1000"]
    assert run("kafka-configs", [*flags, "--alter", *added], "").status == 0
    deleted = ["--delete-config", "retention.ms", "--delete-config", "segment.ms"]
    assert run("kafka-configs", [*flags, "--alter", *deleted], "").status == 0
    described = run("kafka-configs", [*flags, "--describe"], "")
    assert described.out == "Dynamic configs for topic deleted are:\n"


def test_configs_and_acls_work_with_bootstrap_controller(tmp_path, capfd):
    run = our_scripts(capfd)
    port, controller_port = free_ports(2)
    settings = {
        "listeners": f"PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{controller_port}",
        "controller.listener.names": "CONTROLLER",
    }
    config = config_of(tmp_path / "data", settings=ONE_NODE | AUTHORIZED | settings)
    with ThreadedServer(config):
        broker = ["--bootstrap-server", f"{HOST}:{port}"]
        controller = ["--bootstrap-controller", f"{HOST}:{controller_port}"]
        assert run("kafka-topics", [*broker, "--create", "--topic", "t"], "").status == 0
        retention = ["--alter", "--topic", "t", "--add-config", "retention.ms=1000"]
        assert run("kafka-configs", [*controller, *retention], "").status == 0
        threads = ["--alter", "--broker", "1", "--add-config", "num.io.threads=9"]
        assert run("kafka-configs", [*controller, *threads], "").status == 0
        described = ["--describe", "--topic", "t"]
        assert "retention.ms=1000 " in run("kafka-configs", [*broker, *described], "").out
        described = ["--describe", "--broker", "1"]
        assert "num.io.threads=9 " in run("kafka-configs", [*controller, *described], "").out
        rule = ["--add", "--allow-principal", "User:a", "--operation", "Read", "--topic", "t"]
        assert run("kafka-acls", [*controller, *rule], "").status == 0
        listed = run("kafka-acls", [*controller, "--list"], "")
        assert "(principal=User:a, host=*, operation=READ, permissionType=ALLOW)" in listed.out
        assert run("kafka-acls", [*broker, "--list"], "").out == listed.out
        refused = run("kafka-acls", [*broker, *controller, "--list"], "")
        assert refused.status == 1
        assert "give one of --bootstrap-server and --bootstrap-controller" in refused.err
