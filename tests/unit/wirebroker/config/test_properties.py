"""Properties files and KAFKA_ variables, compared with java.util.Properties."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wirebroker.config import ConfigError
from wirebroker.config.java.properties import foreign_kind, parse_properties
from wirebroker.config.sources.environment import settings_from_environment

JAVA_READS = [
    ("a=b", {"a": "b"}),
    ("a = b ", {"a": "b "}),
    ("a:b", {"a": "b"}),
    ("a b", {"a": "b"}),
    ("a", {"a": ""}),
    ("a=", {"a": ""}),
    ("=b", {"": "b"}),
    ("  a=b", {"a": "b"}),
    ("#x=1\n!y\na=b", {"a": "b"}),
    ("a=b\\\n   c", {"a": "bc"}),
    ("a=b\\\\\nc=d", {"a": "b\\", "c": "d"}),
    ("a\\=b=c", {"a=b": "c"}),
    ("a\\ b c", {"a b": "c"}),
    ("a=\\u0041\\t\\z", {"a": "A\tz"}),
    ("a==b", {"a": "=b"}),
    ("a = = b", {"a": "= b"}),
    ("a=b\\", {"a": "b"}),
    ("a=1\ra=2\r\nb=3", {"a": "2", "b": "3"}),
    ("a=x\\\n#y", {"a": "x#y"}),
    ("a=x\\\n\nb=1", {"a": "x", "b": "1"}),
    ("\n \t\n", {}),
    ("a\\:b : c", {"a:b": "c"}),
    ("\\#a=1", {"#a": "1"}),
    ("a=x\\\r\n y", {"a": "xy"}),
    ("a=b\\\\\\\n c", {"a": "b\\c"}),
]


@pytest.mark.parametrize(("text", "settings"), JAVA_READS)
def test_properties_file_is_read_like_java(text, settings):
    assert parse_properties(text) == settings


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("\x7fELF\x02\x01", "a binary file"),
        ("n\0o\0d\0e\0", "a binary file"),
        ("\xef\xbb\xbfnode.id=1\n", "a text that begins with a byte order mark"),
        ('{"node.id": 1}', "a JSON file"),
        ("# settings\n  [1, 2]\n", "a JSON or INI file"),
        ("[kafka]\nnode.id=1\n", "a JSON or INI file"),
        ('<?xml version="1.0"?>\n', "an XML file"),
        ("---\nnode.id: 1\n", "a YAML file"),
        ("log.dirs:\n  - data\n", "a YAML file"),
        ("kafka:\n  node.id: 1\n", "a YAML file"),
        ("a: 1\nkafka:\r\n\r\n\tnode.id: 1\r\n", "a YAML file"),
        ("```\nnode.id=1\n```\n", "another kind of file"),
    ],
)
def test_other_file_formats_are_recognized(text, kind):
    assert foreign_kind(text) == kind


@pytest.mark.parametrize(
    "text",
    [
        "",
        "node.id: 1\nlog.dirs: data\n",
        "a=\\\n   - x\n",
        "sasl.jaas.config=x \\\n  {y};\n",
        "empty:\n# a comment\nother:\n",
        "-Xmx=1\n",
        "! <xml>\nnode.id=1\n",
        "k\u00fc=1\n",
    ],
)
def test_possible_properties_text_is_accepted(text):
    assert foreign_kind(text) is None


def test_a_broken_unicode_escape_is_refused():
    with pytest.raises(ValueError, match="four hexadecimal digits"):
        parse_properties("a=\\u00")


@given(st.dictionaries(st.text("ab.:= #!\\", min_size=1), st.text("xy=: \\#\t")))
def test_escaped_keys_and_values_are_read_back(settings):
    def escaped(text: str) -> str:
        return "".join(f"\\{c}" if c in "\\=: #!" else c.replace("\t", "\\t") for c in text)

    text = "\n".join(f"{escaped(key)}={escaped(value)}" for key, value in settings.items())
    assert parse_properties(text) == settings


@pytest.mark.parametrize(
    ("variable", "name"),
    [
        ("KAFKA_LOG_RETENTION_HOURS", "log.retention.hours"),
        ("KAFKA_LISTENER_NAME_A__B_X", "listener.name.a_b.x"),
        ("KAFKA_A___B", "a-b"),
        ("KAFKA_NODE_ID", "node.id"),
        ("KAFKA_LISTENER_NAME_KAFKA_X", "listener.name.kafka.x"),
    ],
)
def test_kafka_variable_maps_to_a_config_like_kafkas_image(variable, name):
    assert settings_from_environment({variable: "1"}) == {name: "1"}


@pytest.mark.parametrize("value", ["\\u00", "\\uXYZW", "a\\\n\\u1"])
def test_variable_with_a_broken_escape_is_refused_by_its_name(value):
    with pytest.raises(ConfigError, match=r"KAFKA_X cannot be used: a .u escape needs four"):
        settings_from_environment({"KAFKA_X": value})


def test_java_and_unrelated_variables_set_no_config():
    environment = {"KAFKA_HEAP_OPTS": "-Xmx1G", "KAFKA_": "x", "PATH": "/bin", "kafka_node_id": "1"}
    assert settings_from_environment(environment) == {}


def test_cluster_id_sets_the_cluster_of_a_new_directory():
    assert settings_from_environment({"CLUSTER_ID": "abc"}) == {"wirebroker.cluster.id": "abc"}
    assert settings_from_environment({"CLUSTER_ID": ""}) == {}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a\\nb", "a\nb"),
        ("\\u0041\\tB", "A\tB"),
        ("a,\\\n    b", "a,b"),
        ("a,\\\r\n\tb", "a,b"),
        ("a\\\\\nb", "a\\\nb"),
        ("C:\\\\data", "C:\\data"),
        ("\\x", "x"),
        ("a\nb", "a\nb"),
        ("plain # no comment = :", "plain # no comment = :"),
        ("   lead trail  ", "lead trail  "),
        ("\t\\n lead", "\n lead"),
        ("=x", "=x"),
        ("", ""),
        ("grün", "grün"),
        ("end\\", "end"),
    ],
)
def test_variables_are_written_as_values_of_a_properties_file(text, value):
    assert settings_from_environment({"KAFKA_X": text}) == {"x": value}


def test_a_variable_with_a_wrong_escape_is_refused_by_its_name():
    with pytest.raises(ConfigError, match=r"KAFKA_X cannot be used: .* hexadecimal"):
        settings_from_environment({"KAFKA_X": "\\u00"})
