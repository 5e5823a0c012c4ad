"""The ownership of a directory, and the minimum number of workers for it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from wirebroker.broker.worker_layout import WorkerDirectories, check_alone, check_fewer
from wirebroker.broker.workers.running import Asked, run
from wirebroker.config import Config, StartError
from wirebroker.inspect.views import metadata_view

if TYPE_CHECKING:
    from pathlib import Path


def format_folders(data: Path, *names: str) -> None:
    for name in names:
        folder = data / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "meta.properties").write_text("version=1\ncluster.id=c\nnode.id=1\n")


@pytest.fixture
def replicas(monkeypatch) -> list[tuple[int, ...]]:
    """Replicas of topic t's partitions, as in the metadata."""
    found: list[tuple[int, ...]] = []

    def image_of(directories, clock):
        del directories, clock
        partitions = {index: SimpleNamespace(replicas=each) for index, each in enumerate(found)}
        return SimpleNamespace(topics={"t": SimpleNamespace(name="t", partitions=partitions)})

    monkeypatch.setattr(metadata_view, "image_of", image_of)
    return found


def test_a_new_directory_has_a_folder_for_each_worker(tmp_path):
    directories = WorkerDirectories([str(tmp_path)])
    assert directories.of(1) == (str(tmp_path / "worker1"),)
    assert directories.of(2) == (str(tmp_path / "worker2"),)
    assert directories.known == 0
    assert not directories.has_folders


def test_one_brokers_directory_stays_the_first_workers(tmp_path):
    format_folders(tmp_path, ".", "worker3")
    directories = WorkerDirectories([str(tmp_path)])
    assert directories.of(1) == (str(tmp_path),)
    assert directories.of(2) == (str(tmp_path / "worker2"),)
    assert directories.known == 3


def test_fewer_workers_are_refused_as_long_as_the_others_have_replicas(tmp_path, replicas):
    format_folders(tmp_path, "worker1", "worker2", "worker3")
    directories = WorkerDirectories([str(tmp_path)])
    replicas += [(5,), (5, 6), (6, 5)]
    check_fewer(directories, 2, first_node=5)
    check_fewer(directories, 3, first_node=5)
    replicas += [(7, 5), (6, 7)]
    with pytest.raises(StartError, match=r"beyond 2 have replicas \(t-3, t-4\).*--workers 3"):
        check_fewer(directories, 2, first_node=5)
    with pytest.raises(StartError, match=r"beyond 1 have replicas \(t-1, t-2, t-3 and 1 more\)"):
        check_fewer(directories, 1, first_node=5)


def test_fewer_workers_are_refused_when_nobody_knows_who_has_replicas(tmp_path):
    format_folders(tmp_path, "worker1", "worker2")
    with pytest.raises(StartError, match="the metadata of the first is missing"):
        check_fewer(WorkerDirectories([str(tmp_path)]), 1, first_node=1)


def test_one_broker_is_not_started_where_workers_have_folders(tmp_path):
    config = Config({"log.dirs": str(tmp_path), "node.id": "1"})
    check_alone(config)
    format_folders(tmp_path, "worker1", "worker2")
    with pytest.raises(StartError, match="of 2 workers: start it with --workers 2"):
        check_alone(config)


def test_one_broker_is_started_again_where_it_was_once_the_workers_replicas_have_gone(
    tmp_path, replicas
):
    config = Config({"log.dirs": str(tmp_path), "node.id": "1"})
    format_folders(tmp_path, ".", "worker2")
    replicas += [(1, 2)]
    with pytest.raises(StartError, match="beyond 1 have replicas"):
        check_alone(config)
    replicas[0] = (1,)
    check_alone(config)


@pytest.mark.parametrize(
    ("folders", "opened"),
    [
        (("worker1", "worker2"), "worker1"),
        (("worker1", "worker2"), "worker2"),
        ((".", "worker2"), "worker2"),
    ],
)
def test_a_workers_folder_is_not_opened_as_a_single_brokers(tmp_path, folders, opened):
    format_folders(tmp_path, *folders)
    config = {"log.dirs": str(tmp_path / opened), "node.id": "1"}
    with pytest.raises(StartError) as refused:
        check_alone(Config(config))
    assert refused.value.what == f"{tmp_path / opened} is one of the folders of 2 workers"
    assert refused.value.mend == (f"start all of them: serve --workers 2, with log.dirs={tmp_path}")
    # A directory of a cluster with other nodes may be opened by a joining node.
    joins = {"process.roles": "broker", "controller.quorum.bootstrap.servers": "127.0.0.1:9093"}
    check_alone(Config({**config, "node.id": "2", **joins}))
    listeners = "PLAINTEXT://:9092,CONTROLLER://:9093"
    named = {"listeners": listeners, "controller.listener.names": "CONTROLLER"}
    check_alone(Config({**config, **named, "process.roles": "broker,controller"}))


def test_workers_are_not_started_in_the_folder_of_one_of_others(tmp_path):
    format_folders(tmp_path, "worker1", "worker2")
    config = Config({"log.dirs": str(tmp_path / "worker1"), "node.id": "1"})
    asked = Asked(2, {}, None, None, None, ())
    with pytest.raises(StartError, match="worker1 is one of the folders of 2 workers"):
        run(config, config, asked)


def test_folders_of_these_names_may_be_anybodys(tmp_path):
    format_folders(tmp_path, "worker1")
    check_alone(Config({"log.dirs": str(tmp_path / "worker1"), "node.id": "1"}))
    format_folders(tmp_path, "worker2")
    (tmp_path / "worker2" / "meta.properties").write_text("version=1\ncluster.id=another\n")
    check_alone(Config({"log.dirs": str(tmp_path / "worker1"), "node.id": "1"}))
    check_alone(Config({"log.dirs": str(tmp_path / "worker3"), "node.id": "3"}))
