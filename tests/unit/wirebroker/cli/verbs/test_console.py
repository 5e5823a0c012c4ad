"""Mistakes on the command line of `wirebroker console`; what it serves is tested elsewhere."""

from __future__ import annotations

import socket

import pytest

from wirebroker.cli.main import run
from wirebroker.cli.services import console
from wirebroker.console.model.http_settings import http_settings
from wirebroker.console.model.settings import ClusterSettings

ADDRESS = "127.0.0.1:7777"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--host", "0.0.0.0"], "--host 0.0.0.0 needs --users FILE"),
        (["--cluster", "nonsense"], "nonsense"),
        (["--cluster", "a=b:1", "--cluster", "a=c:1"], "two clusters have the name a"),
        (["--config", "/none/clusters"], "/none/clusters"),
        (["--port", "99999"], "99999"),
    ],
)
def test_mistakes_are_one_line(arguments, message, capsys):
    assert run(["console", *arguments]) == 2
    errors = capsys.readouterr().err
    assert message in errors
    assert errors.count("\n") == 1


def test_a_port_in_use_is_reported(monkeypatch, capsys, tmp_path):
    # Not this process's logs.
    monkeypatch.setattr("wirebroker.base.logs.configure_logging", lambda **_: None)
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        port_file = tmp_path / "port"
        arguments = ["--port", str(port), "--port-file", str(port_file)]
        assert run(["console", *arguments]) == 2
    assert f"cannot listen on 127.0.0.1:{port}: address already in use" in capsys.readouterr().err
    assert not port_file.exists()


def test_a_missing_package_is_named_with_the_extra(monkeypatch, capsys):
    monkeypatch.setitem(__import__("sys").modules, "wirebroker.console.web.server", None)
    monkeypatch.setitem(__import__("sys").modules, "wirebroker.console.web", None)
    assert run(["console"]) == 2
    assert "pip install 'wirebroker[console]'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("file", "profiles", "clusters"),
    [
        (None, (), {"local": ADDRESS}),
        ("read-only=true\n", (), {"local": ADDRESS}),
        ("[production]\nbootstrap.servers=b:1\n", (), {"production": "b:1"}),
        ("read-only=true\n", ("mine",), {"mine": ADDRESS}),
        (None, ("mine",), {"mine": ADDRESS}),
    ],
)
def test_the_console_of_a_broker_shows_that_broker(monkeypatch, tmp_path, file, profiles, clusters):
    """Unless the file names clusters; a profile has only its login."""
    folder = tmp_path / "wirebroker" / "profiles"
    folder.mkdir(parents=True)
    (folder / "mine.properties").write_text("bootstrap.servers=elsewhere:9092\n")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    path = None if file is None else tmp_path / "clusters"
    if path is not None:
        path.write_text(file)
    monkeypatch.setenv("WIREBROKER_CONSOLE_HTTP_TOKEN", "secret")
    own = console._OwnBroker.of(ADDRESS, ["1=http://127.0.0.1:9404"], is_test_mode=False)
    chosen, _ = console._settings((), profiles, own, path, {})
    assert {cluster.name: cluster.bootstrap for cluster in chosen} == clusters
    for cluster in console._with_http(chosen, own, ()):
        found = http_settings(cluster.properties)
        is_own = cluster.bootstrap == ADDRESS
        assert found.metrics_urls == ({1: "http://127.0.0.1:9404/metrics"} if is_own else {})
        assert found.token == ("secret" if is_own else None)
        assert found.test_url is None


def test_the_console_of_a_broker_in_test_mode_knows_its_address(monkeypatch):
    """Other clusters do not get it, nor do clusters that have HTTP settings already."""
    monkeypatch.setenv("WIREBROKER_CONSOLE_HTTP_TOKEN", "hush")
    own = console._OwnBroker.of(ADDRESS, ["1=http://127.0.0.1:8080"], is_test_mode=True)
    other_url = {"wirebroker.test.url": "http://127.0.0.1:1"}
    clusters = [
        ClusterSettings("mine", f"127.0.0.1:7778,{ADDRESS}", {}),
        ClusterSettings("other", "127.0.0.1:7778", {}),
        ClusterSettings("named", ADDRESS, other_url),
        ClusterSettings("flag", "127.0.0.1:7779", other_url),
    ]
    found = console._with_http(clusters, own, ("flag=http://127.0.0.1:2",))
    assert [cluster.properties for cluster in found] == [
        {
            "wirebroker.metrics.urls": "1=http://127.0.0.1:8080/metrics",
            "wirebroker.test.url": "http://127.0.0.1:8080",
            "wirebroker.http.token": "hush",
        },
        {},
        other_url,
        {"wirebroker.test.url": "http://127.0.0.1:2"},
    ]
