"""Placeholders of config providers become values that are never shown (KIP-297)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from wirebroker.config import Config, ConfigError
from wirebroker.config.sources.dynamic import check_change, with_usable
from wirebroker.config.sources.sources import load_config

if TYPE_CHECKING:
    from pathlib import Path

PACKAGE = "org.apache.kafka.common.config.provider"
CLASSES = {"f": "FileConfigProvider", "d": "DirectoryConfigProvider", "e": "EnvVarConfigProvider"}
PROVIDERS = "config.providers=f,d,e\n" + "".join(
    f"config.providers.{name}.class={PACKAGE}.{kind}\n" for name, kind in CLASSES.items()
)
SECRET = "s3cr3t-value"


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    folder = tmp_path / "vault"
    folder.mkdir()
    (folder / "x.properties").write_text(f"password={SECRET}\nhours=77\nbad=zebra\nname=grün\n")
    (folder / "hours").write_text("78\n")
    (folder / "folder").mkdir()
    os.mkfifo(folder / "fifo")
    (folder / "long").write_bytes(b"x" * (1 << 20) + b"xx")
    (folder / "binary").write_bytes(b"\xff\xfe")
    (folder / "loop").symlink_to("loop")
    (folder / "outside").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").write_text("a=1\n")
    return folder


def load(tmp_path: Path, text: str, environment=None, providers=PROVIDERS, **flags) -> Config:
    file = tmp_path / "server.properties"
    file.write_text(providers + text)
    return load_config(file=file, environment=environment or {}, flags=flags)


@pytest.mark.parametrize(
    ("placeholder", "value"),
    [
        ("${f:%s/x.properties:hours}", 77),
        ("${d:%s:hours}", 78),
        ("${e:HOURS}", 79),
        ("${e:TENS}${e:ONES}", 80),
        (" ${e:HOURS} ", 79),
    ],
)
@pytest.mark.parametrize("source", ["file", "environment", "flags"])
def test_placeholders_are_resolved_in_every_config_source(
    tmp_path, vault, placeholder, value, source
):
    environment = {"HOURS": "79", "TENS": "8", "ONES": "0"}
    text = placeholder.replace("%s", str(vault))
    if source == "environment":
        environment["KAFKA_LOG_RETENTION_HOURS"] = text
    flags = {"log.retention.hours": text} if source == "flags" else {}
    settings = f"log.retention.hours={text}\n" if source == "file" else ""
    config = load(tmp_path, settings, environment, **flags)
    assert config.int("log.retention.hours") == value
    assert config.warnings() == load(tmp_path, "", {}).warnings()


def test_provider_names_are_free_and_unknown_placeholders_are_kept(tmp_path):
    providers = (
        f"config.providers=vault\nconfig.providers.vault.class={PACKAGE}.EnvVarConfigProvider\n"
    )
    environment = {"RACK": "r1"}
    config = load(
        tmp_path, "broker.rack=${vault:RACK}-${env:RACK}-${RACK}\n", environment, providers
    )
    assert config.str("broker.rack") == "r1-${env:RACK}-${RACK}"
    config = load(tmp_path, "broker.rack=${vault:RACK}\n", environment, providers="")
    assert config.str("broker.rack") == "${vault:RACK}"


@pytest.mark.parametrize(
    ("placeholder", "reason"),
    [
        ("${f:%s/x.properties:no}", "has no key no"),
        ("${f:%s/missing:no}", "no such file"),
        ("${f:%s:no}", "not a regular file"),
        ("${f:%s/fifo:no}", "not a regular file"),
        ("${f:%s/loop:no}", "too many levels of symbolic links"),
        ("${f:%s/long:no}", "longer than"),
        ("${f:%s/binary:no}", "cannot be read"),
        ("${f:a\0b:no}", "null byte"),
        ("${f:no}", "the placeholder has no path"),
        ("${f::no}", "the placeholder has no path"),
        ("${d:%s:folder}", "not a regular file"),
        ("${d:%s:fifo}", "not a regular file"),
        ("${d:%s:missing}", "no such file"),
        ("${d:%s:../elsewhere}", "not the name of a file"),
        ("${d:%s:}", "not the name of a file"),
        ("${e:MISSING}", "MISSING is not set"),
        ("${e:path:HOME}", "must not have a path"),
    ],
)
def test_unresolvable_placeholder_stops_the_start(tmp_path, vault, placeholder, reason):
    text = placeholder.replace("%s", str(vault))
    with pytest.raises(ConfigError, match=reason) as caught:
        load(tmp_path, "", {"HOME": "/"}, **{"broker.rack": text})
    assert "broker.rack: cannot resolve ${" in str(caught.value)


def test_providers_read_only_what_they_are_allowed_to(tmp_path, vault):
    allowed = f"config.providers.f.param.allowed.paths={vault}\n"
    environment = {"A_B": "1", "B": "2"}
    config = load(tmp_path, f"{allowed}broker.rack=${{f:{vault}/x.properties:hours}}\n")
    assert config.str("broker.rack") == "77"
    for path in (f"{vault}/../elsewhere", f"{vault}/outside", f"{tmp_path}/elsewhere"):
        with pytest.raises(ConfigError, match=r"not in allowed\.paths"):
            load(tmp_path, f"{allowed}broker.rack=${{f:{path}:a}}\n")
    for bad, reason in (("vault", "not an absolute path"), (f"{vault}/no", "no such file")):
        with pytest.raises(ConfigError, match=reason):
            load(tmp_path, f"config.providers.d.param.allowed.paths={bad}\n")
    pattern = "config.providers.e.param.allowlist.pattern=A_.*\n"
    assert (
        load(tmp_path, f"{pattern}broker.rack=${{e:A_B}}\n", environment).str("broker.rack") == "1"
    )
    with pytest.raises(ConfigError, match=r"allowlist\.pattern does not match B"):
        load(tmp_path, f"{pattern}broker.rack=${{e:B}}\n", environment)
    with pytest.raises(ConfigError, match=r"allowlist\.pattern=\( cannot be used"):
        load(tmp_path, "config.providers.e.param.allowlist.pattern=(\n")


def test_other_provider_classes_are_refused(tmp_path):
    with pytest.raises(
        ConfigError, match=r"config\.providers\.x\.class=com\.example\.Vault cannot"
    ):
        load(
            tmp_path,
            "",
            providers="config.providers=x\nconfig.providers.x.class=com.example.Vault\n",
        )
    with pytest.raises(ConfigError, match=r"config\.providers\.x\.class is missing"):
        load(tmp_path, "", providers="config.providers=x\n")


@pytest.mark.parametrize(
    "line",
    [
        "log.retention.hours=${f:%s/x.properties:bad}",
        "listeners=${f:%s/x.properties:bad}",
        "log.cleanup.policy=${f:%s/x.properties:bad}",
        "node.id=${f:%s/x.properties:bad}",
    ],
)
def test_no_error_shows_a_resolved_value(tmp_path, vault, line):
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, line.replace("%s", str(vault)))
    assert "zebra" not in str(caught.value).lower()


def test_resolved_values_are_hidden_whatever_their_type(tmp_path, vault):
    lines = (
        f"log.retention.hours=${{f:{vault}/x.properties:hours}}\n"
        f"broker.rack=${{f:{vault}/x.properties:password}}\n"
        f"log.segment.bytes=${{f:{vault}/x.properties:hours}}777777\n"
    )
    config = load(tmp_path, lines)
    described = {description.name: description for description in config.describe_broker()}
    for name in ("log.retention.hours", "broker.rack", "log.segment.bytes"):
        assert (described[name].value, described[name].is_sensitive) == (None, True)
    (segment_bytes,) = (
        description
        for description in config.describe_topic({})
        if description.name == "segment.bytes"
    )
    assert (segment_bytes.value, segment_bytes.is_sensitive) == (None, True)
    text = repr([*described.values(), *config.describe_topic({"segment.bytes": "9999999"})])
    assert not any(secret in text for secret in (SECRET, "'77'", "77777777"))
    changed = config.with_dynamic(cluster_wide={"log.segment.bytes": "9999999"}, this_broker={})
    described = {description.name: description for description in changed.describe_broker()}
    assert described["log.segment.bytes"].value == "9999999"
    assert "77777777" not in repr(described)


def test_listeners_stay_hidden_when_a_flag_changes_their_port(tmp_path):
    environment = {"HERE": "PLAINTEXT://127.0.0.1:9092"}
    text = "listeners=${e:HERE}\nadvertised.listeners=${e:HERE}\n"
    (tmp_path / "server.properties").write_text(PROVIDERS + text)
    config = load_config(
        file=tmp_path / "server.properties", environment=environment, flags={}, port=7
    )
    described = {description.name: description for description in config.describe_broker()}
    for name in ("listeners", "advertised.listeners"):
        assert config.list(name) == ("PLAINTEXT://127.0.0.1:7",)
        assert (described[name].value, described[name].is_sensitive) == (None, True)


def test_a_password_is_the_value_and_not_the_placeholder(tmp_path, vault):
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    line = (
        "listeners=SASL_PLAINTEXT://127.0.0.1:0\nsecurity.inter.broker.protocol=SASL_PLAINTEXT\n"
        "sasl.enabled.mechanisms=PLAIN\nlistener.name.sasl_plaintext.plain.sasl.jaas.config="
        f'{module} required user_a="${{f:{vault}/x.properties:password}}";\n'
    )
    name = "listener.name.sasl_plaintext.plain.sasl.jaas.config"
    assert f'user_a="{SECRET}"' in str(load(tmp_path, line).value(name))


@pytest.mark.parametrize("is_default", [False, True])
def test_stored_configs_with_placeholders_are_ignored(tmp_path, is_default):
    config = load(tmp_path, "", {"HOME": "/"})
    stored = {
        "log.retention.ms": "5000",
        "ssl.keystore.password": "${e:HOME}",
        "listener.name.x.plain.sasl.jaas.config": "${e:HOME}",
        "metric.name": "${other:HOME}",
    }
    wide, own = (stored, {}) if is_default else ({}, stored)
    changed, problems = with_usable(config, cluster_wide=wide, this_broker=own)
    assert changed.int("log.retention.ms") == 5000
    assert not changed.is_set("ssl.keystore.password")
    assert not changed.is_set("listener.name.x.plain.sasl.jaas.config")
    assert changed.is_set("metric.name")
    assert (
        len([problem for problem in problems if "${e:HOME} cannot be set by a request" in problem])
        == 2
    )


def test_refusals_of_a_change_show_no_resolved_value(tmp_path):
    file = tmp_path / "x.properties"
    file.write_text("ms=86461234\n")
    config = load(tmp_path, f"log.retention.ms=${{f:{file}:ms}}\n")
    change = {"log.local.retention.ms": "86461235"}
    with pytest.raises(ConfigError, match=r"log\.local\.retention\.ms") as refused:
        check_change(config, cluster_wide=change, this_broker={}, is_default=True)
    assert "86461234" not in str(refused.value)
    _, problems = with_usable(config, cluster_wide=change, this_broker={})
    assert "86461234" not in str(problems)


def test_a_request_cannot_name_a_placeholder(tmp_path):
    config = load(tmp_path, "")
    assert config.placeholder_in("a ${e:HOME}") == "${e:HOME}"
    assert config.placeholder_in("${other:HOME}") is None
    assert load(tmp_path, "", providers="").placeholder_in("${e:HOME}") is None
