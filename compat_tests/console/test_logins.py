"""Users and programs: a login, a confirmed change, the audit log, the HTTP interface."""

from __future__ import annotations

import json
import re
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from compat_tests.console.console_site import SCREENSHOTS, Screen, running_console
from tests.support.harness.project_files import ROOT
from tests.support.tools.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser

    from tests.support.brokers.brokers import Broker

PASSWORD = "correct horse"
_TIMEOUT_MS = 60_000
# The commands of the documentation, with their placeholders.
_COMMANDS = re.compile(r"^(curl .*?[^\\])$", re.DOTALL | re.MULTILINE)


class LoginSite(NamedTuple):
    """A console that requires a login, over TLS."""

    address: str
    folder: Path
    token: str


def wirebroker(*arguments: str, stdin: str = "") -> str:
    return subprocess.run(
        [sys.executable, "-m", "wirebroker", *arguments],
        input=stdin,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        timeout=60,
        check=True,
    ).stdout


@pytest.fixture(scope="module")
def login_site(
    furnished_broker: Broker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LoginSite]:
    """Run a console with an operator, a reader, a token and a certificate."""
    folder = tmp_path_factory.mktemp("logins")
    users, tokens = str(folder / "users"), str(folder / "tokens")
    for name, role in (("olga", "operator"), ("rita", "reader")):
        wirebroker(*("console-user", "set", name, "--role", role, "--users", users), stdin=PASSWORD)
    flags = ("--tokens", tokens, "--role", "operator")
    token = wirebroker("console-token", "create", "orders", *flags).strip()
    wirebroker("certs", str(folder / "certs"))
    with running_console(
        folder,
        *("--cluster", f"dev={furnished_broker.bootstrap}"),
        *("--users", users, "--tokens", tokens),
        *("--tls-cert", str(folder / "certs" / "broker.pem")),
        scheme="https",
    ) as address:
        yield LoginSite(address, folder, token)


@pytest.fixture
def login_screen(browser: Browser, login_site: LoginSite, broker_kind: str) -> Iterator[Screen]:
    context = browser.new_context(
        viewport={"width": 1280, "height": 800}, ignore_https_errors=True, reduced_motion="reduce"
    )
    context.set_default_timeout(_TIMEOUT_MS)
    screen = Screen(context.new_page(), login_site.address, SCREENSHOTS / broker_kind)
    yield screen
    context.close()
    assert screen.errors == []


def audited(site: LoginSite) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (site.folder / "audit.log").read_text().splitlines()]


def check_look(screen: Screen, name: str) -> None:
    """Check accessibility in both themes, and the width of a phone."""
    page = screen.page
    assert screen.accessibility_faults() == []
    screen.shoot(f"{name}-light", is_whole=True)
    page.emulate_media(color_scheme="dark")
    assert screen.accessibility_faults(["color-contrast"]) == []
    screen.shoot(f"{name}-dark", is_whole=True)
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": 360, "height": 740})
    assert screen.overflow() == 0
    screen.shoot(f"{name}-360", is_whole=True)
    page.set_viewport_size({"width": 1280, "height": 800})


def log_in(screen: Screen, name: str, password: str = PASSWORD) -> None:
    page = screen.page
    page.get_by_label("User", exact=True).fill(name)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Log in").click()


def test_a_user_logs_in_and_creates_a_topic(login_screen: Screen, login_site: LoginSite):
    page = login_screen.page
    login_screen.open("/c/dev/topics")
    check_look(login_screen, "login")
    log_in(login_screen, "olga", "wrong")
    page.get_by_text("The name or the password is wrong.").wait_for()
    login_screen.errors.clear()  # Chromium logs the status 403
    log_in(login_screen, "olga")
    page.get_by_text("operator", exact=True).wait_for()
    assert page.url.endswith("/c/dev/topics")

    login_screen.open("/c/dev/change/create-topic")
    page.get_by_label("Topic", exact=True).fill("from-the-console")
    page.get_by_label("Partitions").fill("2")
    check_look(login_screen, "change-form")
    page.get_by_role("button", name="Show what it does").click()
    page.get_by_text("The same by command line").wait_for()
    check_look(login_screen, "change-plan")
    page.get_by_role("button", name="Create a topic").click()
    page.get_by_role("status").get_by_text("from-the-console").wait_for()
    page.get_by_role("link", name="from-the-console").wait_for()
    check_look(login_screen, "change-done")
    login_screen.open("/c/dev/changes")
    page.get_by_role("link", name="Create a topic").click()
    page.get_by_text("olga, from 127.0.0.1").wait_for()
    check_look(login_screen, "change-run")
    login_screen.open("/c/dev/about")
    page.get_by_text("The console's user in Kafka").wait_for()
    check_look(login_screen, "about")
    page.get_by_role("button", name="Log out").click()
    page.get_by_role("heading", name="Log in").wait_for()

    made = [entry for entry in audited(login_site) if entry["user"] == "olga"]
    events = ["login-failed", "login", "begin", "end", "logout"]
    assert [entry["event"] for entry in made] == events
    assert made[2]["values"] | {"configs": ""} == {
        "topic": "from-the-console",
        "partitions": "2",
        "replicas": "",
        "configs": "",
    }
    assert (made[3]["result"], made[3]["role"]) == ("done", "operator")
    assert PASSWORD not in (login_site.folder / "audit.log").read_text()


def test_a_reader_sees_no_changes(login_screen: Screen):
    page = login_screen.page
    login_screen.open("/")
    log_in(login_screen, "rita")
    page.get_by_text("reader", exact=True).wait_for()
    assert page.locator("a.change").count() == 0
    login_screen.open("/c/dev/change/create-topic")
    page.get_by_text("this needs the role operator").wait_for()
    login_screen.errors.clear()  # Chromium logs the status 403


def request(site: LoginSite, path: str, token: str) -> dict[str, Any]:
    context = ssl.create_default_context(cafile=str(site.folder / "certs" / "ca.pem"))
    sent = urllib.request.Request(
        f"{site.address}{path}", headers={"Authorization": f"Bearer {token}"}
    )
    with urllib.request.urlopen(sent, context=context, timeout=60) as response:
        answer: dict[str, Any] = json.loads(response.read())
        return answer


def test_the_documented_requests_create_a_topic_and_add_partitions(login_site: LoginSite):
    text = (ROOT / "docs" / "console.md").read_text(encoding="utf-8")
    commands = _COMMANDS.findall(text.partition("## HTTP interface")[2])
    assert len(commands) >= 3
    environment = {
        "CONSOLE": login_site.address,
        "TOKEN": login_site.token,
        "CURL_CA_BUNDLE": str(login_site.folder / "certs" / "ca.pem"),
        "PATH": "/usr/bin:/bin",
    }
    for command in commands:
        done = subprocess.run(
            ["sh", "-c", command],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, command + done.stdout + done.stderr
    found = request(login_site, "/api/v1/clusters/dev/topics/invoices", login_site.token)
    assert len(found["partitions"]) == 6
    eventually(
        lambda: (
            "invoices"
            in {
                row["name"]
                for row in request(login_site, "/api/v1/clusters/dev/topics", login_site.token)[
                    "topics"
                ]
            }
        )
    )
    made = [entry for entry in audited(login_site) if entry["via"] == "http"]
    assert [entry["result"] for entry in made if entry["event"] == "end"] == ["done", "done"]
    assert {entry["user"] for entry in made} == {"orders"}


def test_a_wrong_token_is_refused(login_site: LoginSite):
    with pytest.raises(urllib.error.HTTPError) as caught:
        request(login_site, "/api/v1/clusters", "wbc_wrong")
    assert caught.value.code == 401
    caught.value.close()
