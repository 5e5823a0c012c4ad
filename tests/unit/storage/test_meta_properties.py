"""meta.properties in Apache Kafka's format."""

import pytest

from wirebroker.codecs.primitives import uuid_from_text
from wirebroker.storage.meta_properties import (
    MetaProperties,
    format_meta_properties,
    parse_meta_properties,
)

RECORDED = """#
#Sat Nov 21 09:59:44 UTC 2026
node.id=1
directory.id=dW2kI4-ZS3nu_2Z6qHRj_g
version=1
cluster.id=MkU3OEVBNTcwNTJENDM2Qk
"""


def test_what_apache_kafka_wrote_is_read():
    assert parse_meta_properties(RECORDED) == MetaProperties(
        "MkU3OEVBNTcwNTJENDM2Qk", 1, uuid_from_text("dW2kI4-ZS3nu_2Z6qHRj_g")
    )


def test_what_is_written_is_read_back():
    properties = MetaProperties("MkU3OEVBNTcwNTJENDM2Qk", 17, bytes(range(16)))
    assert parse_meta_properties(format_meta_properties(properties)) == properties


def test_java_properties_syntax_variants_are_read():
    text = "! comment\n  node.id : 3\r\nversion 1\ncluster.id = a\\:b\\=c\\ d  \n\nother=\n"
    assert parse_meta_properties(text) == MetaProperties("a:b=c d", 3, bytes(16))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "version is None"),
        (RECORDED.replace("version=1", "version=2"), "version is '2'"),
        (RECORDED.replace("node.id=1", ""), "node.id is missing"),
        (RECORDED.replace("node.id=1", "node.id=one"), "not a number"),
        (RECORDED.replace("node.id=1", "node.id=-1"), "not a number"),
        (RECORDED.replace("cluster.id=", "#"), "cluster.id is missing"),
        (RECORDED.replace("dW2kI4", "?"), "not a uuid"),
    ],
)
def test_missing_or_wrong_property_is_named(text, problem):
    with pytest.raises(ValueError, match=problem):
        parse_meta_properties(text)
