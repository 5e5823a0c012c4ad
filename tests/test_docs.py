"""Run every fenced block marked `sh` in the documentation, in order, page by page.

Each page's blocks run in a fresh copy of the project, each block in its own bash that stops at the
first failing command. A word after `sh` selects the mode:

    ```sh            run to the end and expect success
    ```sh server     start, wait for the line "wirebroker ready on …", keep running until the page
                     ends, then stop it with SIGINT and expect a clean end
    ```sh long       as the first, but only with --long
    ```sh nightly    as the first, but only with --nightly
    ```sh engine     as the first, but only if WIREBROKER_IMAGE names an image (make test-image),
                     and at the ports as written

Ports 9092, 9094, 9095 and 9404 are replaced by free ones; the command line's verbs connect to the
first. Where a block runs the tests (`make test`), which include this one, pytest only collects.
"""

from __future__ import annotations

import functools
import os
import re
import selectors
import shlex
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.harness.project_files import ROOT, built_copy_of_the_project, project_files
from tests.support.tools.ports import free_port
from wirebroker.cli.docs import verbs_as_markdown
from wirebroker.cli.main import cli
from wirebroker.config.docs import as_markdown

PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
EVERY_PAGE = [
    *PAGES,
    *(ROOT / layer / "README.md" for layer in ("codecs", "storage", "coordinator")),
]
BLOCK_S = 300  # collecting all tests takes 8 s, but over 120 s on a busy machine
LONG_BLOCK_S = 600  # installing from a cold cache takes a minute
READY_S = 60
STOP_S = 30
READY = "wirebroker ready on "


class Block(NamedTuple):
    words: list[str]
    text: str
    line: int


def blocks_of(page: Path) -> list[Block]:
    blocks: list[Block] = []
    lines = page.read_text(encoding="utf-8").splitlines()
    inside: Block | None = None
    for number, line in enumerate(lines, 1):
        if line.startswith("```") and inside is None:
            inside = Block(line[3:].split(), "", number)
        elif line.startswith("```") and inside is not None:
            blocks.append(inside)
            inside = None
        elif inside is not None:
            inside = inside._replace(text=inside.text + line + "\n")
    assert inside is None, f"{page.name}: a fenced block isn't closed"
    return [block for block in blocks if block.words[:1] == ["sh"]]


def workshop(folder: Path) -> Path:
    copy = built_copy_of_the_project(folder / "wirebroker")
    venv = copy / ".venv"
    venv.mkdir()
    for entry in Path(sys.prefix).iterdir():
        if not entry.name.endswith("-installed") and entry.name != ".made":
            (venv / entry.name).symlink_to(entry)
    # make's stamps: they prevent make from installing anything into the current .venv.
    parts = ("run", "delivery", "test", "lint", "release")
    for stamp in ("made", *(f"{part}-installed" for part in parts)):
        (venv / f".{stamp}").touch()
    return copy


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout


def environment_of(port: int) -> dict[str, str]:
    # Variables of the make that runs these tests, `make test ARGS=…`, must not reach `make run`.
    excluded_prefixes = ("PYTEST_", "MAKE", "MFLAGS", "ARGS", "CORES", "WORKERS")
    outer = {
        name: value for name, value in os.environ.items() if not name.startswith(excluded_prefixes)
    }
    return outer | {
        "KAFKA_LISTENERS": f"PLAINTEXT://127.0.0.1:{port}",
        "WIREBROKER_BOOTSTRAP": f"127.0.0.1:{port}",
        # The run that contains this test has collected the others.
        "PYTEST_ADDOPTS": "--collect-only -q -p no:cacheprovider --assert=plain"
        " --ignore=tests/unit --ignore=compat_tests --ignore=spark_it",
        "WIREBROKER_COMPILE": "0",  # takes minutes and is tested elsewhere
    }


class Shell:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port = free_port()
        self._http_port = free_port()
        self._second_port = free_port()
        self._third_port = free_port()
        self._environment = environment_of(self._port)
        self._servers: list[subprocess.Popen[bytes]] = []

    def run(self, block: Block) -> None:
        process = self._start(block, subprocess.STDOUT)
        limit_s = LONG_BLOCK_S if {"long", "nightly"} & {*block.words} else BLOCK_S
        timer = threading.Timer(limit_s, os.killpg, (process.pid, signal.SIGKILL))
        timer.start()
        try:
            output, _ = process.communicate()
        finally:
            timer.cancel()
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
        text = output.decode(errors="replace")[-4000:]
        assert process.returncode == 0, f"line {block.line} failed:\n{block.text}\n{text}"

    def serve(self, block: Block) -> None:
        process = self._start(block, None)
        self._servers.append(process)
        assert process.stdout is not None
        output = b""
        deadline = time.monotonic() + READY_S
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while READY.encode() not in output:
                assert selector.select(deadline - time.monotonic()), f"not ready: {output.decode()}"
                piece = os.read(process.stdout.fileno(), 4096)
                assert piece, f"line {block.line} ended: {output.decode()}"
                output += piece

    def stop_servers(self) -> None:
        for process in self._servers:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGINT)
            try:
                process.communicate(timeout=STOP_S)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
                raise
            # make exits with the signal.
            assert process.returncode in (0, -signal.SIGINT, 128 + signal.SIGINT)

    def _start(self, block: Block, errors: int | None) -> subprocess.Popen[bytes]:
        text, environment = block.text, dict(os.environ)
        if "engine" not in block.words:
            text = text.replace("9092", str(self._port)).replace("9404", str(self._http_port))
            text = text.replace("9094", str(self._second_port))
            text = text.replace("9095", str(self._third_port))
            environment = self._environment
        return subprocess.Popen(
            ["bash", "-euo", "pipefail", "-c", text],
            cwd=self._folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,  # so that the block's child processes are stopped too
        )


@pytest.mark.timeout(1200)  # each block has its own limit
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_commands_of_a_page_succeed(page, tmp_path, pytestconfig):
    blocks = blocks_of(page)
    for word in ("long", "nightly"):
        if not pytestconfig.getoption(word):
            blocks = [block for block in blocks if word not in block.words]
    if not os.environ.get("WIREBROKER_IMAGE"):
        blocks = [block for block in blocks if "engine" not in block.words]
    if not blocks:
        return
    folder = workshop(tmp_path)
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    shell = Shell(folder)
    try:
        for block in blocks:
            (shell.serve if "server" in block.words else shell.run)(block)
    finally:
        shell.stop_servers()
    untracked = git(folder, "ls-files", "--others", "--exclude-standard", "--directory")
    assert not untracked, "add the files that a page's commands leave to .gitignore"


def test_the_hints_of_make_run_name_an_address_to_connect_to(tmp_path):
    """A broker bound to every interface needs another address in the hints."""
    command = ["make", "run", f"ARGS=--host 0.0.0.0 --port 0 --data-dir {tmp_path / 'data'}"]
    process = subprocess.Popen(
        command,
        cwd=workshop(tmp_path),
        env=environment_of(0),
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # Under nohup, child processes would inherit that SIGHUP is ignored.
        preexec_fn=functools.partial(signal.signal, signal.SIGHUP, signal.SIG_DFL),  # noqa: PLW1509
    )
    assert process.stdout is not None
    try:
        lines = list(iter(process.stdout.readline, "try in another terminal:\n"))
        (ready,) = [line for line in lines if line.startswith(READY)]
        assert lines[-1].startswith("  data: "), "hints come when all is said"
        port = ready.split()[3].rpartition(":")[2]
        hints = [process.stdout.readline() for _ in range(3)]
        assert all(f" -b 127.0.0.1:{port} " in hint for hint in hints), hints
    finally:
        os.killpg(process.pid, signal.SIGHUP)
        process.communicate(timeout=STOP_S)
    assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()


def test_readme_opens_with_one_sentence_and_two_commands():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    first, second = (block.text.strip() for block in blocks_of(ROOT / "README.md")[:2])
    assert (first, second) == ("make run", "make test")
    opening = text[: text.index("```")].strip().split("\n\n")
    assert opening[0] == "# wirebroker"
    assert len(re.findall(r"[.!?](?:\s|$)", opening[1])) == 1


def test_the_config_reference_is_made_from_the_table():
    written = (ROOT / "docs" / "configs.md").read_text(encoding="utf-8")
    assert written == as_markdown(), "run make docs to update docs/configs.md"


def test_the_verb_reference_is_made_from_the_table():
    written = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert written == verbs_as_markdown(cli), "run make docs to update docs/cli.md"


def test_every_documented_make_target_exists():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    for page in PAGES:
        named = re.findall(r"(?:`|^)make ([a-z-]+)", page.read_text("utf-8"), re.MULTILINE)
        assert set(named) <= targets, page


def test_documented_test_commands_select_tests():
    """The examples are only collected, except the one of a single file, which takes seconds.

    Of compat_tests one folder shows as much as all.
    """
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    examples = re.findall(r'`make (test|compat) ARGS="([^"]+)"`', text)
    assert {target for target, _ in examples} == {"test", "compat"}
    for target, arguments in examples:
        folder = [] if target == "test" else ["compat_tests/admin"]
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *folder]
        is_one = ".py" in arguments
        command += [*shlex.split(arguments), "-q", *([] if is_one else ["--collect-only"])]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{arguments}: {done.stdout[-500:]}{done.stderr[-500:]}"
    assert sum(".py" in arguments for _, arguments in examples) == 1


def test_no_page_installs_a_release_before_there_is_one():
    """configs.md is generated from the table; upgrading.md says that there is no release yet."""
    pages = [*PAGES, ROOT / "examples" / "README.md", ROOT / "spark_it" / "README.md"]
    names = [
        page.name
        for page in pages
        if re.search(r"pip install '?wirebroker\b", page.read_text(encoding="utf-8"))
    ]
    assert names == ["configs.md", "upgrading.md"]


@pytest.mark.parametrize("page", EVERY_PAGE, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_to_existing_files(page):
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    lost = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert not lost


def test_design_page_names_every_folder_and_only_existing_paths():
    text = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:[\w.-]+/)+[\w.-]*)`", text))
    lost = [name for name in named if not (ROOT / name).exists()]
    assert not lost
    layers = ("codecs", "storage", "coordinator", "wirebroker")
    folders = {path.parent for layer in layers for path in (ROOT / layer).rglob("*.py")}
    rooms = {f"{folder.relative_to(ROOT).as_posix()}/" for folder in folders}
    assert {room for room in rooms if not (ROOT / room).is_symlink()} <= named


def test_files_that_workflows_and_deployments_name_exist():
    inside = "|".join(re.escape(path.name) for path in ROOT.iterdir() if path.is_dir())
    named = re.compile(rf"(?<![\w./-])(?:\{{project\}}/)?((?:{inside})/[\w./-]*\w)")
    files = [
        path for path in project_files() if path.relative_to(ROOT).parts[0] in {".github", "deploy"}
    ]
    missing = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in files
        for name in named.findall(path.read_text())
        if not (ROOT / name).exists()
    }
    assert files
    assert not missing


def test_no_file_refers_to_pages_outside_the_project():
    outside = re.compile(r"\b(?:DESIGN|STYLE|KRAFT|FEATURES|PERFORMANCE)(?:\.md\b|:| \"| section)")
    wrong = [
        f"{path.relative_to(ROOT)}: {match.group()}"
        for path in project_files()
        if path.suffix in {".py", ".md", ".c", ".h", ".txt"} and not path.is_symlink()
        for match in outside.finditer(path.read_text(encoding="utf-8"))
    ]
    assert not wrong


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_decisions_are_short(page):
    if page.parent.name == "decisions":
        assert len(page.read_text(encoding="utf-8").splitlines()) < 60
