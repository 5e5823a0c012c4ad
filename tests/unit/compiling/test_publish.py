"""`make release` in small projects, as a dry run and as an upload."""

from __future__ import annotations

import http.server
import os
import shutil
import subprocess
import threading
import zipfile
from typing import TYPE_CHECKING, ClassVar

import pytest

from compiling.release.publish import TOKEN, main
from tests.test_docs import workshop

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DATE = "2027-01-31"
CHANGELOG = "# Changes\n\n## 0.2.0 (unreleased)\n\n- New.\n"
# Replaces the build: a wheel and an sdist that twine accepts, different ones each time.
BUILD = """\
import hashlib, io, os, pathlib, sys, tarfile, zipfile
assert sys.argv[1:3] == ["--final", "--output"]
assert "TWINE_PASSWORD" not in os.environ
dist = pathlib.Path(sys.argv[3])
dist.mkdir()
metadata = "Metadata-Version: 2.1\\nName: wirebroker\\nVersion: 0.2.0\\n"
metadata += "Description-Content-Type: text/markdown\\n\\nA broker.\\n"
with zipfile.ZipFile(dist / "wirebroker-0.2.0-py3-none-any.whl", "w") as wheel:
    wheel.writestr("wirebroker-0.2.0.dist-info/METADATA", metadata)
    wheel.writestr("wirebroker-0.2.0.dist-info/WHEEL", "Wheel-Version: 1.0\\n")
    wheel.writestr("wirebroker/build.txt", os.urandom(8).hex())
with tarfile.open(dist / "wirebroker-0.2.0.tar.gz", "w:gz") as sdist:
    for name in ("PKG-INFO", "README.md"):
        info = tarfile.TarInfo(f"wirebroker-0.2.0/{name}")
        info.size = len(metadata)
        sdist.addfile(info, io.BytesIO(metadata.encode()))
sums = ""
for path in sorted(dist.iterdir()):
    sums += f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\\n"
(dist / "SHA256SUMS").write_text(sums)
"""
NAMES = ["wirebroker-0.2.0-py3-none-any.whl", "wirebroker-0.2.0.tar.gz"]


def git(folder: Path, *arguments: str) -> str:
    command = ["git", *arguments]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=True
    ).stdout.strip()


def commit_all(folder: Path) -> None:
    git(folder, "config", "user.name", "A maintainer")
    git(folder, "config", "user.email", "maintainer@example.org")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "Begin")


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Make a small project with version 0.2.0, and a bare repository as its remote."""
    root = tmp_path / "project"
    for name, text in {
        "wirebroker/__init__.py": '__version__ = "0.2.0"\n',
        "compiling/release/__main__.py": BUILD,
        "CHANGELOG.md": CHANGELOG,
        "Makefile": "image:\n\t@test -z $$TWINE_PASSWORD\n\t@echo build $(IMAGE) >> $(LOG)\n",
        ".gitignore": "dist/\n",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, "utf-8")
    git(tmp_path, "init", "--quiet", "--initial-branch=main", str(root))
    commit_all(root)
    git(tmp_path, "init", "--quiet", "--bare", "--initial-branch=main", "origin.git")
    git(root, "remote", "add", "origin", str(tmp_path / "origin.git"))
    return root


class Index(http.server.BaseHTTPRequestHandler):
    """A package index that refuses files while `status` is an error."""

    status = 200
    uploads: ClassVar[list[tuple[str, str]]] = []

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        (name,) = (name for name in NAMES if f'filename="{name}"'.encode() in body)
        self.uploads.append((name, self.headers["Authorization"]))
        self.send_response(self.status)
        self.end_headers()

    def log_message(self, *_arguments):
        """Print nothing."""


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Index]]:
    kind = type("OneIndex", (Index,), {"uploads": []})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), kind) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        monkeypatch.setenv("TWINE_REPOSITORY_URL", f"http://127.0.0.1:{server.server_port}/")
        for name in (TOKEN, "TWINE_USERNAME", "HTTP_PROXY", "http_proxy"):
            monkeypatch.delenv(name, raising=False)
        yield kind
        server.shutdown()
        thread.join()


def state_of(root: Path) -> tuple[str, ...]:
    return (
        *(
            git(root, *arguments)
            for arguments in (("rev-parse", "HEAD"), ("tag",), ("status", "-s"))
        ),
        git(root, "worktree", "list"),
        git(root, "ls-remote", "origin"),
    )


@pytest.mark.nightly
def test_a_dry_run_changes_nothing_but_dist(project, index, monkeypatch, capfd):
    monkeypatch.setenv(TOKEN, "pypi-token")  # a token alone uploads nothing
    before = state_of(project)
    assert main(["--date", DATE], project) == 0
    assert state_of(project) == before
    assert sorted(path.name for path in (project / "dist").iterdir()) == ["SHA256SUMS", *NAMES]
    assert "nothing was committed, tagged or uploaded" in capfd.readouterr().err
    assert not index.uploads


@pytest.mark.nightly
def test_an_upload_that_failed_is_repeated_from_the_same_tag(
    project, index, monkeypatch, tmp_path, capfd
):
    log = tmp_path / "engine.txt"
    engine = tmp_path / "engine"
    engine.write_text(f'#!/bin/sh\ntest -z "$TWINE_PASSWORD" && echo "$@" >> {log}\n')
    engine.chmod(0o755)
    monkeypatch.setenv("ENGINE", str(engine))
    monkeypatch.setenv("LOG", str(log))
    monkeypatch.setenv(TOKEN, "pypi-token")
    command = ["--upload", "--image", "example/broker", "--date", DATE]
    index.status = 403
    assert main(command, project) == 1
    assert "twine upload" in capfd.readouterr().err
    assert log.read_text() == "build example/broker:0.2.0\n"
    assert not git(project, "ls-remote", "origin")
    released = git(project, "rev-parse", "v0.2.0^{commit}")
    assert released == git(project, "rev-parse", "HEAD")
    assert f"## 0.2.0 ({DATE})\n" in (project / "CHANGELOG.md").read_text("utf-8")
    built = contents(project / "dist")
    index.status = 200
    index.uploads.clear()
    assert main(command, project) == 0
    assert contents(project / "dist") == built
    assert sorted(name for name, _ in index.uploads) == NAMES
    assert {credentials for _, credentials in index.uploads} == {
        "Basic X190b2tlbl9fOnB5cGktdG9rZW4="  # __token__:pypi-token
    }
    assert log.read_text().splitlines()[1:] == [
        "build example/broker:0.2.0",
        "push example/broker:0.2.0",
    ]
    assert git(project, "log", "--format=%s") == "Release 0.2.0\nBegin"
    pushed = git(project, "ls-remote", "origin", "main", "v0.2.0^{}").splitlines()
    assert {line.split()[0] for line in pushed} == {released}
    assert len(pushed) == 2


def damaged(dist: Path) -> None:
    (dist / NAMES[0]).write_bytes(b"damaged")


def incomplete(dist: Path) -> None:
    (dist / NAMES[0]).unlink()


def with_another_file(dist: Path) -> None:
    (dist / "wirebroker-0.2.0-cp311-cp311-linux_x86_64.whl").write_bytes(b"later")


def with_damaged_checksums(dist: Path) -> None:
    (dist / NAMES[0]).write_bytes(b"damaged")
    (dist / "SHA256SUMS").write_bytes(b"\xff")


def of_another_version(dist: Path) -> None:
    for name in NAMES:
        (dist / name).unlink()
    (dist / "SHA256SUMS").write_text("")


@pytest.mark.nightly
@pytest.mark.parametrize(
    "change",
    [damaged, incomplete, with_another_file, with_damaged_checksums, of_another_version],
)
def test_files_with_wrong_checksums_are_rebuilt(project, index, monkeypatch, change):
    monkeypatch.setenv(TOKEN, "pypi-token")
    command = ["--upload", "--date", DATE]
    index.status = 403
    assert main(command, project) == 1
    built = contents(project / "dist")
    change(project / "dist")
    index.status = 200
    index.uploads.clear()
    assert main(command, project) == 0
    assert sorted(name for name, _ in index.uploads) == NAMES
    again = contents(project / "dist")
    assert again.keys() == built.keys()
    assert again[NAMES[0]] != built[NAMES[0]]


def nothing(_root: Path) -> None:
    """Leave the repository as it is."""


def uncommitted(root: Path) -> None:
    (root / "CHANGELOG.md").write_text(CHANGELOG + "- More.\n", "utf-8")


def tagged_before(root: Path) -> None:
    git(root, "tag", "v0.2.0")
    git(root, "commit", "--quiet", "--allow-empty", "--message", "Go on")


def another_version(root: Path) -> None:
    (root / "CHANGELOG.md").write_text("# Changes\n\n## 0.1.0 (2026-11-01)\n- Old.\n", "utf-8")
    git(root, "commit", "--quiet", "--all", "--message", "Forget")


@pytest.mark.parametrize(
    ("prepare", "arguments", "token", "complaint"),
    [
        (uncommitted, [], "", "uncommitted changes: commit or stash"),
        (tagged_before, [], "", "tag v0.2.0 exists at another commit"),
        (another_version, [], "", "CHANGELOG.md starts with 0.1.0"),
        (nothing, ["--upload"], "", f"needs an API token of the package index in {TOKEN}"),
        (nothing, ["--upload", "--remote", "upstream"], "token", "no git remote upstream"),
    ],
    ids=["uncommitted", "tagged", "changelog", "no-token", "no-remote"],
)
def test_an_unready_repository_is_refused_before_the_build(
    project, monkeypatch, capfd, *, prepare, arguments, token, complaint
):
    monkeypatch.setenv(TOKEN, token)
    prepare(project)
    before = state_of(project)
    assert main(arguments, project) == 1
    assert complaint in capfd.readouterr().err
    assert state_of(project) == before
    assert not (project / "dist").exists()


@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_the_documented_command_builds_this_project_and_changes_nothing(tmp_path):
    """Without compiled wheels: `make dist` builds those in a nightly step."""
    copy = workshop(tmp_path)
    git(tmp_path, "init", "--quiet", str(copy))
    commit_all(copy)
    git(copy, "remote", "add", "origin", str(tmp_path))
    before = git(copy, "rev-parse", "HEAD")
    environment = {name: text for name, text in os.environ.items() if not name.startswith("MAKE")}
    environment |= {"CC": "no-compiler", TOKEN: ""}
    make = shutil.which("make")
    assert make
    done = subprocess.run(
        [make, "release"], cwd=copy, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "nothing was committed, tagged or uploaded" in done.stderr
    assert (git(copy, "rev-parse", "HEAD"), git(copy, "tag")) == (before, "")
    assert not git(copy, "status", "--porcelain")
    kinds = {path.suffix for path in (copy / "dist").iterdir()}
    assert kinds == {".gz", ".whl", ".json", ""}
    (wheel,) = (copy / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert "wirebroker/broker/server.py" in archive.namelist()
