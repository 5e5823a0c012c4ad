"""The handwritten codec of a share group's topics against the generic one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from wirebroker.codecs.group_records import GroupRecordKind, WholeGroupKey, group_record
from wirebroker.codecs.hot.share_state_topics import encode_state_topics

KEY = WholeGroupKey(GroupRecordKind.SHARE_GROUP_STATE_PARTITION_METADATA, "g")
IDS = st.binary(min_size=16, max_size=16)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)
NUMBERS = st.integers(-(1 << 31), (1 << 31) - 1)
PARTITIONS = st.one_of(st.just(frozenset([0])), st.frozensets(NUMBERS, max_size=200))
TOPICS = st.dictionaries(IDS, st.tuples(NAMES, PARTITIONS), max_size=130)


def listed(topics):
    return [
        {"topic_id": topic_id, "topic_name": name, "partitions": sorted(partitions)}
        for topic_id, (name, partitions) in topics.items()
    ]


@given(TOPICS, TOPICS, st.dictionaries(IDS, NAMES, max_size=130))
def test_bytes_are_those_of_the_generic_codec(initializing, initialized, deleting):
    record = group_record(
        KEY,
        initializing_topics=listed(initializing),
        initialized_topics=listed(initialized),
        deleting_topics=[
            {"topic_id": topic_id, "topic_name": name} for topic_id, name in deleting.items()
        ],
    )
    assert encode_state_topics(initializing, initialized, deleting) == record.value
