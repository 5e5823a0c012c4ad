"""Every version of every API that a broker serves has a transcript.

`other_versions.txt` has those that no transcript needs for another reason.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

from tests.transcripts.driver import api_key_of
from tests.transcripts.script import parse
from wirebroker.codecs.api_keys import API_VERSIONS, ApiKey

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def recorded() -> dict[ApiKey, set[int]]:
    """The versions of each API in all transcripts."""
    versions: dict[ApiKey, set[int]] = defaultdict(set)
    for file in HERE.glob("*.txt"):
        for step in parse(file.read_text()):
            if step.command[0] in {"send", "begin", "frame"}:
                versions[api_key_of(step.command[1])].add(int(step.command[2]))
    return versions


@pytest.mark.parametrize("key", API_VERSIONS, ids=lambda key: key.name)
def test_each_version_has_a_transcript(key: ApiKey, recorded: dict[ApiKey, set[int]]) -> None:
    served = API_VERSIONS[key]
    versions = set(range(served.min_version, served.max_version + 1))
    assert versions <= recorded[key], "record a request of each version"
