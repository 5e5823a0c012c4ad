"""The pytest plugin, in separate pytest runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap

import pytest


@pytest.fixture
def run_pytest(tmp_path):
    def run(source, *arguments, plugins=None):
        """Run a file of tests, with the installed plugins or with these and our own.

        Third-party plugins take half of such a run.
        """
        (tmp_path / "test_it.py").write_text(textwrap.dedent(source))
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-W", "error"]
        command += ["--strict-markers", "-q", *arguments]
        # With CI or BUILD_NUMBER set, pytest's summary repeats whole error messages.
        excluded = {"PYTEST_ADDOPTS", "PYTEST_XDIST_WORKER", "PYTEST_XDIST_WORKER_COUNT"}
        excluded |= {"CI", "BUILD_NUMBER"}
        environment = {name: value for name, value in os.environ.items() if name not in excluded}
        if plugins is not None:
            environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
            for plugin in ("wirebroker.testing.plugin", *plugins):
                command += ["-p", plugin]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        return done.stdout + done.stderr

    return run


def outcomes(output):
    return {word: int(count) for count, word in re.findall(r"(\d+) (passed|failed|error)", output)}


def test_fixtures_and_markers_work(run_pytest):
    output = run_pytest(
        """
        import datetime
        import pytest
        from wirebroker.testing import KafkaError

        pytestmark = pytest.mark.wirebroker(topics={"all": 1})
        addresses = []

        def test_a_broker_is_there(wirebroker):
            addresses.append(wirebroker.bootstrap_servers)
            wirebroker.produce("orders", "one")
            assert wirebroker.topics() == {"all": 1, "orders": 1}

        def test_it_is_clean_in_the_next_test(wirebroker):
            assert wirebroker.topics() == {"all": 1}
            assert wirebroker.bootstrap_servers not in addresses

        def test_what_a_test_has_stopped_runs_in_the_next(wirebroker):
            wirebroker.stop()

        @pytest.mark.wirebroker(topics={"orders": 3}, config={"message.max.bytes": 100})
        def test_markers_add_up(wirebroker):
            assert wirebroker.topics() == {"all": 1, "orders": 3}
            with pytest.raises(KafkaError):
                wirebroker.produce("orders", "x" * 200)

        def test_configs_are_as_before(wirebroker):
            wirebroker.produce("orders", "x" * 200)

        @pytest.fixture
        def mine(request):
            return request.getfixturevalue("wirebroker")

        def test_another_fixture_may_ask_for_it(mine):
            assert mine.topics() == {"all": 1}

        def test_a_sessions_broker_keeps_what_it_has(wirebroker_session, wirebroker):
            wirebroker_session.produce("kept", "one")
            assert wirebroker.topics() == {"all": 1}

        def test_a_sessions_broker_has_kept_it(wirebroker_session):
            assert wirebroker_session.topics() == {"kept": 1}

        def test_a_test_sets_clock_and_faults_of_a_sessions_broker(wirebroker_session):
            wirebroker_session.faults.error("METADATA", "UNKNOWN_SERVER_ERROR")
            wirebroker_session.clock.advance(days=3)
            wirebroker_session.clock.freeze()

        def test_they_are_as_before_in_the_next(wirebroker_session):
            now = datetime.datetime.now(datetime.UTC)
            assert abs(wirebroker_session.clock.now - now).total_seconds() < 60
            before = wirebroker_session.clock.now
            record = wirebroker_session.produce("kept", "two")
            assert record.timestamp >= before.timestamp() * 1000
            assert wirebroker_session._life.instruct("faults", {}) == []

        def test_there_may_be_several(wirebroker_factory):
            one = wirebroker_factory(config={"num.partitions": 2})
            other = wirebroker_factory(own_process=True)
            one.produce("orders", "one")
            assert one.topics() == {"orders": 2}
            assert other.topics() == {}
        """
    )
    assert outcomes(output) == {"passed": 11}, output


def test_a_marker_with_other_arguments_is_an_error(run_pytest):
    output = run_pytest(
        """
        import pytest

        @pytest.mark.wirebroker(topic="orders")
        def test_it(wirebroker): ...

        @pytest.mark.wirebroker(topics={"orders": 1})
        class Test:
            @pytest.mark.wirebroker("orders")
            def test_it(self): ...
        """,
        plugins=(),
    )
    assert outcomes(output) == {"error": 2}, output
    assert output.count("write @pytest.mark.wirebroker(topics=None, config=None)") >= 2


def test_failure_report_shows_broker_logs(run_pytest):
    output = run_pytest(
        """
        def test_without(): assert False

        def test_one(wirebroker):
            wirebroker.produce("first", "one")
            assert False

        def test_several(wirebroker_session, wirebroker_factory, wirebroker):
            wirebroker_factory(own_process=True).produce("second", "one")
            assert False
        """,
        plugins=(),
    )
    assert outcomes(output) == {"failed": 3}, output
    without, one, several = re.split(r"^_+ test_\w+ _+$", output, flags=re.MULTILINE)[1:]
    assert " log -" not in without
    assert "- wirebroker log -" in one
    assert "created topic first" in one
    assert "- wirebroker_factory, broker 1 log -" in several
    assert "created topic second" in several
    assert "created topic first" not in several
    assert "Captured log" not in output


def test_xdist_workers_are_isolated(run_pytest):
    output = run_pytest(
        """
        import pytest

        @pytest.mark.parametrize("number", range(12))
        def test_it(wirebroker, number):
            wirebroker.produce("orders", str(number))
            assert [record.value for record in wirebroker.records("orders")] == [b"%d" % number]
        """,
        "-n",
        "2",
        plugins=("xdist",),
    )
    assert outcomes(output) == {"passed": 12}, output


@pytest.mark.parametrize(
    ("arguments", "is_rewritten"), [((), False), (("-p", "no:wirebroker"), True)]
)
def test_the_brokers_assertions_are_not_rewritten(run_pytest, tmp_path, arguments, is_rewritten):
    """A package whose plugin names wirebroker's modules as its own, like our wheel."""
    package = tmp_path / "fake-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: fake\nVersion: 1.0\n")
    (package / "RECORD").write_text("wirebroker/__init__.py,,\n")
    (package / "entry_points.txt").write_text("[pytest11]\nfake = fake_plugin\n")
    (tmp_path / "fake_plugin.py").write_text("")
    output = run_pytest(
        f"""
        import wirebroker.base.clock

        def test_it():
            loader = type(wirebroker.base.clock.__loader__).__name__
            assert (loader == "AssertionRewritingHook") is {is_rewritten}
        """,
        *arguments,
    )
    assert outcomes(output) == {"passed": 1}, output


def test_the_plugin_imports_nothing_of_the_broker():
    """The plugin's cost for projects that have it installed and do not use it."""
    code = (
        "import sys, pytest\n"
        "before = set(sys.modules)\n"
        "import wirebroker.testing.plugin\n"
        "print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["wirebroker", "wirebroker.testing", "wirebroker.testing.plugin"]


def test_tracebacks_end_in_the_test(run_pytest):
    source = """
        import pytest
        from wirebroker.testing import Broker

        def helper(broker):
            broker.produce("o", {"a": 1})

        def test_misuse(wirebroker):
            helper(wirebroker)

        def test_a_timeout(wirebroker):
            wirebroker.wait_for("orders", 1, timeout=0)

        def test_an_assertion(wirebroker):
            wirebroker.assert_produced("orders", "a book", timeout=0)

        @pytest.mark.wirebroker(config={"auto.create.topics.enable": False})
        def test_a_refusal(wirebroker):
            wirebroker.produce("orders", "a book")

        def test_a_broker_that_was_ended(wirebroker):
            wirebroker.kill()
            wirebroker.topics()

        def test_a_block_of_its_own(wirebroker_factory):
            wirebroker_factory(config={"num.partition": 1})

        def test_a_broker_that_cannot_start():
            with Broker(config={"num.partition": 1}):
                pass

        def test_a_property():
            Broker().bootstrap_servers

        def test_an_error_of_the_test_meanwhile(wirebroker):
            try:
                {}["own"]
            except KeyError:
                wirebroker.committed(5)
        """
    output = run_pytest(source, plugins=())
    assert outcomes(output) == {"failed": 9}
    assert "wirebroker/testing" not in output
    assert "concurrent/futures" not in output
    assert 'broker.produce("o", {"a": 1})' in output
    assert "KeyError: 'own'" in output
    assert "value must be text, bytes or None" in output
    assert "wirebroker/testing/clients/contents.py" in run_pytest(
        source, "--full-trace", plugins=()
    )


def test_internal_error_shows_its_location(run_pytest):
    output = run_pytest(
        """
        def test_it(wirebroker, monkeypatch):
            contents = "wirebroker.testing.clients.contents"
            monkeypatch.setattr(f"{contents}.list_topics", lambda client: client.x)
            wirebroker.topics()
        """,
        plugins=(),
    )
    assert outcomes(output) == {"failed": 1}
    assert "AttributeError" in output
    assert "wirebroker/testing/clients/contents.py" in output


def test_misused_markers_are_named_without_a_traceback(run_pytest):
    output = run_pytest(
        """
        import pytest

        @pytest.mark.wirebroker(topics=["orders", "payments"])
        def test_a_list_of_names(wirebroker):
            assert wirebroker.topics() == {"orders": 1, "payments": 1}

        @pytest.mark.wirebroker(topics="orders")
        def test_text(wirebroker):
            pass

        @pytest.mark.wirebroker(topics={"orders": "three"})
        def test_no_number(wirebroker):
            pass

        @pytest.mark.wirebroker(config={"num.partition": 1})
        def test_no_config(wirebroker):
            pass

        @pytest.mark.wirebroker(topics={"bad name": 1})
        def test_no_topic_name(wirebroker):
            pass

        def test_the_broker_is_well(wirebroker):
            assert wirebroker.topics() == {}
        """,
        plugins=(),
    )
    assert outcomes(output) == {"passed": 2, "error": 4}, output
    assert "--set" not in output
    assert "site-packages" not in output
    assert "wirebroker/testing" not in output
    assert output.count("topics must be a mapping of topic names to numbers of partitions, or") == 2
    assert "config: num.partition" in output
