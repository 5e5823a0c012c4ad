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
    replica_lists: list[tuple[int, ...]] = []

    def image_of(directories, clock):
        del directories, clock
        partitions = {
            index: SimpleNamespace(replicas=broker_ids)
            for index, broker_ids in enumerate(replica_lists)
        }
        return SimpleNamespace(topics={"t": SimpleNamespace(name="t", partitions=partitions)})

    monkeypatch.setattr(metadata_view, "image_of", image_of)
    return replica_lists


def test_a_new_directory_has_a_folder_for_each_worker(tmp_path):
    directories = WorkerDirectories([str(tmp_path)])
    assert directories.of(1) == (str(tmp_path / "worker1"),)
    assert directories.of(2) == (str(tmp_path / "worker2"),)
    assert directories.known == 0
    assert not directories.has_folders


def test_data_directory_of_a_single_broker_belongs_to_worker_1(tmp_path):
    format_folders(tmp_path, ".", "worker3")
    directories = WorkerDirectories([str(tmp_path)])
    assert directories.of(1) == (str(tmp_path),)
    assert directories.of(2) == (str(tmp_path / "worker2"),)
    assert directories.known == 3


def test_fewer_workers_are_refused_while_the_others_have_replicas(tmp_path, replicas):
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


def test_fewer_workers_are_refused_without_metadata(tmp_path):
    format_folders(tmp_path, "worker1", "worker2")
    with pytest.raises(StartError, match="the first one's metadata is missing"):
        check_fewer(WorkerDirectories([str(tmp_path)]), 1, first_node=1)


def test_single_broker_is_refused_where_worker_folders_exist(tmp_path):
    config = Config({"log.dirs": str(tmp_path), "node.id": "1"})
    check_alone(config)
    format_folders(tmp_path, "worker1", "worker2")
    with pytest.raises(StartError, match="of 2 workers: start it with --workers 2"):
        check_alone(config)


def test_single_broker_starts_again_after_worker_replicas_moved_away(tmp_path, replicas):
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
def test_worker_folder_is_refused_as_directory_of_a_single_broker(tmp_path, folders, opened):
    format_folders(tmp_path, *folders)
    config = {"log.dirs": str(tmp_path / opened), "node.id": "1"}
    with pytest.raises(StartError) as refused:
        check_alone(Config(config))
    assert refused.value.what == f"{tmp_path / opened} belongs to a broker with 2 workers"
    assert refused.value.mend == (f"start all of them: serve --workers 2, with log.dirs={tmp_path}")
    # A directory of a cluster with other nodes may be opened by a joining node.
    joins = {"process.roles": "broker", "controller.quorum.bootstrap.servers": "127.0.0.1:9093"}
    check_alone(Config({**config, "node.id": "2", **joins}))
    listeners = "PLAINTEXT://:9092,CONTROLLER://:9093"
    named = {"listeners": listeners, "controller.listener.names": "CONTROLLER"}
    check_alone(Config({**config, **named, "process.roles": "broker,controller"}))


def test_workers_are_refused_in_the_folder_of_a_worker(tmp_path):
    format_folders(tmp_path, "worker1", "worker2")
    config = Config({"log.dirs": str(tmp_path / "worker1"), "node.id": "1"})
    worker_arguments = Asked(2, {}, None, None, None, ())
    with pytest.raises(StartError, match="worker1 belongs to a broker with 2 workers"):
        run(config, config, worker_arguments)


def test_folder_named_like_a_worker_of_another_cluster_is_accepted(tmp_path):
    format_folders(tmp_path, "worker1")
    check_alone(Config({"log.dirs": str(tmp_path / "worker1"), "node.id": "1"}))
    format_folders(tmp_path, "worker2")
    (tmp_path / "worker2" / "meta.properties").write_text("version=1\ncluster.id=another\n")
    check_alone(Config({"log.dirs": str(tmp_path / "worker1"), "node.id": "1"}))
    check_alone(Config({"log.dirs": str(tmp_path / "worker3"), "node.id": "3"}))
