"""`make release`: releases the committed version; a dry run unless --upload is given.

    python -m compiling.release.publish [--upload] [--image NAME] [--date DATE] [--remote origin]

A release is built in a temporary git worktree, so a dry run changes only `dist`:

1. A commit replaces "(unreleased)" in CHANGELOG.md by the release date.
2. `python -m compiling.release --final` builds and tests the files; twine checks their metadata.
3. With --image, `make image` builds a container image of them, NAME:VERSION.

--upload then commits to the branch, creates the tag vVERSION, uploads the files with twine, and
pushes the image and last the branch and the tag. Credentials are those of twine, git and the
container engine. If a step fails, fix the cause and run the command again: it uses a tag at HEAD,
and `dist` if its files match SHA256SUMS, because another build has other bytes.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from compiling.release.changelog import check_changelog, dated, version_of
from compiling.release.checksums import SUMS, sums_of
from compiling.tree import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

TOKEN = "TWINE_PASSWORD"  # noqa: S105 - the name of a variable
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


class ReleaseError(Exception):
    """The release cannot be made; the message names the cause and the fix."""


class Options(argparse.Namespace):
    """The options of the command line."""

    upload: bool
    date: str
    image: str | None
    remote: str
    skip_existing: bool


def release(root: Path, options: Options) -> None:
    """Build and check the release of the repository at `root`; upload it if the options say so.

    Raises:
        ReleaseError: The repository or the environment is not ready.
        ValueError: CHANGELOG.md does not describe this version.
        subprocess.CalledProcessError: A command failed; later ones did not run.
    """
    version = version_of(root)
    is_tagged = _check_repository(root, f"v{version}")
    if options.upload:
        _check_upload(root, options.remote)
    image = f"{options.image}:{version}" if options.image else None
    with _worktree(root) as work:
        commit = _commit_date(work, version, options.date)
        if is_tagged and commit != git(root, "rev-parse", "HEAD"):
            raise ReleaseError(f"tag v{version} has no date in CHANGELOG.md: delete the tag")
        is_built = is_tagged and _is_whole(root / "dist", version)
        if is_built:
            shutil.copytree(root / "dist", work / "dist")
        else:
            _build(work)
        files = _check(work, image)
        if not is_built:
            _move(work / "dist", root / "dist")
        files = [root / "dist" / path.name for path in files]
        if not options.upload:
            _say(f"dry run: {version} is ready; nothing was committed, tagged or uploaded")
            return
        if not is_tagged:
            git(root, "merge", "--quiet", "--ff-only", commit)
            git(root, "tag", "--annotate", "--message", f"wirebroker {version}", f"v{version}")
    _upload(files, image, skip_existing=options.skip_existing)
    git(root, "push", "--quiet", "--atomic", options.remote, "HEAD", f"refs/tags/v{version}")
    _say(f"{version} is released")


def git(folder: Path, *arguments: str) -> str:
    """Return git's output."""
    command = ["git", *arguments]
    result = subprocess.run(
        command, cwd=folder, env=_without_token(), stdout=subprocess.PIPE, text=True, check=True
    )
    return result.stdout.strip()


def _check_repository(root: Path, tag: str) -> bool:
    """Return whether HEAD already has this version's tag."""
    changed = git(root, "status", "--porcelain")
    if changed:
        raise ReleaseError(f"uncommitted changes: commit or stash them\n{changed}")
    if not git(root, "tag", "--list", tag):
        return False
    if git(root, "rev-parse", f"{tag}^{{commit}}") != git(root, "rev-parse", "HEAD"):
        raise ReleaseError(
            f"tag {tag} exists at another commit: set the next version in wirebroker/__init__.py"
            " and begin its section of CHANGELOG.md, or delete the tag if nothing was uploaded"
        )
    return True


def _check_upload(root: Path, remote: str) -> None:
    if not os.environ.get(TOKEN):
        raise ReleaseError(f"--upload needs an API token of the package index in {TOKEN}")
    if remote not in git(root, "remote").split():
        raise ReleaseError(f"no git remote {remote}: name one with --remote")
    if not git(root, "branch", "--show-current"):
        raise ReleaseError("HEAD is detached: check out the branch to release from")


@contextlib.contextmanager
def _worktree(root: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        work = Path(name) / "wirebroker"
        git(root, "worktree", "add", "--quiet", "--detach", str(work))
        try:
            yield work
        finally:
            git(root, "worktree", "remove", "--force", str(work))


def _commit_date(work: Path, version: str, date: str) -> str:
    changelog = work / "CHANGELOG.md"
    text = changelog.read_text("utf-8")
    check_changelog(text, version, final=False)
    changelog.write_text(dated(text, version, date), "utf-8")
    if git(work, "status", "--porcelain"):
        git(work, "commit", "--quiet", "--all", "--message", f"Release {version}")
    return git(work, "rev-parse", "HEAD")


def _build(work: Path) -> None:
    command = [sys.executable, "-m", "compiling.release", "--final", "--output"]
    _run([*command, str(work / "dist")], work)


def _is_whole(dist: Path, version: str) -> bool:
    """Return whether `dist` holds a version's files and they match SHA256SUMS."""
    if not (dist / SUMS).exists():
        return False
    text = sums_of(dist)
    names = [line.split()[1] for line in text.splitlines()]
    is_version = all(name.startswith(f"wirebroker-{version}") for name in names)
    return is_version and bool(names) and (dist / SUMS).read_bytes() == text.encode()


def _check(work: Path, image: str | None) -> list[Path]:
    dist = work / "dist"
    files = sorted([*dist.glob("*.tar.gz"), *dist.glob("*.whl")])
    _run([sys.executable, "-m", "twine", "check", "--strict", *map(str, files)], work)
    if image:
        _run(["make", "image", f"IMAGE={image}"], work)
    return files


def _move(source: Path, target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    shutil.move(source, target)


def _upload(files: list[Path], image: str | None, *, skip_existing: bool) -> None:
    command = [sys.executable, "-m", "twine", "upload", "--non-interactive"]
    command += ["--skip-existing"] * skip_existing
    _run([*command, *map(str, files)], None, {"TWINE_USERNAME": "__token__"} | os.environ)
    if image:
        _run([os.environ.get("ENGINE", "docker"), "push", image], None)


def _run(
    command: list[str], folder: Path | None, environment: Mapping[str, str] | None = None
) -> None:
    subprocess.run(command, cwd=folder, env=environment or _without_token(), check=True)


def _without_token() -> dict[str, str]:
    """Return the environment of commands except the upload: builds run third-party code."""
    return {name: text for name, text in os.environ.items() if name != TOKEN}


def _say(line: str) -> None:
    sys.stderr.write(f"make release: {line}\n")


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    """Run the command line; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="compiling.release.publish",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--upload",
        action="store_true",
        help=f"Commit, tag, upload and push. The token is read from {TOKEN}.",
    )
    today = time.strftime("%Y-%m-%d", time.gmtime())
    parser.add_argument("--date", default=today, help="Date of the release (default: today, UTC).")
    parser.add_argument(
        "--image", metavar="NAME", help="Build a container image; with --upload, push it."
    )
    parser.add_argument("--remote", default="origin", help="Remote to push to (default: origin).")
    parser.add_argument(
        "--skip-existing",
        action="store_true",
        help="Skip files that the index already has.",
    )
    options = parser.parse_args(arguments, Options())
    if not _DATE.fullmatch(options.date):
        parser.error(f"--date must be like 2026-01-31, not {options.date}")
    try:
        release(root, options)
    except (ReleaseError, ValueError) as error:
        _say(str(error))
        return 1
    except subprocess.CalledProcessError as error:
        _say(f"{' '.join(map(str, error.cmd))} failed with status {error.returncode}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
