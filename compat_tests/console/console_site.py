"""The console as a process, with a browser's page on it."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from compat_tests.support.tools_browser import axe_script
from tests.support.tools.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from playwright.sync_api import Page

START_TIMEOUT_S = 60.0
ROOT = Path(__file__).resolve().parents[2]
# Test output; `build` is not committed.
SCREENSHOTS = ROOT / "build" / "screenshots"
# WCAG 2.1 A and AA (axe's tags).
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]
# The placeholders that are wider than their visible fields.
_CUT_PLACEHOLDERS = """() => {
  const canvas = document.createElement("canvas").getContext("2d");
  const isCut = (field) => {
    const style = getComputedStyle(field);
    canvas.font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
    const room = field.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
    return field.checkVisibility() && canvas.measureText(field.placeholder).width > room;
  };
  const fields = [...document.querySelectorAll("input[placeholder]")];
  return fields.filter(isCut).map((field) => field.placeholder);
}"""


class RunningConsole(NamedTuple):
    """A console's address and its process."""

    address: str
    process_id: int


@contextlib.contextmanager
def running_console(folder: Path, *arguments: str, scheme: str = "http") -> Iterator[str]:
    """Run a console with these arguments, and return its address; see `console_process`."""
    with console_process(folder, *arguments, scheme=scheme) as console:
        yield console.address


@contextlib.contextmanager
def console_process(
    folder: Path, *arguments: str, scheme: str = "http"
) -> Iterator[RunningConsole]:
    """Run a console with these arguments.

    Its audit log is `audit.log` in the folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    port_file = folder / "console.port"
    log = folder / "console.log"
    command = [sys.executable, "-m", "wirebroker", "console", "--port", "0"]
    command += ["--audit-log", str(folder / "audit.log")]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, "--port-file", str(port_file), *arguments],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    try:
        eventually(
            lambda: port_file.exists() or process.poll() is not None, timeout_s=START_TIMEOUT_S
        )
        assert process.poll() is None, log.read_text()
        address = f"{scheme}://127.0.0.1:{port_file.read_text().strip()}"
        yield RunningConsole(address, process.pid)
    finally:
        process.terminate()
        status = process.wait(START_TIMEOUT_S)
    assert status == 0, log.read_text()


class Screen:
    """A page in a browser that fails a test if it logs errors."""

    def __init__(self, page: Page, address: str, screenshots: Path) -> None:
        self.page = page
        self.address = address
        self.errors: list[str] = []
        self._screenshots = screenshots
        page.on("console", self._note)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("dialog", lambda dialog: self.errors.append(f"dialog: {dialog.message}"))
        page.on("request", self._check_host)

    def _note(self, message: Any) -> None:
        if message.type in {"error", "warning"}:
            self.errors.append(message.text)

    def _check_host(self, request: Any) -> None:
        if not request.url.startswith(self.address):
            self.errors.append(f"a request to {request.url}")

    def open(self, path: str) -> None:
        self.page.goto(self.address + path)

    def heading(self) -> str:
        return self.page.locator("h1").inner_text()

    def shoot(self, name: str, *, is_whole: bool = False) -> None:
        """Write a screenshot to build/screenshots; a cut placeholder on it is an error."""
        cut = self.page.evaluate(_CUT_PLACEHOLDERS)
        self.errors += [f"{name}: the placeholder {text!r} is cut" for text in cut]
        self._screenshots.mkdir(parents=True, exist_ok=True)
        if is_whole:
            # Otherwise the sidebar, which is fixed to the window, is in the middle of the picture.
            self.page.evaluate("window.scrollTo(0, 0)")
        self.page.screenshot(path=str(self._screenshots / f"{name}.png"), full_page=is_whole)

    def accessibility_faults(self, rules: Sequence[str] = ()) -> list[str]:
        """Return what axe finds, a line for each element; `rules` limits its rules."""
        # Added like a debugger would: the policy allows no other scripts.
        self.page.evaluate(axe_script().read_text(encoding="utf-8"))
        chosen = {"type": "rule" if rules else "tag", "values": list(rules) or RULES}
        options: Mapping[str, Any] = {"runOnly": chosen, "resultTypes": ["violations"]}
        result = self.page.evaluate("options => axe.run(document, options)", options)
        return [
            f"{violation['id']}: {node['target']}: {node['failureSummary']}"
            for violation in result["violations"]
            for node in violation["nodes"]
        ]

    def overflow(self) -> int:
        """Return by how many pixels the page is wider than the window."""
        width: int = self.page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        return width
