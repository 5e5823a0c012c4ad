"""Consoles of a cluster: one without logins on the open listener, one with users and SASL_SSL."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from compat_tests.console.actions.action_cluster import (
    KAFKA_USERS,
    TEST_TOKEN,
    console_section,
)
from compat_tests.console.console_site import running_console
from tests.support.console.console_users import PASSWORD, write_users
from wirebroker.console.changes.change import ConsoleRole

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, BrowserContext

    from compat_tests.console.actions.action_cluster import ActionCluster

# Users of the secured console by their role.
USERS: Final = {
    ConsoleRole.READER: "rita",
    ConsoleRole.OPERATOR: "olga",
    ConsoleRole.ADMIN: "anna",
}
OPEN, SECURED = "open", "secured"
_TIMEOUT_MS: Final = 60_000


class ClusterVisit(NamedTuple):
    """A browser on a console, and one of the console's clusters: the place of an action.

    Attributes:
        user: The console's user, or "".
        kafka_user: The Kafka user of the cluster, or "".
    """

    address: str
    folder: Path
    context: BrowserContext
    cluster: str
    user: str = ""
    kafka_user: str = ""

    def audited(self) -> list[dict[str, Any]]:
        """Return all entries of the audit log."""
        log = self.folder / "audit.log"
        if not log.exists():
            return []
        return [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]


class ActionSites:
    """Consoles that are started on first use, with a browser context for each user."""

    def __init__(self, browser: Browser, cluster: ActionCluster, folder: Path) -> None:
        self._browser = browser
        self._cluster = cluster
        self._folder = folder
        self._stack = contextlib.ExitStack()
        self._addresses: dict[str, str] = {}
        self._contexts: dict[tuple[str, str], BrowserContext] = {}

    def close(self) -> None:
        for context in self._contexts.values():
            context.close()
        self._stack.close()

    def open_visit(self, *, is_test_mode: bool = False) -> ClusterVisit:
        """Return the console without logins."""
        return self._visit(f"{OPEN}-testing" if is_test_mode else OPEN, "dev", "", "")

    def secured_visit(
        self, role: ConsoleRole, kafka_user: str, *, is_test_mode: bool = False
    ) -> ClusterVisit:
        """Return the console with a user of a role, and the cluster with a Kafka user."""
        if is_test_mode:
            return self._visit(f"{SECURED}-testing", "dev", USERS[role], "admin")
        return self._visit(SECURED, f"{kafka_user}s", USERS[role], kafka_user)

    def _visit(self, site: str, cluster: str, user: str, kafka_user: str) -> ClusterVisit:
        if site not in self._addresses:
            self._addresses[site] = self._started(site)
        address = self._addresses[site]
        if (site, user) not in self._contexts:
            self._contexts[site, user] = self._new_context(address, user)
        context = self._contexts[site, user]
        return ClusterVisit(address, self._folder / site, context, cluster, user, kafka_user)

    def _started(self, site: str) -> str:
        folder = self._folder / site
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / "clusters"
        file.write_text(self._sections(site), encoding="utf-8")
        flags = ["--config", str(file)]
        if site.startswith(SECURED):
            roles = {name: role.name.lower() for role, name in USERS.items()}
            flags += ["--users", str(write_users(folder / "users", **roles))]
        return self._stack.enter_context(running_console(folder, *flags))

    def _sections(self, site: str) -> str:
        cluster = self._cluster
        if site == OPEN:
            return "".join(console_section(name, cluster.bootstrap) for name in ("dev", "other"))
        if site == SECURED:
            users = {f"{user}s": user for user in KAFKA_USERS} | {"other": "operator"}
            return "".join(
                console_section(name, cluster.secured_bootstrap, cluster.folder, user)
                for name, user in users.items()
            )
        broker = cluster.test_mode
        if site.startswith(OPEN):
            section = console_section("dev", broker.bootstrap)
        else:
            section = console_section("dev", broker.secured_bootstrap, cluster.folder, "admin")
        control = f"wirebroker.test.url={broker.url}\nwirebroker.http.token={TEST_TOKEN}\n"
        return section + control

    def _new_context(self, address: str, user: str) -> BrowserContext:
        context = self._browser.new_context(
            viewport={"width": 1280, "height": 800}, reduced_motion="reduce"
        )
        context.set_default_timeout(_TIMEOUT_MS)
        if user:
            page = context.new_page()
            page.goto(f"{address}/")
            page.get_by_label("User", exact=True).fill(user)
            page.get_by_label("Password").fill(PASSWORD)
            page.get_by_role("button", name="Log in").click()
            page.get_by_role("button", name="Log out").first.wait_for()
            page.close()
        return context


@contextlib.contextmanager
def action_sites(browser: Browser, cluster: ActionCluster, folder: Path) -> Iterator[ActionSites]:
    sites = ActionSites(browser, cluster, folder)
    try:
        yield sites
    finally:
        sites.close()
