"""Apache Kafka and wirebroker serve the same folder in turns, and nothing is lost or changed."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Literal

import pytest

from compat_tests.interchange.contents import Contents, contents_of
from compat_tests.interchange.history import History
from compat_tests.interchange.shared_folder import End, SharedFolder, address
from compat_tests.support.raw_requests import Requests
from tests.support.tools.tools import IS_REFERENCE

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.java

APACHE_FIRST = ("apache", "wirebroker", "apache", "wirebroker")
WIREBROKER_FIRST = ("wirebroker", "apache", "wirebroker", "apache")


def change_hands(folder: SharedFolder, kinds: tuple[str, ...], end: End) -> None:
    history = History(folder)
    before: Contents | None = None
    for kind in kinds:
        with (
            folder.run(kind, end) as broker,
            contextlib.closing(Requests(address(broker))) as requests,
        ):
            if before is not None:
                assert_same(contents_of(requests), before)
            history.add(requests)
            before = contents_of(requests)


def assert_same(actual: Contents, expected: Contents) -> None:
    """Compare piece by piece, for readable messages despite megabytes of batches."""
    assert actual.topics.keys() == expected.topics.keys()
    for name, topic in actual.topics.items():
        expected_topic = expected.topics[name]
        assert topic._replace(partitions={}) == expected_topic._replace(partitions={}), name
        for index, partition in topic.partitions.items():
            expected_partition = expected_topic.partitions[index]
            assert partition[:3] == expected_partition[:3], f"offsets of {name}-{index}"
            assert partition.batches == expected_partition.batches, f"batches of {name}-{index}"
    assert actual.configs == expected.configs
    assert actual.offsets == expected.offsets


@pytest.mark.parametrize(
    ("kinds", "end"),
    [
        pytest.param(APACHE_FIRST, "kill", id="apache-kill"),
        pytest.param(WIREBROKER_FIRST, "stop", id="wirebroker-stop", marks=pytest.mark.nightly),
        pytest.param(APACHE_FIRST, "stop", id="apache-stop", marks=pytest.mark.nightly),
        pytest.param(WIREBROKER_FIRST, "kill", id="wirebroker-kill", marks=pytest.mark.nightly),
    ],
)
def test_four_alternating_brokers_serve_and_extend_same_data(
    tmp_path: Path, kinds: tuple[str, ...], end: End
) -> None:
    change_hands(SharedFolder(tmp_path), kinds, end)


@pytest.mark.nightly
@pytest.mark.parametrize(
    "kinds",
    [
        pytest.param(WIREBROKER_FIRST, id="wirebroker"),
        pytest.param(APACHE_FIRST, id="apache"),
    ],
)
def test_several_log_directories_with_separate_metadata_directory(
    tmp_path: Path, kinds: tuple[str, ...]
) -> None:
    change_hands(SharedFolder(tmp_path, layout="several"), kinds, "stop")


@pytest.mark.nightly
@pytest.mark.parametrize("layout", ["several", "one"])
def test_voters_stored_in_metadata_log(tmp_path: Path, layout: Literal["one", "several"]) -> None:
    folder = SharedFolder(tmp_path, layout=layout, has_dynamic_voters=True)
    change_hands(folder, APACHE_FIRST, "kill")


@pytest.mark.parametrize(
    "has_dynamic_voters", [True, pytest.param(False, marks=pytest.mark.nightly)]
)
def test_formatted_folder_starts_with_its_formatted_features(
    tmp_path: Path, *, has_dynamic_voters: bool
) -> None:
    folder = SharedFolder(tmp_path, has_dynamic_voters=has_dynamic_voters)
    folder.apache.format()
    change_hands(folder, WIREBROKER_FIRST[:2], "stop")
    folder.apache.start()
    with contextlib.closing(Requests(address(folder.apache))) as requests:
        levels = requests.finalized_features()
    folder.apache.stop()
    expected = {
        "eligible.leader.replicas.version": 1,
        "group.version": 1,
        "kraft.version": int(has_dynamic_voters),
        "metadata.version": 33 if IS_REFERENCE else 30,
        "share.version": 2 if IS_REFERENCE else 1,
        "streams.version": 1,
        "transaction.version": 2,
    }
    assert levels == {name: level for name, level in expected.items() if level}
