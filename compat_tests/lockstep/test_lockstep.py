"""Apache Kafka and wirebroker respond alike to the same random steps.

pytest compat_tests/lockstep                            300 steps of each kind, fixed seed
pytest compat_tests/lockstep --seed random              new steps
pytest compat_tests/lockstep --lockstep-steps 5000      many, as every night
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from compat_tests.lockstep.agreed import AGREED, Agreed
from compat_tests.lockstep.kinds import KINDS
from compat_tests.lockstep.minimising import minimise
from compat_tests.lockstep.pair import Answers, Pair
from compat_tests.lockstep.record_sets import HELD_BACK, SHAPES, malformed
from compat_tests.lockstep.running import Outcome, run, unexplained
from compat_tests.lockstep.steps import Answer, Expression, call, command, send, spelled
from conftest import DEFAULT_SEED
from tests.transcripts.arguments import evaluate
from tests.transcripts.batches import HELPERS
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with Pair(tmp_path_factory.mktemp("lockstep")) as running:
        yield running


@pytest.mark.java
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("name", KINDS)
def test_responses_to_random_steps_match_apache_kafka(
    name: str, pair: Pair, request: pytest.FixtureRequest
) -> None:
    options = request.config.option
    outcome = run(pair, KINDS[name], seed=options.seed, steps=options.lockstep_steps)
    if not outcome.is_good:
        pytest.fail("\n".join([*outcome.report(), *minimise(pair, outcome)]), pytrace=False)
    served = KINDS[name].keys & pair.versions.keys()
    unused = {spelled(key) for key in served} - outcome.sent.keys()
    assert not unused, "a kind that never sends what it is there for"
    expected = {row for row in AGREED if row.kind == name and not row.idle_because}
    if options.seed == DEFAULT_SEED:
        assert expected <= outcome.agreed.keys(), "a row that explains nothing"
    assert outcome.refused < len(outcome.done) * 0.7, "most steps should mean something"


# compat_tests/security sends logins, users, tokens and quotas to both.
_TRIED_ELSEWHERE = {
    ApiKey.SASL_HANDSHAKE,
    ApiKey.SASL_AUTHENTICATE,
    ApiKey.DESCRIBE_ACLS,
    ApiKey.CREATE_ACLS,
    ApiKey.DELETE_ACLS,
    ApiKey.DESCRIBE_CLIENT_QUOTAS,
    ApiKey.ALTER_CLIENT_QUOTAS,
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
    ApiKey.ADD_RAFT_VOTER,  # compat_tests/cluster/voters/test_dynamic_voters.py
    ApiKey.REMOVE_RAFT_VOTER,
    ApiKey.CREATE_DELEGATION_TOKEN,
    ApiKey.RENEW_DELEGATION_TOKEN,
    ApiKey.EXPIRE_DELEGATION_TOKEN,
    ApiKey.DESCRIBE_DELEGATION_TOKEN,
}


@pytest.mark.java
def test_each_common_api_is_sent_by_some_kind(pair: Pair) -> None:
    sent = {key for kind in KINDS.values() for key in kind.keys}
    assert pair.versions.keys() - sent == _TRIED_ELSEWHERE


def test_same_seed_gives_same_steps() -> None:
    shapes = [malformed(random.Random(3)).shape for _ in range(2)]
    assert shapes[0] == shapes[1]


def test_excluded_shapes_exist_and_are_not_sent() -> None:
    assert HELD_BACK.keys() <= SHAPES.keys()
    drawn = {malformed(random.Random(seed)).shape for seed in range(2_000)}
    assert drawn == SHAPES.keys() - HELD_BACK.keys()


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_can_be_written_and_read(shape: str) -> None:
    record_set = SHAPES[shape](random.Random(1))
    step = command(["any"], {"records": record_set})
    records = evaluate(step.arguments, {"NOW": 1_700_000_000_000}, HELPERS)["records"]
    assert records is None or isinstance(records, bytes)


def test_fields_that_a_version_lacks_are_left_out() -> None:
    topics = [{"name": "t", "topic_id": Expression("T1"), "partition_data": []}]
    by_name = send(ApiKey.PRODUCE, 12, {"topic_data": topics})
    by_id = send(ApiKey.PRODUCE, 13, {"topic_data": topics})
    assert by_name.arguments == "topic_data = [{'name': 't', 'partition_data': []}]"
    assert by_id.arguments == "topic_data = [{'topic_id': T1, 'partition_data': []}]"


def test_kind_reads_values_from_response() -> None:
    answer = Answer(["error_code = 3 OF", "member_id = transcript-M12", "topics[a].id = T3"])
    assert (answer.errors(), answer.is_good, answer.number("no")) == ({3}, False, -1)
    assert answer.name("member_id", "M") == Expression("M12")
    assert answer.name("topics[a].id", "T") == Expression("T3")
    assert answer.name("topics[a].id", "P") is None


def test_difference_is_reported_unless_row_explains_it() -> None:
    step = command(["send", "Fetch", "12"], {"records": call("batch", "a")})
    answers = Answers(["a = 1", "b = 2"], ["a = 3", "b = 4"])
    row = Agreed("records", "send Fetch .*", "a: .*", "a reason", "a cost")
    outcome = Outcome("records", 1, "r1-")
    assert unexplained(outcome, step, answers, (row,)) == ["b: Kafka says 2, we say 4"]
    assert outcome.agreed == {row: 1}
    assert not unexplained(outcome, step, Answers(["a = 1"], ["a = 1"]), ())
    elsewhere = Outcome("admin", 1, "r1-")
    assert len(unexplained(elsewhere, step, answers, (row,))) == 2


@pytest.mark.parametrize("row", AGREED, ids=lambda row: row.reason[:30])
def test_agreed_differences_name_affected_users_and_consequences(row: Agreed) -> None:
    assert row.kind in ("any", *KINDS)
    assert row.reason.endswith(".")
    assert row.cost.endswith(".")
