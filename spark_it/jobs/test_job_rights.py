"""Jobs need exactly the documented rights at a broker with an authorizer.

The login of [kafka] is writer, that of [reader] reader. Each right is revoked alone.
"""

from __future__ import annotations

import re
import shlex
from argparse import Namespace
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from compat_tests.clients import confluent
from compat_tests.clients.message import WAIT_S
from compat_tests.conftest import new_topic_name
from compat_tests.security.secured import PASSWORD, SecuredKafka, SecuredWirebroker, secured_broker
from compat_tests.support import topics
from spark_it.kit import job_kit, records
from tests.support.brokers.brokers import AUTHORIZED
from tests.support.cli.verbs import Verbs
from tests.support.tools.ports import HOST
from tests.support.tools.waiting import eventually
from wirebroker.pipelines.delivery.rights import Right, RightError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    Secured = SecuredKafka | SecuredWirebroker

pytestmark = [pytest.mark.nightly, pytest.mark.java]

_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule required"
_USERS: Final = f'{_MODULE} user_writer="{PASSWORD}" user_reader="{PASSWORD}";'
_SETTINGS: Final = {
    **AUTHORIZED,
    "allow.everyone.if.no.acl.found": "false",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": _USERS,
}


class Given(NamedTuple):
    """A right of the login in a table of the job's file."""

    table: str
    right: Right

    @property
    def user(self) -> str:
        return {"kafka": "writer", "reader": "reader"}[self.table]

    @property
    def binding(self) -> AclBinding:
        pattern = ResourcePatternType.PREFIXED if self.right.is_prefixed else None
        return AclBinding(
            ResourceType[self.right.resource.replace("-", "_").upper()],
            self.right.name,
            pattern or ResourcePatternType.LITERAL,
            f"User:{self.user}",
            "*",
            AclOperation[self.right.operation.upper()],
            AclPermissionType.ALLOW,
        )


def delivering(name: str) -> list[Given]:
    """Return the rights that every job needs to write to its topic."""
    rights = (
        Right("read", "topic", f"{name}-to"),
        Right("write", "topic", f"{name}-to"),
        Right("read", "group", f"job-{name}"),
        Right("write", "transactional-id", f"job-{name}.{name}-to.", is_prefixed=True),
    )
    return [Given("kafka", right) for right in rights]


def dead_letters(name: str) -> list[Given]:
    return [Given("kafka", Right("write", "topic", f"{name}-to.dead-letters"))]


def read_topic(name: str) -> list[Given]:
    return [
        Given("kafka", Right("describe", "topic", name)),
        Given("reader", Right("read", "topic", name)),
    ]


@pytest.fixture(scope="module")
def guarded(
    broker_kind: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SecuredKafka | SecuredWirebroker]:
    with secured_broker(broker_kind, tmp_path_factory.mktemp("guarded"), _SETTINGS) as running:
        yield running


@contextmanager
def rights_of(broker: Secured, grants: list[Given]) -> Iterator[None]:
    for grant in grants:
        give(broker, grant)
    try:
        yield
    finally:
        for grant in grants:
            take(broker, grant)


def admin_of(broker: Secured) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap})


def give(broker: Secured, grant: Given) -> None:
    admin = admin_of(broker)  # must outlive its futures
    for future in admin.create_acls([grant.binding]).values():
        future.result(WAIT_S)
    eventually(lambda: is_given(broker, grant))


def take(broker: Secured, grant: Given) -> None:
    admin = admin_of(broker)
    for future in admin.delete_acls([filter_of(grant)]).values():
        future.result(WAIT_S)
    eventually(lambda: not is_given(broker, grant))


def is_given(broker: Secured, grant: Given) -> bool:
    # The broker returns the ACLs that it applies.
    admin = admin_of(broker)
    return bool(admin.describe_acls(filter_of(grant)).result(WAIT_S))


def filter_of(grant: Given) -> AclBindingFilter:
    acl = grant.binding
    return AclBindingFilter(
        *(acl.restype, acl.name, acl.resource_pattern_type, acl.principal, acl.host),
        *(acl.operation, acl.permission_type),
    )


def tables_of(broker: Secured, kind: str) -> dict[str, Any]:
    address = f"{HOST}:{broker.secured_port}"
    common = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
    login = f'{_MODULE} username="reader" password="{PASSWORD}";'
    java = {**common, "sasl.jaas.config": login}
    writer_login = {"sasl.username": "writer", "sasl.password": PASSWORD}
    tables: dict[str, Any] = {"kafka": {"bootstrap.servers": address, **common, **writer_login}}
    if kind != "ingest":
        tables["reader"] = {f"kafka.{name}": value for name, value in java.items()}
    if kind != "replay":
        tables["schema"] = {"who": "string"}
    if kind == "windows":
        tables |= {"columns": {"n": "count(*)"}, "table_schema": {"city": "string"}}
    return tables


def fill(broker: Secured, name: str) -> None:
    """Create a job's topics, with records."""
    for topic in (name, f"{name}-table", f"{name}-to", f"{name}-to.dead-letters"):
        records.create_topic(broker.bootstrap, topic, partitions=1)
    records.write_visits(broker.bootstrap, name, table=f"{name}-table")


def end_of(broker: Secured, topic: str) -> int:
    consumer = confluent.make_consumer(broker.bootstrap)
    try:
        return int(consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=WAIT_S)[1])
    finally:
        consumer.close()


KINDS: Final[dict[str, tuple[int, dict[str, Any]]]] = {
    "ingest": (2, {"source": "in"}),
    "replay": (2, {"source": "{}"}),
    "windows": (1, {"source": "{}", "table": "{}-table", "key": "who"}),
}


def rights_for(kind: str, name: str) -> list[Given]:
    """Return the rights that the guide documents for a kind of job."""
    match kind:
        case "ingest":
            return [*delivering(name), *dead_letters(name)]
        case "replay":
            return [*delivering(name), *dead_letters(name), *read_topic(name)]
        case _:
            return [*delivering(name), *read_topic(name), *read_topic(f"{name}-table")]


@pytest.mark.parametrize("kind", KINDS)
def test_job_works_with_its_rights_and_names_missing_right(
    spark: SparkSession, guarded: Secured, tmp_path: Path, kind: str
) -> None:
    name = new_topic_name()
    fill(guarded, name)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl").write_text('{"who": "x"}\n{"who": "y"}\nno row\n', "utf-8")
    count, templates = KINDS[kind]
    settings: dict[str, Any] = {key: value.format(name) for key, value in templates.items()}
    job = job_kit.write_job(
        *(tmp_path, "", tables_of(guarded, kind)),
        name=f"job-{name}",
        topic=f"{name}-to",
        **settings,
    )
    needed = rights_for(kind, name)
    with rights_of(guarded, needed):
        for grant in needed:
            take(guarded, grant)
            with pytest.raises(RightError) as raised:
                job_kit.run(kind, job, spark)
            assert str(raised.value) == grant.right.told(grant.table, grant.user)
            give(guarded, grant)
        for end in ("", ".dead-letters"):
            assert end_of(guarded, f"{name}-to{end}") == 0
        summary = job_kit.run(kind, job, spark)
        assert (summary["records"], summary["faults"]) == (count, 0)
        assert summary.get("dead_letters", 0) == (kind == "ingest")
    job_kit.read_all(guarded.bootstrap, f"{name}-to", count, partitions=1)


def test_reported_commands_grant_all_missing_rights(
    spark: SparkSession, guarded: Secured, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = new_topic_name()
    verbs = Verbs(guarded.bootstrap, capsys)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl").write_text('{"who": "x"}\n', "utf-8")
    job = job_kit.write_job(
        *(tmp_path, "", tables_of(guarded, "ingest")),
        name=f"job-{name}",
        topic=f"{name}-to",
        source="in",
    )
    summary, granted_count = run_by_what_is_told(lambda: job_kit.run("ingest", job, spark), verbs)
    # Create rights are reported one after the other, the others together.
    assert (summary["records"], granted_count) == (1, 7)


def run_by_what_is_told(run: Callable[[], Any], verbs: Verbs) -> tuple[Any, int]:
    """Run until success, each time after granting the rights that the error names.

    Return the result and the number of granted rights.
    """
    granted: list[str] = []
    while True:
        try:
            return run(), len(granted)
        except RightError as error:
            commands = re.findall(r": wirebroker (acl create .*)", str(error))
            assert commands
            assert not set(commands) & set(granted), "each once"
            for acl_command in commands:
                verbs.do(*shlex.split(acl_command.replace("User:NAME", "User:writer")))
            granted += commands


def test_archive_is_restored_into_broker_with_login_and_rights(
    spark: SparkSession, guarded: Secured, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from wirebroker.pipelines.archive.archive import archive
    from wirebroker.pipelines.archive.restore_job import RestoreJob, restore_settings, run_restore
    from wirebroker.pipelines.job.file_or_flags import settings_of

    name = new_topic_name()
    records.create_topic(guarded.bootstrap, name, partitions=1)
    records.write(guarded.bootstrap, name, range(10), partitions=1)
    archive(spark, str(guarded.data_dir), name, tmp_path / "kept")
    topics.delete(guarded.bootstrap, name)
    login = tables_of(guarded, "ingest")["kafka"].items()
    lines = ['target = "kept"', "[kafka]", *(f'"{key}" = "{value}"' for key, value in login)]
    file = tmp_path / "restore.toml"
    file.write_text("\n".join(lines), "utf-8")
    job = settings_of(Namespace(file=file), RestoreJob)
    kafka = restore_settings(file, job)
    verbs = Verbs(guarded.bootstrap, capsys)
    assert run_by_what_is_told(lambda: run_restore(spark, job, kafka), verbs) == (0, 2)
    assert capsys.readouterr().out.endswith(f"{name}-0: 10 records\n")
    assert end_of(guarded, name) == 10


def test_quality_report_has_lags_only_with_describe_rights(
    spark: SparkSession, guarded: Secured, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from wirebroker.pipelines.quality.quality_job import QualityJob, run_quality

    name = new_topic_name()
    fill(guarded, name)
    consumer = confluent.make_consumer(guarded.bootstrap, {"group.id": name})
    eventually(lambda: confluent.has_committed(consumer, TopicPartition(name, 0, 1)))
    consumer.close()
    kafka = tables_of(guarded, "ingest")["kafka"]
    job = QualityJob(path=str(guarded.data_dir), topics=name)
    topic = Given("kafka", Right("describe", "topic", name))
    group = Given("kafka", Right("describe", "group", name))
    with rights_of(guarded, [topic, group]):
        assert run_quality(spark, job, kafka) == 0
        assert f"  group {name}, partition 0: lag 1\n" in capsys.readouterr().out
        take(guarded, group)
        assert run_quality(spark, job, kafka) == 0
        assert capsys.readouterr().out.endswith(
            "no group that the login may describe has offsets here\n"
        )
        take(guarded, topic)
        with pytest.raises(RightError) as raised:
            run_quality(spark, job, kafka)
        assert str(raised.value) == topic.right.told("kafka", "writer")
