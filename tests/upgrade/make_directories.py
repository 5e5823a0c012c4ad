"""Makes archives of tests/upgrade/directories with the commits that fixtures.py names.

    python -m tests.upgrade.make_directories NAME...

To add a fixture, commit the change of the format, name that commit in fixtures.py and make the
archive. A fixture is never made again for a later commit. Ids, times and checksums differ each
time; names, offsets and records do not.
"""

from __future__ import annotations

import argparse
import gzip
import tarfile
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.support.brokers.brokers import AUTHORIZED
from tests.upgrade.content import write
from tests.upgrade.earlier import EitherFirst, EitherJoined, install_earlier
from tests.upgrade.fixtures import FIXTURES, Fixture

if TYPE_CHECKING:
    from collections.abc import Sequence

# Small internal topics.
SETTINGS: Final = {
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
    # The committed offsets are read years later.
    "offsets.retention.minutes": "2147483647",
}
# Of one node with two log directories and ACLs.
ONE_REPLICA: Final = {
    "min.insync.replicas": "1",
    "offsets.topic.replication.factor": "1",
}
THREE_REPLICAS: Final = {
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
}


def single(folder: Path) -> EitherFirst:
    """Return a broker that is alone, with two log directories, which obeys ACLs."""
    directories = f"{folder / 'first'},{folder / 'second'}"
    return EitherFirst(
        folder / "node", {**SETTINGS, **ONE_REPLICA, **AUTHORIZED, "log.dirs": directories}
    )


def trio(folder: Path) -> tuple[EitherFirst, EitherJoined, EitherJoined]:
    """Return three brokers of one cluster, the one with the controller first."""
    settings = {**SETTINGS, **THREE_REPLICAS}
    first = EitherFirst(folder / "1", settings)
    second, third = (
        EitherJoined(folder / str(node_id), first, node_id=node_id, settings=settings)
        for node_id in (2, 3)
    )
    return first, second, third


def pack(folder: Path, archive: Path) -> None:
    """Pack the data of a folder: everything but what the tests themselves put beside it."""
    with (
        archive.open("wb") as raw,
        gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w") as files,
    ):
        for path in sorted(folder.rglob("*")):
            if path.is_file() and path.name not in {"broker.log", "port", ".lock"}:
                info = files.gettarinfo(path, str(path.relative_to(folder)))
                info.uid = info.gid = info.mtime = 0
                info.uname = info.gname = ""
                with path.open("rb") as content:
                    files.addfile(info, content)


def unpack(archive: Path, folder: Path) -> None:
    """Unpack what was packed."""
    with tarfile.open(archive) as files:
        files.extractall(folder, filter="data")


def make(fixture: Fixture, work: Path) -> None:
    """Make the archive of a fixture."""
    installed = install_earlier(work / "earlier", fixture.commit)
    folder = work / "data"
    brokers: Sequence[EitherFirst | EitherJoined]
    brokers = [single(folder)] if fixture.node_count == 1 else trio(folder)
    for broker in brokers:
        broker.installed = installed
        broker.start()
    try:
        write(",".join(broker.bootstrap for broker in brokers), fixture)
    finally:
        for broker in reversed(brokers):
            broker.stop()
    pack(folder, fixture.archive)


def main() -> None:
    """Make the archives that the command line names."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [fixture.name for fixture in FIXTURES]
    parser.add_argument("names", nargs="+", choices=names, metavar="NAME", help=", ".join(names))
    options = parser.parse_args()
    for fixture in FIXTURES:
        if fixture.name in options.names:
            with tempfile.TemporaryDirectory() as work:
                make(fixture, Path(work))


if __name__ == "__main__":
    main()
